import type { Command } from "commander";
import { addMcpServerCommands } from "./add-mcp-server-commands.ts";
import { describe, type Invoke } from "./describe-command.ts";
import { misuse } from "./session-options.ts";

/** The commands about MCP. */
export function addMcpCommands(program: Command, invoke: Invoke): void {
  const mcp = describe(program.command("mcp"), "Lists MCP servers; serves agents to MCP clients.")
    .argument("[command]")
    .usage("[list|get|add|remove|approve|reject|serve] [options]")
    .option("--json", "print JSON")
    .option("--check", "connect them, and tell how many tools each has or why it fails")
    .allowExcessArguments();
  mcp.action((name: string | undefined, options: { json?: boolean; check?: boolean }) => {
    if (name !== undefined)
      throw misuse(
        `There is no command \`mcp ${name}\`.`,
        `The commands are ${mcp.commands.map((command) => `mcp ${command.name()}`).join(", ")}.`,
      );
    return invoke(async (context) => (await import("./commands/mcp-list.ts")).mcpList(context, options));
  });
  addMcpServerCommands(mcp, invoke);
  addServe(mcp, invoke);
}

function addServe(mcp: Command, invoke: Invoke): void {
  describe(mcp.command("serve"), "Gives any MCP client the agents of this folder, over stdin and stdout.")
    .option("--http [port]", "over HTTP on this machine instead; a free port when none is given")
    .option("--cwd <folder>", "serve this folder instead of the one it is started in")
    .option("--token-file <file>", "with --http: the token that clients must send")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/mcp-serve.ts")).mcpServe(context, command.optsWithGlobals()),
      ),
    );
}
