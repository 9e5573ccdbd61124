// @io

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { abortCode } from "@retinue/base/foundation/abortable.ts";
import { parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { spawnProcess } from "@retinue/base/foundation/spawn-process.ts";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import { streamLines } from "@retinue/base/foundation/stream-lines.ts";
import { noTotals, type RunEnding, type RunEvent } from "../../conversation/run-event.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import { handInPlanTool } from "../../planning/plan-rights.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { TreeBudget } from "../../tasks/tree-budget.ts";
import { type BudgetRequest, serveBudget } from "./create-remote-budget.ts";
import type { PortableOptions } from "./portable-options.ts";

/** A call of a member that has to be asked about, as it comes from its process. */
export interface MemberQuestion {
  readonly id: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly callId: string;
  readonly reason: string;
}

export interface MemberAnswer {
  /** `ask`: the program leaves it open, and no person is there. */
  readonly behavior: "allow" | "deny" | "ask";
  readonly message?: string;
  readonly updatedInput?: Readonly<Record<string, unknown>>;
}

export interface MemberProcessOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly trusted: boolean;
  /** What the lead's own runtime was started with. */
  readonly options: PortableOptions;
  /** What all agents of the session may take together. */
  readonly tree: TreeBudget;
  /** Absent where neither a program nor a person can be asked. */
  readonly ask?: (question: MemberQuestion, signal: AbortSignal) => Promise<MemberAnswer>;
  /** Whether a person answers what the program leaves open. */
  readonly asksPerson: boolean;
  readonly report?: ((text: string) => void) | undefined;
  /** Called with the number of the process when it runs. */
  readonly onStart: (pid: number) => void;
}

/** The first line for the process of a member. */
export interface MemberStart {
  readonly type: "start";
  readonly plan: ChildPlan;
  readonly options: PortableOptions;
  readonly trusted: boolean;
  readonly asks: { readonly program: boolean; readonly person: boolean };
  /** The lead keeps the budget of the tree. */
  readonly hasBudget: boolean;
}

/** Kinds of functions of the program that reach a process of its own: those that answer questions, and those that the lead calls. */
const forwarded: ReadonlySet<string> = new Set(["approver", "canUseTool", "onEnd"]);

/** What reaches the person only from the process of the lead. */
const askTool = "AskUserQuestion";

/**
 * The plan of a member as another process can carry it out: tools for the person at the lead that it has only because it
 * has all of them stay behind. It hands in plans by a tool of its own.
 */
function withoutLeadTools(plan: ChildPlan): ChildPlan {
  if (plan.definition.tools !== undefined) return plan;
  const isPlanning = plan.policy.mode === "plan";
  const tools = plan.tools.filter(({ name }) => name !== askTool && (name !== handInPlanTool || isPlanning));
  const functions = plan.functions?.filter(({ kind, name }) => kind !== "tool" || name !== handInPlanTool);
  return { ...plan, tools, ...(functions === undefined ? {} : { functions }) };
}

/** Why a member cannot run in a process of its own. */
export function refuseMemberProcess(whole: ChildPlan): string | undefined {
  const plan = withoutLeadTools(whole);
  const asksItself = plan.tools.some(({ name }) => name === askTool);
  const stuck = (plan.functions ?? []).filter(
    ({ kind }) => !forwarded.has(kind) && (kind !== "ask" || asksItself),
  );
  if (stuck.length === 0) return undefined;
  const list = stuck.map(({ kind, name }) => `${kind} ${JSON.stringify(name)}`).join(", ");
  return `it needs functions of this program, which another process does not have: ${list}; use teammateMode "in-process"`;
}

/** Carries out the plan of a member in a process of its own, and passes on what happens there. */
export async function* runMemberProcess(
  plan: ChildPlan,
  {
    control,
    signal,
    ...options
  }: MemberProcessOptions & { readonly control: TaskControl; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent> {
  const child = await spawnProcess(process.execPath, [findProgram(), "run-teammate"], {
    cwd: plan.sessionDirectory,
    env: { ...options.environment, HOME: options.home },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null)
    throw new RetinueError("no-pipes", "It has no pipes.");
  if (child.pid !== undefined) options.onStart(child.pid);
  const exited = new Promise<string>((resolve) => {
    child.on("close", (code, killedBy) => resolve(killedBy ?? `exit code ${code}`));
  });
  // A process that has died is noticed by its end.
  stdin.on("error", () => undefined);
  const send = (line: object): void => {
    if (stdin.writable) stdin.write(`${JSON.stringify(line)}\n`);
  };
  const errors = createErrorTail(stderr, options.report);
  const kill = stopOnAbort(child, send, signal);
  const over = new AbortController();
  using budget = serveBudget(options.tree, (line) => send({ type: "budget", ...line }));
  let isIdle = false;
  let hasEnded = false;
  try {
    send(startLine(plan, options));
    for await (const line of streamLines(stdout)) {
      const message = readMessage(line);
      if (message?.type === "ask")
        void answer(message.question, { ask: options.ask, send, signal: over.signal });
      if (message?.type === "budget") budget.take(message.request);
      if (message?.type !== "event") continue;
      if (isIdle && message.event.type !== "run-ended")
        await control.takePlace?.(signal).catch(() => undefined);
      isIdle = message.event.type === "run-idled";
      hasEnded ||= message.event.type === "run-ended";
      // It receives nothing more, and ends when its own record is closed.
      if (hasEnded) kill();
      yield message.event;
    }
    const how = await exited;
    if (!hasEnded) yield { type: "run-ended", ending: diedEnding(how, errors(), signal) };
  } finally {
    over.abort();
    kill();
  }
}

function startLine(plan: ChildPlan, options: MemberProcessOptions): MemberStart {
  const { functions: _here, ...rest } = withoutLeadTools(plan);
  const { team, ...task } = plan.task;
  const { isProcess: _mark, ...membership } = team ?? { team: "", member: "", taskList: "" };
  const { costUsd: cost, tokens, toolCalls } = plan.treeLimits ?? {};
  return {
    type: "start",
    plan: { ...rest, task: { ...task, ...(team === undefined ? {} : { team: membership }) } },
    options: options.options,
    trusted: options.trusted,
    asks: { program: options.ask !== undefined, person: options.asksPerson },
    hasBudget: [cost, tokens, toolCalls].some((limit) => limit !== undefined),
  };
}

const paneLimitMs = 10_000;

/** Opens a tmux pane that shows a member; gives its id, or throws with what tmux said. */
export async function openPane(
  { team, member }: { readonly team: string; readonly member: string },
  { environment, home }: Pick<MemberProcessOptions, "environment" | "home">,
): Promise<string> {
  const { CLAUDE_CONFIG_DIR: config } = environment;
  // A pane has the environment of the tmux server, which may be another.
  const variables = [`HOME=${home}`, ...(config === undefined ? [] : [`CLAUDE_CONFIG_DIR=${config}`])];
  const words = [
    ...["split-window", "-d", "-P", "-F", "#{pane_id}"],
    ...variables.flatMap((variable) => ["-e", variable]),
    ...[process.execPath, findProgram(), "teams", "watch"],
  ];
  const { exitCode, stdout, stderr } = await runProcess({
    file: "tmux",
    arguments: [...words, team, member],
    directory: home,
    environment: Object.fromEntries(
      Object.entries({ ...environment, HOME: home }).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    ),
    signal: AbortSignal.timeout(paneLimitMs),
    maxBytes: 10_000,
  });
  if (exitCode === 0) return stdout.trim();
  throw new RetinueError("no-pane", `tmux could not open a pane for ${member}: ${stderr.trim()}`);
}

/** How long a process may take to end after it was asked to. */
const graceMs = 5000;

type Child = Awaited<ReturnType<typeof spawnProcess>>;

/** Gives back how to end the process now, whatever it does. */
function stopOnAbort(child: Child, send: (line: object) => void, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    send({ type: "stop", code: abortCode(signal) });
    timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  child.on("close", () => clearTimeout(timer));
  return () => {
    signal.removeEventListener("abort", stop);
    child.stdin?.end();
    if (child.exitCode === null && child.signalCode === null)
      timer ??= setTimeout(() => child.kill("SIGKILL"), graceMs);
  };
}

async function answer(
  question: MemberQuestion,
  {
    ask,
    send,
    signal,
  }: {
    readonly ask: MemberProcessOptions["ask"];
    readonly send: (line: object) => void;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const refusal: MemberAnswer = { behavior: "deny", message: "no one can be asked here" };
  const given = (await ask?.(question, signal).catch(() => refusal)) ?? refusal;
  if (!signal.aborted) send({ type: "answer", id: question.id, ...given });
}

type MemberMessage =
  | { readonly type: "event"; readonly event: RunEvent }
  | { readonly type: "ask"; readonly question: MemberQuestion }
  | { readonly type: "budget"; readonly request: BudgetRequest };

/** Lines of our own program; anything else on its output is passed over. */
function readMessage(line: string): MemberMessage | undefined {
  const value = parseJsonRecord(line);
  // Both ends are the same version of the same program.
  if (["event", "ask", "budget"].includes(String(value?.["type"]))) return value as unknown as MemberMessage;
  return undefined;
}

/** What a process said last on its error output. */
function createErrorTail(
  stream: NodeJS.ReadableStream,
  report: MemberProcessOptions["report"],
): () => string {
  const lines: string[] = [];
  createInterface({ input: stream }).on("line", (line) => {
    lines.push(line);
    if (lines.length > 5) lines.shift();
    report?.(line.replace(/^retinue: /, ""));
  });
  return () => lines.join("\n");
}

function diedEnding(how: string, errors: string, signal: AbortSignal): RunEnding {
  const error = `Its process ended (${how}).${errors === "" ? "" : ` ${errors}`}`;
  if (!signal.aborted)
    return { status: "failed", reason: "process_died", text: "", error, totals: noTotals, denials: [] };
  return { status: "stopped", reason: abortCode(signal), text: "", totals: noTotals, denials: [] };
}

/** The command beside this file, whether it runs from the sources or from the package. */
export function findProgram(): string {
  const here: string | undefined = import.meta.dirname;
  if (here === undefined)
    throw new RetinueError(
      "no-command",
      "A bundled program cannot start teammates in processes of their own.",
      {
        advice: "Exclude retinue from the bundle (esbuild: --external:retinue).",
      },
    );
  for (let folder = here; ; folder = dirname(folder)) {
    const program = join(folder, "bin", "retinue.js");
    if (existsSync(program) || dirname(folder) === folder) return program;
  }
}
