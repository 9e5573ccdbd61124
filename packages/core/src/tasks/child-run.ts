import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { InFlightCall, Repeats } from "../conversation/interrupted-agent.ts";
import { type ToolUseBlock, textOf } from "../conversation/message.ts";
import { type EarlierPlan, readEarlierPlans } from "../journal/journaled-plan.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import type { EarlierRun } from "../planning/agent-request.ts";
import { type KnownChild, loadChildMeta } from "./child-meta.ts";

/** What a child's transcript shows to a process that continues with it or settles how it ended. */
export interface ChildRun {
  /** Its conversation has started; otherwise it got no further than its plan. */
  readonly hasStarted: boolean;
  /** The plan of its first run, which later ones do not exceed, and of the last. */
  readonly first?: EarlierPlan;
  readonly last?: EarlierPlan;
  /** The session that another vendor's program keeps for it. */
  readonly runnerSession?: string;
  readonly inFlight: readonly InFlightCall[];
  /** Hooks were notified of its start and not yet of its stop. */
  readonly isStopOwed: boolean;
  readonly lastText: string;
}

/** Total: any lines will do. */
export function foldChildRun(records: readonly JsonRecord[]): ChildRun {
  const { messages, inFlight } = rebuildConversation(records, { sidechain: true });
  const plans = readEarlierPlans(records);
  const [first] = plans;
  const last = plans.at(-1);
  const answer = messages.findLast(
    (message) => message.role === "assistant" && textOf(message).trim() !== "",
  );
  return {
    hasStarted: messages.length > 0,
    first,
    last,
    ...runnerSessionOf(records),
    inFlight: inFlight.map(describeInFlight),
    isStopOwed: isStopOwed(records),
    lastText: answer === undefined ? "" : textOf(answer),
  };
}

function runnerSessionOf(records: readonly JsonRecord[]): Pick<ChildRun, "runnerSession"> {
  const session = records.findLast(({ type }) => type === "retinue-runner")?.session;
  return typeof session === "string" && session !== "" ? { runnerSession: session } : {};
}

/**
 * That hooks are notified is written down before they are. A run without such lines had no hooks; it counts as started
 * with its first words and as stopped with its ending. Without a plan another program wrote it, and owes us nothing.
 */
export function isStopOwed(records: readonly JsonRecord[]): boolean {
  let isOurs = false;
  let reported: unknown;
  let spoke = false;
  for (const record of records) {
    if (record.type === "retinue-plan") [isOurs, reported, spoke] = [true, undefined, false];
    if (record.type === "retinue-told") reported = record.event;
    if (record.runEnding !== undefined) spoke = false;
    spoke ||= hasContent(record);
  }
  return isOurs && (reported === undefined ? spoke : reported === "SubagentStart" || reported === "goes-on");
}

/** Results alone do not count: those of calls that were cut off are put in before a run begins. */
function hasContent({ type, message }: JsonRecord): boolean {
  if (type === "assistant") return true;
  if (type !== "user" || !isRecord(message)) return false;
  const { content } = message;
  if (!Array.isArray(content)) return typeof content === "string";
  return content.some((block) => isRecord(block) && block.type !== "tool_result");
}

export function describeInFlight({
  call,
  repeats,
}: {
  readonly call: ToolUseBlock;
  readonly repeats: Repeats;
}): InFlightCall {
  return { name: call.name, input: shortInput(call.input), repeats };
}

/** One call as a few words: `Bash "npm test" (may have run)`. */
export function inFlightText({ name, input, repeats }: InFlightCall): string {
  const what = input === "" ? name : `${name} ${JSON.stringify(input)}`;
  return `${what} (${standing[repeats]})`;
}

/** The same while it runs: `Bash npm test`. */
export function callText({ name, input }: Pick<InFlightCall, "name" | "input">): string {
  return `${name} ${input}`.trim();
}

const standing: Readonly<Record<Repeats, string>> = {
  pure: "only reads",
  idempotent: "can be repeated",
  unsafe: "may have run",
};

const reporting = [
  "command",
  "file_path",
  "path",
  "pattern",
  "url",
  "query",
  "skill",
  "description",
  "prompt",
];
const longest = 120;

/** What a call is about, on one line. */
export function shortInput(input: unknown): string {
  if (!isRecord(input)) return "";
  const key = reporting.find((name) => typeof input[name] === "string");
  const text = key === undefined ? JSON.stringify(input) : String(input[key]);
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

interface KnownRun {
  readonly agentType: string;
  readonly model?: ChosenModel;
  readonly earlier?: EarlierRun;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentId?: string;
}

/** What a child was before, by its files; undefined when there is no such child. */
export async function loadEarlierRun(files: {
  readonly transcript: string;
  readonly meta: string;
}): Promise<KnownRun | undefined> {
  const meta = await loadChildMeta(files.meta);
  const lines = await readLines(files.transcript).catch(() => undefined);
  return foldEarlierRun(lines?.values, meta);
}

/** The same from the lines of its transcript, wherever they are kept. */
export function foldEarlierRun(
  lines: readonly JsonRecord[] | undefined,
  meta?: KnownChild,
): KnownRun | undefined {
  const run = lines === undefined ? undefined : foldChildRun(lines);
  const agentType = meta?.agentType ?? run?.last?.agentType;
  if (agentType === undefined) return undefined;
  // The sidecar is written behind the plan and is not synced, so after a power cut it may be missing.
  const model = meta?.model ?? run?.last?.model;
  return {
    agentType,
    model,
    parentId: run?.last?.parentId,
    earlier: run === undefined ? undefined : earlierOf(run),
  };
}

function earlierOf({ first, last, hasStarted, runnerSession }: ChildRun): EarlierRun {
  const { mode, name, callId, isolation, cwd, env, maxTurns, effort, prompt, keptChecks } = last ?? {};
  return {
    tools: first?.tools,
    mode,
    name,
    callId,
    isolation,
    cwd,
    keptEnv: env,
    maxTurns,
    effort,
    keptChecks,
    runnerSession,
    ...(hasStarted || prompt === undefined ? {} : { unstartedPrompt: prompt }),
  };
}
