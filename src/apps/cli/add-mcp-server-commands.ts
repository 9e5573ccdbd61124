import type { Command } from "commander";
import { describe, type Invoke } from "./describe.ts";

/** The commands about the MCP servers that agents use: which there are, and what people say about them. */
export function addMcpServerCommands(mcp: Command, invoke: Invoke): void {
  describe(mcp.command("list"), "Lists the MCP servers of every place.")
    .option("--json", "print JSON")
    .option("--check", "connect them, and show how many tools each has or why it fails")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-list.ts")).mcpList(context, command.optsWithGlobals()),
      ),
    );
  describe(mcp.command("get <name>"), "Shows one server as it is written.")
    .option("--json", "print JSON")
    .action((name: string, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-get.ts")).mcpGet(context, name, command.optsWithGlobals()),
      ),
    );
  addChanges(mcp, invoke);
  describe(mcp.command("approve [name]"), "Lets a server of the project start, as it is written now.")
    .option("--all", "all servers of the project")
    .action((name: string | undefined, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-approve.ts")).mcpApprove(context, name, command.optsWithGlobals()),
      ),
    );
  describe(mcp.command("reject <name>"), "Keeps a server of the project from starting.").action(
    (name: string) =>
      invoke(async (context) => (await import("./commands/mcp/mcp-approve.ts")).mcpReject(context, name)),
  );
  describe(
    mcp.command("reset-project-choices"),
    "Forgets which servers of the project were approved or rejected.",
  ).action(() =>
    invoke(async (context) => (await import("./commands/mcp/mcp-approve.ts")).mcpResetChoices(context)),
  );
}

function addChanges(mcp: Command, invoke: Invoke): void {
  const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];
  describe(mcp.command("add <name> [words...]"), "Adds a server: NAME -- COMMAND ARGS, or NAME URL.")
    .option("-t, --transport <kind>", "stdio (the default), http or sse")
    .option("-s, --scope <scope>", "local (you, this project; the default), project or user")
    .option("-e, --env <name=value>", "a variable for the command", collect)
    .option("-H, --header <name: value>", "a header for the URL", collect)
    .option("--force", "replace a server of this name")
    .action((name: string, words: readonly string[], options) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-add.ts")).mcpAdd(context, { name, words }, options),
      ),
    );
  describe(mcp.command("add-json <name> <json>"), "Adds a server from its configuration as JSON.")
    .option("-s, --scope <scope>", "local (you, this project; the default), project or user")
    .option("--force", "replace a server of this name")
    .action((name: string, json: string, options) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-add.ts")).mcpAddJson(context, { name, json }, options),
      ),
    );
  describe(mcp.command("remove <name>"), "Takes a server out of its file.")
    .option("-s, --scope <scope>", "local, project or user; the first that has it when left out")
    .action((name: string, options) =>
      invoke(async (context) =>
        (await import("./commands/mcp/mcp-add.ts")).mcpRemove(context, name, options),
      ),
    );
}
