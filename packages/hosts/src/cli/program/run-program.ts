import { statSync } from "node:fs";
import { resolve } from "node:path";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isToolEntry, splitEntries } from "@retinue/core/kernel/options/find-bad-rule.ts";
import { type Command, CommanderError } from "commander";
import { addOptions } from "../../shared/add-options.ts";
import { addAgentSdkOptions } from "../../shared/agent-sdk-options.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import {
  absentWhenEmpty,
  type CommandFlags,
  commandFlags,
  type RunFlags,
  runFlags,
  type StoreRunFlags,
  storeFlags,
} from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import { namesOf } from "../../shared/option-entry.ts";
import {
  addCommands,
  addRefusedCommands,
  createCommand,
  describe,
  type Invoke,
  splitUsage,
  unknownCommand,
} from "./command-entry.ts";
import { helpText } from "./help-text.ts";
import { type OutlinedOption, outlineProgram } from "./outline-program.ts";
import { projectCommands, refusedCommands } from "./project-commands.ts";
import { sessionCommands } from "./session-commands.ts";
import { namesStore, storeCommands, storeOf } from "./store-commands.ts";

/** Understands the arguments and runs what they ask for; each command is loaded only when it is used. */
export async function runProgram(given: readonly string[], host: CliHost): Promise<number> {
  let exitCode = 0;
  const arguments_ = isHelpOfAll(given) ? ["run", "--help"] : given;
  const isInStore = namesStore(arguments_, host);
  const program = createProgram(
    host,
    async (run) => {
      exitCode = await run({ host, session: program.opts<CommandFlags>() });
    },
    { isInStore, arguments_ },
  );
  let meant: Command = program;
  for (const parent of [program, ...program.commands])
    parent.hook("preSubcommand", (_, command) => {
      meant = command;
    });
  try {
    const written = withoutEmptyWords(arguments_, program);
    await program.parseAsync(gatherLists(written, host.cwd), { from: "user" });
  } catch (error) {
    const isUsage = error instanceof CommanderError;
    if (isUsage && error.exitCode === 0) return exitCode;
    const thrown = isUsage ? asError(error, pathOf(meant)) : error;
    throw meant === program && !isInStore ? asRunError(thrown) : thrown;
  }
  return exitCode;
}

/** `retinue --help all`: every option, under its heading. */
function isHelpOfAll([first = "", second, ...rest]: readonly string[]): boolean {
  return ["--help", "-h", "help"].includes(first) && second === "all" && rest.length === 0;
}

/** A run with a wrong option ends with 1, as scripts expect it; commands of our own end with 2. */
function asRunError(error: unknown): unknown {
  if (!isRetinueError(error) || error.code !== "misuse") return error;
  const { message, advice } = error;
  return new RetinueError("wrong-option", message, {
    cause: error,
    advice,
  });
}

/** The words that can begin a command. */
const commandWords: ReadonlySet<string> = new Set([
  ...["run", "help", "completion"],
  ...refusedCommands.map(({ path }) => path.split(" ")[0] ?? ""),
  ...[...projectCommands, ...sessionCommands].flatMap(({ usage, alias }) => [
    splitUsage(usage).path[0] ?? "",
    ...(alias === undefined ? [] : [alias]),
  ]),
]);

interface ProgramKind {
  readonly isInStore: boolean;
  readonly arguments_: readonly string[];
}

/** For agents in a store the commands and the way to run a prompt are others; the rest is the same. */
function createProgram(host: CliHost, invoke: Invoke, { isInStore, arguments_ }: ProgramKind): Command {
  const program = createCommand(host).version(host.version, "-v, --version");
  if (isInStore) addOptions(program, Object.values(storeFlags));
  else program.helpInformation = () => helpText;
  addOptions(program, [...Object.values(commandFlags), ...Object.values(runFlags)]);
  addAgentSdkOptions(program);
  const runPrompt = isInStore ? createRunInStore(invoke) : createRunPrompt(host, invoke, arguments_);
  const addAllCommands = (): void => {
    addCommands(program, isInStore ? storeCommands : [...projectCommands, ...sessionCommands], invoke);
    if (!isInStore) addRefusedCommands(program, refusedCommands);
    addHelpCommands(program, {
      write: (text) => host.stdout.write(text),
      version: host.version,
      columns: Math.min(host.stdout.columns ?? 80, 100),
      runPrompt,
    });
  };
  // A hundred commands with their options take a tenth of a short run; most runs are a prompt and name none.
  if (isInStore || arguments_.some((word) => commandWords.has(word))) addAllCommands();
  if (isInStore)
    return program.action((words: readonly string[], options: RunFlags) => runPrompt(words, options));
  program.action((given: readonly string[], options: RunFlags) => {
    const { words, configs } = takeMcpConfigs(given, program.opts<CommandFlags>().mcpConfig, host.cwd);
    if (configs !== undefined) program.setOptionValue("mcpConfig", configs);
    if (options.bare === true || options.safeMode === true) {
      // `--bare`: nothing counts but what the command line names, and what the organisation says.
      const { settingSources } = program.opts<CommandFlags>();
      if (settingSources !== undefined && settingSources.length > 0)
        throw misuse("--bare reads no settings, so it cannot be combined with --setting-sources.");
      program.setOptionValue("settingSources", []);
      program.setOptionValue("strictMcpConfig", true);
    }
    const [first] = words;
    if (
      options.print !== true &&
      options.background !== true &&
      first === undefined &&
      host.stdin.isTerminal &&
      !host.canAsk
    )
      return void host.stdout.write(helpText);
    // A bare word is more likely a mistyped command than a prompt; prompts of bare words need -p or quotes.
    if (
      options.print !== true &&
      options.background !== true &&
      first !== undefined &&
      !/^\/|\s/.test(first)
    ) {
      if (program.commands.length === 0) addAllCommands();
      throw unknownCommand(program, first, words);
    }
    if (options.inputFormat === "stream-json" && options.outputFormat === "stream-json" && words.length === 0)
      return invokeSession(invoke, options, async (context) =>
        (await import("../../agent-sdk/serve-agent-sdk.ts")).serveAgentSdk(context, options),
      );
    return runPrompt(words, options);
  });
  return program;
}

function createRunInStore(invoke: Invoke) {
  return (words: readonly string[], options: StoreRunFlags): Promise<void> =>
    invoke(async (context) =>
      (await import("../../commands/store/print-in-store.ts")).printInStore(
        { ...context, store: storeOf(options, context.host) },
        words,
        options,
      ),
    );
}

function createRunPrompt(host: CliHost, invoke: Invoke, arguments_: readonly string[]) {
  return (words: readonly string[], options: RunFlags): Promise<void> => {
    if (options.background === true)
      return invoke(async (context) =>
        (await import("../../commands/background/start-background.ts")).startBackground(context, words, {
          options,
          arguments_,
        }),
      );
    return host.canAsk && (options.print !== true || isForPeople(options, words, host))
      ? invokeSession(invoke, options, async (context) =>
          (await import("../../terminal/run-terminal.ts")).runTerminal(context, words, options),
        )
      : invokeSession(invoke, options, async (context) =>
          (await import("../../print/run-print.ts")).runPrint(context, words, options),
        );
  };
}

/** A session in its folder, or in a worktree, with or without a file for what happens. */
function invokeSession(
  invoke: Invoke,
  options: RunFlags,
  run: (context: CommandContext) => Promise<number>,
): Promise<void> {
  if (options.worktree === undefined && options.debugFile === undefined) return invoke(run);
  return invoke(async (context) => (await import("../enter-session.ts")).enterSession(context, options, run));
}

/** Whether a person watches a run with -p and can be asked; others read its lines. */
function isForPeople(options: RunFlags, words: readonly string[], { environment }: CliHost): boolean {
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

/** An empty word is no prompt, and an empty value of some options means that the option was not given. */
export function withoutEmptyWords(
  arguments_: readonly string[],
  program: Pick<Command, "options" | "commands">,
): readonly string[] {
  const options = new Map(
    program.options.flatMap((option) =>
      [option.short, option.long].flatMap((name) => (name == null ? [] : [[name, option] as const])),
    ),
  );
  const commands = new Set(program.commands.map((command) => command.name()));
  const kept: string[] = [];
  for (let at = 0; at < arguments_.length; at += 1) {
    const word = arguments_[at] ?? "";
    // What belongs to a command is its own to judge.
    if (commands.has(word)) return arguments_;
    if (word === "--") return [...kept, ...arguments_.slice(at)];
    const [, glued] = /^(--[\w-]+)=$/.exec(word) ?? [];
    if (word === "" || (glued !== undefined && absentWhenEmpty.has(glued))) continue;
    const option = options.get(word);
    const takesNext = option?.required === true || (option?.optional === true && arguments_[at + 1] !== "");
    if (!takesNext) {
      kept.push(word);
      continue;
    }
    const value = arguments_[at + 1];
    at += 1;
    if (value === "" && absentWhenEmpty.has(option?.long ?? word)) continue;
    kept.push(word, ...(value === undefined ? [] : [value]));
  }
  return kept;
}

interface ListOption {
  /** Whether a further word can be meant by the option; the first that cannot begins the prompt. */
  readonly belongs: (word: string, cwd: string) => boolean;
  /** Whether the words become one value with commas, or the option is written once for each. */
  readonly isJoined: boolean;
}

const tools: ListOption = { belongs: (word) => splitEntries(word).every(isToolEntry), isJoined: true };
const folders: ListOption = {
  belongs: (word, cwd) => statSync(resolve(cwd, word), { throwIfNoEntry: false })?.isDirectory() === true,
  isJoined: false,
};

const listOptions: ReadonlyMap<string, ListOption> = new Map(
  [...Object.values(commandFlags), ...Object.values(runFlags)].flatMap(({ flags, moreWords }) =>
    moreWords === undefined
      ? []
      : namesOf(flags).map((name) => [name, moreWords === "tools" ? tools : folders] as const),
  ),
);

/** Gathers the words of `--allowedTools A B` and the like, so that they do not become a prompt, nor the prompt one of them. */
export function gatherLists(arguments_: readonly string[], cwd: string): readonly string[] {
  const gathered: string[] = [];
  for (let at = 0; at < arguments_.length; at += 1) {
    const word = arguments_[at] ?? "";
    if (word === "--") return [...gathered, ...arguments_.slice(at)];
    // Its value is optional; a sentence behind it is the prompt.
    if ((word === "--debug" || word === "-d") && /\s/.test(arguments_[at + 1] ?? "")) {
      gathered.push("--debug=all");
      continue;
    }
    gathered.push(word);
    const option = listOptions.get(word);
    const first = arguments_[at + 1];
    if (option === undefined || first === undefined || first.startsWith("-")) continue;
    const rest = arguments_.slice(at + 2);
    const end = rest.findIndex((next) => /^(-|$)/.test(next) || !option.belongs(next, cwd));
    const more = end === -1 ? rest : rest.slice(0, end);
    if (option.isJoined) gathered.push([first, ...more].join(","));
    else gathered.push(first, ...more.flatMap((next) => [word, next]));
    at += 1 + more.length;
  }
  return gathered;
}

export interface HelpParts {
  readonly write: (text: string) => void;
  readonly version: string;
  readonly columns: number;
  /** Runs a prompt as `-p` does. */
  readonly runPrompt: (words: readonly string[], options: RunFlags) => Promise<void> | void;
}

/** `run`, whose help describes every option of a run, `help`, and `completion`. */
export function addHelpCommands(program: Command, parts: HelpParts): void {
  const run = describe(
    program.command("run [prompt...]"),
    "Runs a prompt and prints the answer, as -p does. Its help has every option.",
  );
  run.helpInformation = () => runHelp(program, run, parts.columns);
  run.action((words: readonly string[], _, command: Command) =>
    parts.runPrompt(words, { ...command.optsWithGlobals<RunFlags>(), print: true }),
  );
  describe(program.command("help [command...]"), "Shows help, of the program or of a command.")
    .option("--man", "print the man page: retinue help --man | man -l -")
    .action(async (words: readonly string[], { man = false }: { man?: boolean }) => {
      if (!man) return parts.write(findCommand(program, words).helpInformation());
      const { renderManual } = await import("./render-manual.ts");
      parts.write(renderManual(outlineProgram(program), { version: parts.version }));
    });
  describe(
    program.command("completion <shell>"),
    "Prints a script that completes commands and options in a shell.",
  )
    .usage("bash|zsh|fish")
    .action(async (shell: string) => {
      const { completionShells, renderCompletion } = await import("./render-completion.ts");
      const known = completionShells.find((one) => one === shell);
      if (known === undefined)
        throw misuse(
          `There is no completion for ${JSON.stringify(shell)}.`,
          `Write one of: ${completionShells.join(", ")}.`,
        );
      parts.write(renderCompletion(known, outlineProgram(program)));
    });
}

function findCommand(program: Command, words: readonly string[]): Command {
  return words.reduce((parent, word) => {
    const found = parent.commands.find((command) => command.name() === word);
    if (found !== undefined) return found;
    const nearest = nearestName(
      word,
      parent.commands.map((command) => command.name()),
    );
    throw misuse(
      `There is no command \`${word}\`.`,
      nearest === undefined
        ? `\`retinue help\` lists the commands. As a prompt: \`retinue -p "help ${words.join(" ")}"\`.`
        : `Did you mean \`${nearest}\`?`,
    );
  }, program);
}

/** Every option that a run takes, with what it does, under the headings of the table. */
function runHelp(program: Command, run: Command, columns: number): string {
  const { options } = outlineProgram(program);
  const width = Math.min(38, Math.max(...options.map(({ flags }) => flags.length)) + 2);
  const rowOf = ({ flags, description }: OutlinedOption): string => {
    const head = `  ${flags}`.padEnd(width + 2);
    const indent = " ".repeat(width + 2);
    const text = wrapWords(description, Math.max(20, columns - width - 2));
    const first = flags.length + 2 > width ? [head, ...text.map((line) => `${indent}${line}`)] : undefined;
    return (first ?? text.map((line, at) => `${at === 0 ? head : indent}${line}`)).join("\n");
  };
  const groups = Map.groupBy(options, ({ group }) => group ?? "Options:");
  const blocks = [...groups].map(([heading, members]) => [heading, ...members.map(rowOf)].join("\n"));
  return `Usage: retinue run [options] "prompt"\n\n${run.description()}\n\n${blocks.join("\n\n")}\n`;
}

function wrapWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
