import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { isRetinueError, RetinueError } from "../../../foundation/retinue-error.ts";
import { type AgentSdkOptions, addAgentSdkOptions } from "../../agent-sdk/agent-sdk-options.ts";
import type { CliHost } from "../cli-host.ts";
import type { PrintOptions } from "../print/print-options.ts";
import { misuse, type SessionOptions } from "../session-options.ts";
import { addHelpCommands } from "./add-help-commands.ts";
import { addCommands, addOptions, addRefusedCommands, type Invoke, unknownCommand } from "./command-entry.ts";
import { gatherLists } from "./gather-lists.ts";
import { helpText } from "./help-text.ts";
import { projectCommands, refusedCommands } from "./project-commands.ts";
import { runOptions, sessionOptions } from "./run-options.ts";
import { sessionCommands } from "./session-commands.ts";

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
  addOptions(program, [...sessionOptions, ...runOptions]);
  addAgentSdkOptions(program);
  addCommands(program, [...projectCommands, ...sessionCommands], invoke);
  addRefusedCommands(program, refusedCommands);
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
        (await import("../../agent-sdk/serve-agent-sdk.ts")).serveAgentSdk(context, options),
      );
    return runPrompt(words, options);
  });
  return program;
}

function createRunPrompt(host: CliHost, invoke: Invoke) {
  return (words: readonly string[], options: PrintOptions): Promise<void> =>
    host.canAsk && (options.print !== true || isForPeople(options, words, host))
      ? invoke(async (context) =>
          (await import("../../terminal/run-terminal.ts")).runTerminal(context, words, options),
        )
      : invoke(async (context) => (await import("../print/run-print.ts")).runPrint(context, words, options));
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
