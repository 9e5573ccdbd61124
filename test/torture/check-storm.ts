import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { rebuildConversation } from "@retinue/core/journal/rebuild-conversation.ts";
import { type FamilyMember, memberOf } from "./check-family.ts";
import { checkConversation } from "./check-session.ts";
import { childCount } from "./children-script.ts";
import { listTranscripts, readTranscript } from "./kept-files.ts";
import { stormPlan } from "./storm-script.ts";
import { callIdsOf, deedOf, resultsOf } from "./torture-script.ts";

export interface StormPlace {
  /** Of the main agent. */
  readonly transcript: string;
  readonly project: string;
}

/** What the files show of a storm so far; every list is empty when all promises hold. */
export interface StormState {
  readonly hasStarted: boolean;
  readonly members: readonly FamilyMember[];
  /** Steps whose result is written down. */
  readonly done: ReadonlySet<string>;
  /** Agents that were started for work that another one had started. */
  readonly restarted: readonly string[];
  /** Steps that were done twice. */
  readonly doubled: readonly string[];
  /** Steps that count as done and left nothing, or ran before they were written down. */
  readonly lost: readonly string[];
  /** Answers that a task of this session is not known. */
  readonly unknownTasks: readonly string[];
}

/** Reads what a process left behind; throws only when a transcript itself is broken. */
export function checkStorm({ transcript, project }: StormPlace): StormState {
  const read = listTranscripts(transcript).map((file) => ({ file, ...readTranscript(file) }));
  const main = read.find(({ file }) => file === transcript);
  const members = read.filter(({ file }) => file !== transcript).map(memberOf);
  const spoken = main === undefined ? [] : rebuildConversation(main.records).messages;
  for (const messages of [spoken, ...members.map((member) => member.messages)])
    if (messages.length > 0) checkConversation(messages);
  const all = members.flatMap(({ messages }) => messages);
  const finished = resultsOf(all).filter(({ is_error }) => is_error !== true);
  const logged = readLog(project);
  const calls = new Set(callIdsOf(all));
  const steps = logged.map(({ step }) => step);
  const isThere = (id: string): boolean =>
    steps.includes(deedOf(id)) || existsSync(join(project, "written", `${id}.txt`));
  const deeds = finished.map(({ tool_use_id }) => deedOf(tool_use_id));
  return {
    hasStarted: main?.records.some(({ type }) => type === "user") === true,
    members,
    done: new Set(deeds),
    restarted: restartsOf(members),
    doubled: [...twice(steps), ...twice(deeds)],
    lost: [
      ...finished.flatMap(({ tool_use_id }) => (isThere(tool_use_id) ? [] : [tool_use_id])),
      ...logged.flatMap(({ call }) => (calls.has(call) ? [] : [call])),
    ],
    unknownTasks: resultsOf(spoken).flatMap(({ content }) => {
      const text = JSON.stringify(content);
      return text.includes("There is no task") ? [text] : [];
    }),
  };
}

/** Throws unless every child has done everything and has ended well. */
export function checkStormOver({ members, done }: StormState): void {
  for (let child = 0; child < childCount; child += 1) {
    const own = members.filter((member) => member.child === child);
    if (!own.some(({ isDone }) => isDone)) throw new Error(`Child ${child} has not finished.`);
    const missing = stormPlan(child)
      .flat()
      .find(({ name }) => !done.has(name));
    if (missing !== undefined) throw new Error(`${missing.name} was never done.`);
  }
}

/** How its last run ended, as `status reason`; undefined while it has not. */
export function endingOf({ records }: FamilyMember): string | undefined {
  const last = records.findLast(
    ({ type, runEnding }) =>
      ["user", "assistant", "retinue-plan"].includes(String(type)) || isRecord(runEnding),
  );
  return isRecord(last?.runEnding) ? `${last.runEnding.status} ${last.runEnding.reason}` : undefined;
}

function restartsOf(members: readonly FamilyMember[]): readonly string[] {
  const seen = new Set<number>();
  return members.flatMap(({ child, agentId }) => {
    if (child === undefined) return [];
    if (seen.has(child)) return [agentId];
    seen.add(child);
    return [];
  });
}

function twice(values: readonly string[]): readonly string[] {
  return values.filter((value, index) => values.indexOf(value) !== index);
}

function readLog(project: string): readonly { readonly step: string; readonly call: string }[] {
  const file = join(project, "log.txt");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line) => {
    const [step = "", call = ""] = line.split(" ");
    return call === "" ? [] : [{ step, call }];
  });
}
