import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type ProcessEnding, startProcess } from "@retinue/base/foundation/start-process.ts";
import {
  commandEnvironment,
  findShell,
  readOnlyEnvironment,
  reportedDirectory,
  reportingShellArguments,
  type Shell,
  type ShellText,
  shellArguments,
  withoutPatterns,
} from "@retinue/gate/command-environment.ts";
import { type CommandOutputView, createCommandOutput } from "../command/command-output.ts";
import type { OpenCommand } from "../command/recover-commands.ts";
import type { OfferedCommand, Shells } from "../command/shells.ts";
import * as t from "../input-type.ts";
import { wallFailure } from "../sandbox/wall.ts";
import type { TaskView } from "../task-source.ts";
import type { Tool, ToolContext, ToolOutcome } from "../tool.ts";
import { builtinTool, failed, optionalFlag, optionalNumber, optionalText } from "./builtin-tool.ts";
import { enterSandbox, type Sandboxes, withoutWall } from "./enter-sandbox.ts";
import { keepDirectory, type ShellDirectories, startDirectory } from "./shell-directories.ts";

export interface BashToolOptions extends Sandboxes {
  readonly shells: Shells;
  readonly directories: ShellDirectories;
  /** Milliseconds that only ever grow. */
  readonly now: () => number;
  /** Whether an agent's `cd` holds for its next command; absent means for every agent. */
  readonly keepsDirectory?: (agent: ToolContext["agent"]) => boolean;
  /** Variables that commands get although they are removed by default, such as provider keys. */
  readonly passVariables?: readonly string[];
  /** Variables that every command gets, such as the session's id. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly graceMs?: number;
}

const description = `Runs a command in a fresh bash and returns what it wrote, stdout and stderr in order, with the exit code if it is not 0.

- Use the dedicated tools instead where they do the job: Read for files, Edit and Write to change them, Glob to find files by name, Grep to search contents. Bash is for programs: builds, tests, git, package managers.
- \`cd\` holds for your next command as long as it stays inside the working directories; variables and functions do not hold. Quote paths that have spaces.
- There is no terminal and no input: pass flags that answer questions (such as --yes), and no editors or pagers.
- A command may take 120 seconds unless \`timeout\` (milliseconds, at most 600000) says otherwise. What should continue while you work, such as a server, gets \`run_in_background\`; do not end it with &, because what a command leaves behind is ended with it.
- Long output is cut in the middle and kept whole in a file that the result names.
- Join commands that depend on each other with &&; make separate calls for those that do not.`;

const input = t.object({
  command: t.string().min(1).describe("The command, as you would type it into bash."),
  timeout: optionalNumber("How long it may take, in milliseconds."),
  description: optionalText("What the command does, in five to ten words, for the person who reads along."),
  run_in_background: optionalFlag(
    "Start it and continue; TaskOutput reads what it writes, TaskStop ends it.",
  ),
});

type BashInput = t.Infer<typeof input>;

interface Command {
  readonly input: BashInput;
  /** What runs: the command as it was judged, or as it was given where it was not judged. */
  readonly text: string;
  readonly shell: Shell;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly context: ToolContext;
}

export function createBashTool(options: BashToolOptions): Tool {
  let shell: Promise<Shell | undefined> | undefined;
  return builtinTool<BashInput>({
    name: "Bash",
    description,
    input,
    async call(given, context) {
      if (given.command.includes("\0")) return failed("The command contains a NUL character; leave it out.");
      shell ??= findShell(context.environment);
      const found = await shell;
      if (found === undefined)
        return failed("Neither bash nor sh is installed on this machine; install bash.");
      const start = await startDirectory(options.directories, context);
      const [project = ""] = context.workingDirectories;
      const set = { SHELL: found.file, CLAUDE_PROJECT_DIR: project, ...options.variables };
      const environment =
        context.allowedBy === "read-only"
          ? readOnlyEnvironment(context.environment, { workingDirectories: context.workingDirectories, set })
          : commandEnvironment(context.environment, { pass: options.passVariables ?? [], set });
      const command: Command = {
        input: given,
        text: context.judged?.command ?? given.command,
        shell: context.judged === undefined ? found : withoutPatterns(found),
        directory: start.directory,
        environment,
        context,
      };
      await mkdir(context.outputDirectory, { recursive: true, mode: 0o700 }).catch(() => undefined);
      const notes = [start.note, found.note, ...(context.judged?.notes ?? [])].filter(
        (note) => note !== undefined,
      );
      return given.run_in_background === true
        ? runBeside(command, options, notes)
        : runToEnd(command, options, notes);
    },
  });
}

/** The output so far, for watchers. */
const progressLines = 20;
const progressLength = 2_000;

async function runToEnd(
  command: Command,
  options: BashToolOptions,
  notes: readonly string[],
): Promise<ToolOutcome> {
  const { context, shell } = command;
  const written = command.input.command;
  const plain = { file: shell.file, arguments: reportingShellArguments(shell, textOf(command)) };
  const { directory } = command;
  const entered = await enterSandbox(options, plain, { command: written, directory, context });
  if (entered.type === "refused") return failed(entered.reason);
  const limit = foregroundLimit(command.input.timeout, context.environment);
  // Ids come from a provider and may hold anything.
  const name = context.callId.replace(/[^\w-]/g, "_").slice(0, 100) || "output";
  const file = join(context.outputDirectory, `${name}.txt`);
  const output = createCommandOutput({ limit: outputLimit(context.environment), file });
  context.watchOutput?.(() => output.view().text);
  const startedAt = options.now();
  const report = createReporter(options.now, () =>
    context.progress(
      output.view().text.trimEnd().slice(-progressLength).split("\n").slice(-progressLines).join("\n"),
    ),
  );
  let record: OpenCommand | undefined;
  const wait = createWait(context.signal);
  const started = await startProcess({
    ...entered.invocation,
    directory,
    environment: command.environment,
    // Nothing outlives a command that only reads.
    ...(context.allowedBy === "read-only" ? {} : { mark: options.shells.markFor(context.agent.id) }),
    merged: { directory: context.outputDirectory, name: `.${name}.pipe` },
    reportsBack: true,
    signal: wait.controller.signal,
    unlimited: wait.left.signal,
    timeLimitMs: limit.milliseconds,
    ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    onOutput(chunk) {
      output.take(chunk);
      report.report();
    },
    onStart(leader) {
      record = options.shells.record(foregroundRecord(command), leader);
    },
  });
  options.shells.follow(context.agent.id, started.ended);
  const finished = started.ended.then((ended) => {
    report.end();
    record?.end({ state: "completed" });
    entered.leave();
    output.end();
    wait.release();
    return { ended };
  });
  const { controller } = wait;
  const offered = offerToMove(command, options, { output, ended: started.ended, controller });
  const first = await Promise.race([finished, ...offered]);
  if ("task" in first) {
    wait.leave();
    return {
      content: `The person moved the command to the background, where it continues as task ${first.task.id} without a time limit; TaskOutput reads what it writes, TaskStop ends it.`,
      data: {
        stdout: "",
        stderr: "",
        interrupted: false,
        backgroundTaskId: first.task.id,
        outputFile: first.task.outputFile,
      },
    };
  }
  const ending = first.ended;
  const keeps = options.keepsDirectory?.(context.agent) ?? true;
  const moved = keeps
    ? await keepDirectory(options.directories, context, reportedDirectory(ending.report))
    : undefined;
  const unwalled =
    context.allowedBy === "read-only" ? wallFailure(ending.exitCode, output.view().text) : undefined;
  const why = unwalled === undefined ? undefined : withoutWall(unwalled);
  const allNotes = [...notes, entered.note, limit.note, ...endingNotes(ending, limit), why, moved];
  return outcomeOf(output.view(), ending, { notes: allNotes, durationMs: options.now() - startedAt });
}

function textOf({ text, input }: Command): ShellText {
  return { judged: text, written: input.command };
}

function foregroundRecord({ context, input }: Command) {
  const { command, description = "" } = input;
  return { kind: "foreground", agentId: context.agent.id, command, description } as const;
}

async function runBeside(
  command: Command,
  options: BashToolOptions,
  notes: readonly string[],
): Promise<ToolOutcome> {
  const { context, directory } = command;
  if (backgroundIsOff(context)) {
    return failed("Background commands are disabled here; run it without run_in_background.");
  }
  const written = command.input.command;
  const plain = { file: command.shell.file, arguments: shellArguments(command.shell, textOf(command)) };
  const entered = await enterSandbox(options, plain, { command: written, directory, context });
  if (entered.type === "refused") return failed(entered.reason);
  const limit = backgroundLimit(command.input.timeout);
  const started = await options.shells.start({
    command: written,
    callId: context.callId,
    description: command.input.description,
    owner: context.agent.id,
    shell: command.shell,
    invocation: entered.invocation,
    onEnded: entered.leave,
    directory,
    environment: command.environment,
    outputDirectory: context.outputDirectory,
    outputLimit: outputLimit(context.environment),
    timeLimitMs: limit.milliseconds,
  });
  if (started.type === "refused") {
    entered.leave();
    return failed(started.reason);
  }
  const { id, outputFile } = started.shell;
  const lines = [
    `The command is running in the background as task ${id}; TaskOutput reads what it writes, TaskStop ends it.`,
    `Its output is written to ${outputFile}.`,
    ...notes,
    entered.note,
    limit.note,
  ];
  return {
    content: lines.filter((line) => line !== undefined).join("\n"),
    data: { stdout: "", stderr: "", interrupted: false, backgroundTaskId: id, outputFile },
  };
}

/** A person may move the command to the background while it runs, unless that is switched off. */
function offerToMove(
  { input: { command, description }, context }: Command,
  { shells }: BashToolOptions,
  running: Pick<OfferedCommand, "output" | "ended" | "controller">,
): readonly Promise<{ readonly task: TaskView }>[] {
  if (backgroundIsOff(context)) return [];
  const described = description === undefined ? {} : { description };
  const moved = shells.offer({ owner: context.agent.id, command, ...described, ...running });
  return [moved.then((task) => ({ task }))];
}

function backgroundIsOff({ environment }: ToolContext): boolean {
  return environment["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] === "1";
}

/** A command ends with the call that waits for it, until that call is left. */
function createWait(signal: AbortSignal) {
  const controller = new AbortController();
  const left = new AbortController();
  const abort = (): void => controller.abort(signal.reason);
  const release = (): void => signal.removeEventListener("abort", abort);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  return {
    controller,
    left,
    release,
    leave(): void {
      release();
      left.abort();
    },
  };
}

/** Watchers need no more than a few signs of life a second. */
function createReporter(now: () => number, report: () => void): { report(): void; end(): void } {
  let next = 0;
  let timer: NodeJS.Timeout | undefined;
  const reportNow = (): void => {
    timer = undefined;
    next = now() + pauseMs;
    report();
  };
  return {
    report() {
      if (timer !== undefined) return;
      const wait = next - now();
      if (wait <= 0) reportNow();
      else timer = setTimeout(reportNow, wait).unref();
    },
    end: () => clearTimeout(timer),
  };
}

const pauseMs = 250;

/** What a model should know about how a command ended, besides its output. */
function endingNotes(ending: ProcessEnding, limit: TimeLimit): readonly string[] {
  const notes: string[] = [];
  if (ending.notStarted !== undefined) notes.push(`The command could not be started: ${ending.notStarted}`);
  if (ending.aborted) notes.push("The command was interrupted before it ended.");
  if (ending.timedOut) {
    notes.push(
      `The command was stopped after ${limit.milliseconds} ms, its time limit. Give it a longer timeout, or use run_in_background.`,
    );
  } else if (ending.exitCode !== undefined && ending.exitCode !== 0) {
    notes.push(`Exit code ${ending.exitCode}`);
  } else if (ending.signal !== undefined && !ending.aborted) notes.push(`Ended by ${ending.signal}`);
  if (ending.leftBehind > 0 && !ending.timedOut && !ending.aborted) {
    notes.push(
      `Processes it had left behind were ended (${ending.leftBehind}). Use run_in_background for what should continue.`,
    );
  }
  return notes;
}

function outcomeOf(
  view: CommandOutputView,
  ending: ProcessEnding,
  { notes, durationMs }: { readonly notes: readonly (string | undefined)[]; readonly durationMs: number },
): ToolOutcome {
  const remarks = notes.filter((note) => note !== undefined);
  const output = view.text.trimEnd();
  const parts =
    output === "" && remarks.length === 0
      ? ["(no output)"]
      : [output, ...remarks].filter((part) => part !== "");
  const interrupted = ending.timedOut || ending.aborted;
  return {
    content: parts.join("\n"),
    isError: interrupted || ending.exitCode !== 0,
    data: {
      stdout: view.text,
      stderr: "",
      interrupted,
      exitCode: ending.exitCode,
      persistedOutputPath: view.file,
      durationMs,
    },
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** How long a command may run, and what to report to a model whose request was cut. */
interface TimeLimit {
  readonly milliseconds: number;
  readonly note?: string;
}

export function foregroundLimit(requested: number | undefined, environment: Environment): TimeLimit {
  const usual = positive(environment["BASH_DEFAULT_TIMEOUT_MS"]) ?? 120_000;
  const most = Math.max(positive(environment["BASH_MAX_TIMEOUT_MS"]) ?? 600_000, usual);
  return limitTimeout(requested, usual, most);
}

export function backgroundLimit(requested: number | undefined): TimeLimit {
  return limitTimeout(requested, 1_800_000, 7_200_000);
}

/** Characters of output that a model sees. */
export function outputLimit(environment: Environment): number {
  const requested = positive(environment["BASH_MAX_OUTPUT_LENGTH"]) ?? 30_000;
  return Math.min(128_000, Math.max(4_000, requested));
}

function limitTimeout(requested: number | undefined, usual: number, most: number): TimeLimit {
  if (requested === undefined || requested <= 0) return { milliseconds: usual };
  if (requested <= most) return { milliseconds: requested };
  return { milliseconds: most, note: `The time limit was reduced to ${most} ms, the maximum.` };
}

/** Node counts timers in 31 bits. */
const maxTimer = 2 ** 31 - 1;

function positive(value: string | undefined): number | undefined {
  const number = value === undefined || value.trim() === "" ? Number.NaN : Number(value);
  return Number.isInteger(number) && number > 0 ? Math.min(number, maxTimer) : undefined;
}
