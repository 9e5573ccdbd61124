import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { nearestName } from "../../foundation/nearest-name.ts";
import { isRetinueError, RetinueError } from "../../foundation/retinue-error.ts";
import { splitEntries } from "../../tools/grants/split-entries.ts";
import { type AgentSdkOptions, addAgentSdkOptions } from "../agent-sdk/agent-sdk-options.ts";
import { addAccountCommands } from "./add-account-commands.ts";
import { addHelpCommands } from "./add-help-commands.ts";
import { addMcpServerCommands } from "./add-mcp-server-commands.ts";
import { addSessionCommands, addSkillCommands } from "./add-session-commands.ts";
import { addTaskCommands } from "./add-task-commands.ts";
import type { CliHost } from "./cli-host.ts";
import { describe, type Invoke } from "./describe.ts";
import { gatherLists } from "./gather-lists.ts";
import { helpText } from "./help-text.ts";
import type { PrintOptions } from "./print/print-options.ts";
import { misuse, parseSettingSources, type SessionOptions } from "./session-options.ts";

/** Understands the arguments and runs what they ask for; each command is loaded only when it is used. */
export async function runProgram(arguments_: readonly string[], host: CliHost): Promise<number> {
  let exitCode = 0;
  const program = createProgram(host, async (run) => {
    exitCode = await run({ host, session: program.opts<SessionOptions>() });
  });
  let meant: Command = program;
  for (const parent of [program, ...program.commands])
    parent.hook("preSubcommand", (_, command) => {
      meant = command;
    });
  try {
    await program.parseAsync(gatherLists(arguments_, host.cwd), { from: "user" });
  } catch (error) {
    const isUsage = error instanceof CommanderError;
    if (isUsage && error.exitCode === 0) return exitCode;
    const thrown = isUsage ? asError(error, pathOf(meant)) : error;
    throw meant === program ? asRunError(thrown) : thrown;
  }
  return exitCode;
}

/** A run with a wrong option ends with 1, as scripts expect it; commands of our own end with 2. */
function asRunError(error: unknown): unknown {
  if (!isRetinueError(error) || error.code !== "misuse") return error;
  const { message, advice } = error;
  return new RetinueError("wrong-option", message, {
    cause: error,
    ...(advice === undefined ? {} : { advice }),
  });
}

function createProgram(host: CliHost, invoke: Invoke): Command {
  const program = new Command("retinue")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      outputError: () => {},
      writeErr: (text) => host.stderr.write(text),
      getOutHelpWidth: () => Math.min(host.stdout.columns ?? 80, 100),
    })
    .helpCommand(false)
    .argument("[prompt...]")
    .version(host.version(), "-v, --version");
  program.helpInformation = () => helpText;
  addSessionOptions(program);
  addPrintOptions(program);
  addAgentSdkOptions(program);
  addAgents(program, invoke);
  addSessionCommands(program, invoke);
  addTaskCommands(program, invoke);
  addSkillCommands(program, invoke);
  addMcpCommands(program, invoke);
  addPermissions(program, invoke);
  addTrust(program, invoke);
  addDoctor(program, invoke);
  addAccountCommands(program, invoke);
  const runPrompt = createRunPrompt(host, invoke);
  addHelpCommands(program, {
    write: (text) => host.stdout.write(text),
    version: host.version,
    columns: Math.min(host.stdout.columns ?? 80, 100),
    runPrompt,
  });
  program.action((given: readonly string[], options: PrintOptions & AgentSdkOptions) => {
    const { words, configs } = takeMcpConfigs(given, program.opts<SessionOptions>().mcpConfig, host.cwd);
    if (configs !== undefined) program.setOptionValue("mcpConfig", configs);
    if (options.bare === true || options.safeMode === true) chooseNoSources(program);
    const [first] = words;
    if (options.print !== true && first === undefined && host.stdin.isTerminal && !host.canAsk)
      return void host.stdout.write(helpText);
    // A bare word is more likely a mistyped command than a prompt; prompts of bare words need -p or quotes.
    if (options.print !== true && first !== undefined && !/^\/|\s/.test(first))
      throw unknownCommand(program, first);
    if (options.inputFormat === "stream-json" && options.outputFormat === "stream-json" && words.length === 0)
      return invoke(async (context) =>
        (await import("../agent-sdk/serve-agent-sdk.ts")).serveAgentSdk(context, options),
      );
    return runPrompt(words, options);
  });
  return program;
}

function createRunPrompt(host: CliHost, invoke: Invoke) {
  return (words: readonly string[], options: PrintOptions): Promise<void> =>
    host.canAsk && (options.print !== true || isForPeople(options, words, host))
      ? invoke(async (context) =>
          (await import("../terminal/run-terminal.ts")).runTerminal(context, words, options),
        )
      : invoke(async (context) => (await import("./print/run-print.ts")).runPrint(context, words, options));
}

/** `--bare`: nothing counts but what the command line names, and what the organisation says. */
function chooseNoSources(program: Command): void {
  const { settingSources } = program.opts<SessionOptions>();
  if (settingSources !== undefined && settingSources.length > 0)
    throw misuse("--bare reads no settings, so it cannot be combined with --setting-sources.");
  program.setOptionValue("settingSources", []);
  program.setOptionValue("strictMcpConfig", true);
}

/** Whether a person watches a run with -p and can be asked; others read its lines. */
function isForPeople(options: PrintOptions, words: readonly string[], { environment }: CliHost): boolean {
  const isText = (options.outputFormat ?? "text") === "text" && (options.inputFormat ?? "text") === "text";
  const isSimple = options.jsonSchema === undefined && options.plain !== true;
  return isText && isSimple && words.length > 0 && environment["TERM"] !== "dumb";
}

export function addSessionOptions(program: Command): void {
  const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];
  const collectEntries = (value: string, earlier: readonly string[] = []) => [
    ...earlier,
    ...splitEntries(value),
  ];
  program
    .option("--agents <json|file>", "agents for this run, keyed by name")
    .option("--settings <file|json>", "more settings")
    .option("--setting-sources <list>", "which settings to read", parseSettingSources)
    .option("--plugin-dir <folder>", "use the plugin in this folder", collect)
    .option("--add-dir <folder>", "also read .claude/agents of this folder", collect)
    .option("--disallowed-tools, --disallowedTools <list>", "deny rules", collectEntries)
    .option("--mcp-config <json|file>", "MCP servers for this run", collect)
    .option("--strict-mcp-config", "no MCP servers but those of --mcp-config")
    .option("--trust", "trust the working folder for this run")
    .option("--verbose", "with --output-format json: every message, as one list");
}

/** The options of a run carry the names people know from Claude Code. */
export function addPrintOptions(program: Command): void {
  const collectEntries = (value: string, earlier: readonly string[] = []) => [
    ...earlier,
    ...splitEntries(value),
  ];
  program
    .option("-p, --print", "run the prompt and print the result")
    .option("--output-format <format>", "text, json or stream-json")
    .option("--input-format <format>", "text or stream-json")
    .option("--include-partial-messages", "stream-json: also what the model says while it answers")
    .option("--replay-user-messages", "stream-json: also the prompts")
    .option("--forward-subagent-text", "stream-json: also what child agents say")
    .option("--model <model>", "an alias, an id, or provider/model")
    .option("--effort <level>", "how hard the model thinks")
    .option("--agent <name>", "the agent that answers")
    .option("--tools <list>", 'which built-in tools exist; "" for none')
    .option("--allowed-tools, --allowedTools <list>", "rules that allow calls", collectEntries)
    .option("--permission-mode <mode>", "what happens to calls no rule speaks of")
    .option("--permission-prompt-tool <tool>", "an MCP tool that answers in a person's place")
    .option("--dangerously-skip-permissions", "allow everything that no rule denies")
    .option("--max-turns <n>", "the most turns")
    .option("--max-budget-usd <amount>", "the most it may cost")
    .option("--max-time <duration>", "the longest it may work, such as 90s or 10m")
    .option("--system-prompt <text>", "in place of the usual system prompt")
    .option("--system-prompt-file <file>", "the same from a file")
    .option("--append-system-prompt <text>", "added to the system prompt")
    .option("--append-system-prompt-file <file>", "the same from a file")
    .option("-r, --resume <session>", "resume a session, by id or title")
    .option("-c, --continue", "continue the latest session of this folder")
    .option("--fork-session", "continue in a copy of the session")
    .option("--take-over", "take the session from another process that holds it")
    .option("--session-id <uuid>", "the id of the session")
    .option("--no-session-persistence", "keep no transcript")
    .option("--disable-slash-commands", "a prompt such as /name is plain text")
    .option("--json-schema <json|file>", "the form the result must have")
    .option("--plain", "in a terminal: lines only, for screen readers")
    .option("--no-ask", "ask no one; what would be asked is refused");
}

function addAgents(program: Command, invoke: Invoke): void {
  const agents = describe(program.command("agents"), "Lists all agents, highest scope first.")
    .argument("[command]")
    .usage("[list|show|new|check] [options]")
    .addHelpText(
      "before",
      "In a terminal: a browser of the agents, to look at, create, edit, check and try.\n",
    )
    .option("--all", "also what is shadowed or hidden by a deny rule")
    .option("--json", "print JSON")
    .allowExcessArguments();
  agents.action((name: string | undefined, options: { all?: boolean; json?: boolean }) => {
    if (name !== undefined) throw unknownCommand(agents, name);
    return invoke(async (context) => (await import("./commands/agents/agents.ts")).agents(context, options));
  });
  describe(agents.command("list"), "Lists all agents, highest scope first.")
    .option("--all", "also what is shadowed or hidden by a deny rule")
    .option("--json", "print JSON")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/agents/agents-list.ts")).agentsList(context, command.optsWithGlobals()),
      ),
    );
  describe(agents.command("show <name>"), "Shows everything about one agent, and where each field came from.")
    .option("--prompt", "the whole prompt instead of its first lines")
    .option("--json", "print JSON")
    .action((name: string, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/agents/agents-show.ts")).agentsShow(
          context,
          name,
          command.optsWithGlobals(),
        ),
      ),
    );
  addAgentsNew(agents, invoke);
  describe(agents.command("check [path...]"), "Finds mistakes in definitions, settings and plugins.")
    .option("--json", "print JSON")
    .option("--quiet", "only errors")
    .option("--strict", "exit code 1 on warnings too")
    .action((paths: string[], _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/agents/agents-check.ts")).agentsCheck(
          context,
          paths,
          command.optsWithGlobals(),
        ),
      ),
    );
}

function addAgentsNew(agents: Command, invoke: Invoke): void {
  describe(
    agents.command("new [name]"),
    "Writes a new agent file. In a terminal it asks for what is not given.",
  )
    .option("--name <name>", "the name as an option: lower-case letters, digits and hyphens")
    .option("--description <text>", "what it does, when to use it, what it is not for")
    .option("--tools <list>", "such as Read,Grep,Glob; all tools when left out")
    .option("--model <model>", "sonnet, opus, haiku, inherit, an id, or provider/model")
    .option("--scope <scope>", "project (this folder, the default) or user (all your folders)")
    .option("--prompt <text>", "the system prompt; a starter is written when left out")
    .option("--force", "replace a file that is there")
    // `--tools` and `--model` are also options of a run, and the program takes them first wherever they are.
    .action((name: string | undefined, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/agents/agents-new.ts")).agentsNew(context, name, command.optsWithGlobals()),
      ),
    );
}

function addPermissions(program: Command, invoke: Invoke): void {
  const permissions = describe(program.command("permissions"), "Lists all rules and where each is.")
    .argument("[command]")
    .usage("[list|test] [options]")
    .option("--json", "print JSON")
    .allowExcessArguments();
  permissions.action((name: string | undefined, options: { json?: boolean }) => {
    if (name !== undefined) throw unknownCommand(permissions, name);
    return invoke(async (context) =>
      (await import("./commands/permissions-list.ts")).permissionsList(context, options),
    );
  });
  describe(permissions.command("list"), "Lists all rules, where each is, and what is held back.")
    .option("--json", "print JSON")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/permissions-list.ts")).permissionsList(context, command.optsWithGlobals()),
      ),
    );
  describe(permissions.command("test [call]"), "Shows what would happen to a call, and by which rule.")
    .option("--tool <name>", "the tool, in place of a call such as 'Bash(git push)'")
    .option("--input <json>", "its whole input")
    .option("--mode <mode>", "as if this permission mode were chosen")
    .option("--explain", "everything that was looked at")
    .option("--json", "print JSON")
    .action((call: string | undefined, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/permissions-test.ts")).permissionsTest(
          context,
          call,
          command.optsWithGlobals(),
        ),
      ),
    );
}

function addTrust(program: Command, invoke: Invoke): void {
  describe(program.command("trust [folder]"), "Lets the files of a folder run programs and widen rights.")
    .option("--show", "only show what waits for trust, or has it")
    .option("--yes", "trust it without asking")
    .option("--remove", "take trust back")
    .option("--json", "print JSON, and change nothing")
    .action((folder: string | undefined, options) =>
      invoke(async (context) => (await import("./commands/trust.ts")).trust(context, folder, options)),
    );
}

function addDoctor(program: Command, invoke: Invoke): void {
  describe(program.command("doctor"), "Checks the set-up and says what to do.")
    .option("--json", "print JSON")
    .action((options) =>
      invoke(async (context) => (await import("./commands/doctor.ts")).doctor(context, options)),
    );
}

function unknownCommand(parent: Command, name: string): RetinueError {
  const known = parent.commands.map((command) => command.name());
  const nearest = nearestName(name, known);
  const path = parent.parent === null ? "" : `${parent.name()} `;
  const advice =
    nearest === undefined
      ? `The commands are ${known.map((command) => `${path}${command}`).join(", ")}.`
      : `Did you mean \`retinue ${path}${nearest}\`?`;
  return misuse(`There is no command \`${path}${name}\`.`, advice);
}

/** Turns "error: unknown option '--x'\n(Did you mean --y?)" into a sentence with advice. */
function asError(error: CommanderError, path: string): RetinueError {
  const [first = "", ...more] = error.message.replace(/^error: /, "").split("\n");
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}`;
  const advice = more.join(" ").replace(/^\((.*)\)$/, "$1");
  return misuse(
    /[.!?]$/.test(sentence) ? sentence : `${sentence}.`,
    advice === "" ? usageAdvice(error, path) : advice,
  );
}

function usageAdvice({ code }: CommanderError, path: string): string {
  // The options of a server's command are taken for ours unless something keeps them apart.
  if (path === "retinue mcp add" && code === "commander.unknownOption")
    return "Write `--` before the server's command: `retinue mcp add NAME -- COMMAND ARGS…`.";
  return `\`${path} --help\` shows how it is used.`;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** The commands about MCP. */
function addMcpCommands(program: Command, invoke: Invoke): void {
  const mcp = describe(program.command("mcp"), "Lists MCP servers; serves agents to MCP clients.")
    .argument("[command]")
    .usage("[list|get|add|add-json|remove|approve|reject|reset-project-choices|serve] [options]")
    .option("--json", "print JSON")
    .option("--check", "connect them, and show how many tools each has or why it fails")
    .allowExcessArguments();
  mcp.action((name: string | undefined, options: { json?: boolean; check?: boolean }) => {
    if (name !== undefined)
      throw misuse(
        `There is no command \`mcp ${name}\`.`,
        `The commands are ${mcp.commands.map((command) => `mcp ${command.name()}`).join(", ")}.`,
      );
    return invoke(async (context) => (await import("./commands/mcp/mcp-list.ts")).mcpList(context, options));
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
        (await import("./commands/mcp/mcp-serve.ts")).mcpServe(context, command.optsWithGlobals()),
      ),
    );
}

/**
 * People give several configurations behind one `--mcp-config`, so words that begin the prompt and can be nothing else
 * are taken for more of them: JSON with servers, or a `.json` file that is there.
 */
export function takeMcpConfigs(
  words: readonly string[],
  given: readonly string[] | undefined,
  cwd: string,
): { readonly words: readonly string[]; readonly configs?: readonly string[] } {
  if (given === undefined) return { words };
  const end = words.findIndex((word) => !isConfig(word, cwd));
  const count = end === -1 ? words.length : end;
  return { words: words.slice(count), configs: [...given, ...words.slice(0, count)] };
}

function isConfig(word: string, cwd: string): boolean {
  if (/^\s*\{/.test(word)) return word.includes('"mcpServers"');
  if (!/\.json$/i.test(word)) return false;
  return statSync(resolve(cwd, word), { throwIfNoEntry: false })?.isFile() === true;
}
