import type { MergeEntry, MergeQueue, MergeStep } from "@retinue/core/protocol/merge-step.ts";
import { plural } from "./format.ts";
import { mergeOutcome } from "./merge-outcome.ts";
import { createPaint, type Paint } from "./paint.ts";
import { cutTo, stripControlCharacters } from "./strip-control-characters.ts";

export interface MergeStyle {
  readonly paint: Paint;
  readonly width: number;
}

/** What every child of the queue has come to, one line each, and why where something was left. */
export function describeQueue(queue: MergeQueue, style: MergeStyle): readonly string[] {
  return queue.entries.flatMap((entry) => [describeEntry(entry, style), ...describeReason(entry)]);
}

/** How many there are, of which session, where to, and with which checks. */
export function describeHeading({ sessionId, into, checks, entries }: MergeQueue): string {
  const tested = checks.length === 0 ? "no checks" : checks.map((run) => `\`${run}\``).join(", ");
  return safe(`${plural(entries.length, "agent")} of session ${sessionId.slice(0, 8)} → ${into} (${tested})`);
}

const doneSteps: ReadonlySet<string> = new Set(["advanced", "empty", "left", "removed", "discarded"]);

/** The child that a step is about, where the step has its outcome. */
export function entryDone(step: MergeStep, { entries }: MergeQueue): MergeEntry | undefined {
  if (!doneSteps.has(step.type) || !("agent" in step)) return undefined;
  return entries.find(({ agent }) => agent === step.agent);
}

/** What people read of a step in a conversation; undefined where there is nothing new for them. */
export function mergeNotice({
  step,
  queue,
}: {
  readonly step?: MergeStep | undefined;
  readonly queue: MergeQueue;
}): string | undefined {
  const style = { paint: createPaint(false), width: 200 };
  if (step === undefined)
    return [describeHeading(queue), ...describeQueue(queue, style), "Nothing was changed."].join("\n");
  if (step.type === "started") return step.into === "" ? undefined : describeHeading(queue);
  if (step.type === "ended")
    return queue.into === "" ? undefined : describeOutcome(queue, { applyWith: "/merge apply" }).join("\n");
  const entry = entryDone(step, queue);
  return entry && [describeEntry(entry, style), ...describeReason(entry)].join("\n");
}

const stateWidth = 10;

/** One child in one line: id, type, state, files, task. */
export function describeEntry(entry: MergeEntry, { paint, width }: MergeStyle): string {
  const { agent, agentType, state, files, description, resolver } = entry;
  const changed = files === undefined ? "" : plural(files.length, "file");
  const by = resolver === undefined || state === "left" ? "" : `, resolved by ${resolver}`;
  const head = `${agent.slice(0, 9).padEnd(9)} ${agentType.slice(0, 16).padEnd(16)} `;
  const tail = ` ${changed.padEnd(8)} ${description}${by}`;
  const room = Math.max(0, width - head.length - stateWidth);
  const colour = colourOf(entry, paint);
  return `${safe(head)}${colour(state.padEnd(stateWidth))}${cutTo(safe(tail), room).trimEnd()}`;
}

/** Why it was left, and the commands to continue by hand. */
export function describeReason({ state, reason, commands = [] }: MergeEntry): readonly string[] {
  if (state !== "left") return [];
  return [`  ${safe(reason ?? "")}`, ...commands.map((command) => `    ${safe(command)}`)];
}

function colourOf({ state }: MergeEntry, paint: Paint): (text: string) => string {
  if (state === "left") return paint.warning;
  if (state === "integrated" || state === "merged") return paint.good;
  return state === "empty" || state === "waiting" || state === "discarded" ? paint.dim : paint.note;
}

/** What the merge as a whole has come to, and what a person may do now. */
export function describeOutcome(
  queue: MergeQueue,
  options: Parameters<typeof mergeOutcome>[1],
): readonly string[] {
  return mergeOutcome(queue, options).map(safe);
}

function safe(text: string): string {
  return stripControlCharacters(text);
}
