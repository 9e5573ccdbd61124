import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Message } from "@retinue/core/conversation/message.ts";
import { rebuildConversation } from "@retinue/core/journal/rebuild-conversation.ts";
import { checkConversation } from "./check-session.ts";
import { childCount, childOfConversation, childPlan } from "./children-script.ts";
import { listTranscripts, readTranscript } from "./kept-files.ts";
import { callIdsOf, deedOf, resultsOf } from "./torture-script.ts";

export interface FamilyPlace {
  /** Of the main agent. */
  readonly transcript: string;
  readonly project: string;
  /** How often the last line of some transcript was torn. */
  readonly tears: number;
  readonly tornCalls: ReadonlySet<string>;
}

export interface FamilyMember {
  readonly file: string;
  readonly agentId: string;
  readonly records: ReturnType<typeof readTranscript>["records"];
  readonly messages: readonly Message[];
  /** Which child it is; undefined before its first words. */
  readonly child: number | undefined;
  readonly isDone: boolean;
}

export interface FamilyState {
  readonly hasStarted: boolean;
  /** The files whose last line has no end, each with its length. */
  readonly torn: readonly string[];
  readonly isTorn: boolean;
  readonly members: readonly FamilyMember[];
  readonly done: ReadonlySet<string>;
  readonly interrupted: number;
}

/** Reads what a killed process left behind and throws when a promise is broken. */
export function checkFamily(place: FamilyPlace): FamilyState {
  const files = listTranscripts(place.transcript);
  const read = files.map((file) => ({ file, ...readTranscript(file) }));
  const unreadable = read.reduce((sum, file) => sum + file.unreadable, 0);
  if (unreadable > place.tears)
    throw new Error(`${unreadable} lines are not JSON, ${place.tears} were torn.`);
  const main = read.find(({ file }) => file === place.transcript);
  const members = read.filter(({ file }) => file !== place.transcript).map(memberOf);
  const conversations = [
    ...members.map(({ messages }) => messages),
    ...(main === undefined ? [] : [rebuildConversation(main.records).messages]),
  ];
  for (const messages of conversations) if (messages.length > 0) checkConversation(messages);
  checkTwins(members);
  const all = members.flatMap(({ messages }) => messages);
  checkDeeds(all, place);
  const results = conversations.flatMap(resultsOf);
  const failed = results.filter(({ is_error }) => is_error === true);
  const odd = failed.find(({ content }) => !/interrupted/i.test(JSON.stringify(content)));
  if (odd !== undefined) throw new Error(`A call failed that should not: ${JSON.stringify(odd.content)}`);
  const good = resultsOf(all).filter(({ is_error }) => is_error !== true);
  return {
    hasStarted: main?.records.some(({ type }) => type === "user") === true,
    torn: read.flatMap(({ file, isTorn }) => (isTorn ? [`${file} ${statSync(file).size}`] : [])),
    isTorn: read.some((file) => file.isTorn),
    members,
    done: new Set(good.map(({ tool_use_id }) => deedOf(tool_use_id))),
    interrupted: failed.length,
  };
}

/** Throws unless every child has done everything and has ended well. */
export function checkFinished({ members, done }: FamilyState): void {
  for (let child = 0; child < childCount; child += 1) {
    const own = members.filter((member) => member.child === child);
    if (own.length !== 1 || own[0]?.isDone !== true)
      throw new Error(`Child ${child} has not finished: ${own.map(({ agentId }) => agentId).join(", ")}`);
    const missing = childPlan(child)
      .flat()
      .find(({ name }) => !done.has(name));
    if (missing !== undefined) throw new Error(`${missing.name} was never done.`);
  }
}

export function memberOf({
  file,
  records,
}: { readonly file: string } & ReturnType<typeof readTranscript>): FamilyMember {
  const { messages } = rebuildConversation(records, { sidechain: true });
  const ending = records.findLast(
    ({ type, runEnding }) => type === "user" || type === "assistant" || runEnding !== undefined,
  )?.runEnding;
  return {
    file,
    agentId: basename(file).replace(/^agent-|\.jsonl$/g, ""),
    records,
    messages,
    child: childOfConversation(messages),
    isDone: Reflect.get(Object(ending), "status") === "completed",
  };
}

/** No second agent is started for a task that one already works on. */
function checkTwins(members: readonly FamilyMember[]): void {
  const begun = members.flatMap(({ child, agentId }) => (child === undefined ? [] : [{ child, agentId }]));
  const twin = begun.find(({ child }, index) => begun.findIndex((other) => other.child === child) !== index);
  if (twin !== undefined)
    throw new Error(`Child ${twin.child} was started twice, the second is ${twin.agentId}.`);
}

/** Compares what the conversations say with what really happened in the folder. */
function checkDeeds(messages: readonly Message[], { project, tornCalls }: FamilyPlace): void {
  const logFile = join(project, "log.txt");
  const logged = existsSync(logFile) ? readFileSync(logFile, "utf8").trim().split("\n") : [];
  const twice = logged.find((id, index) => logged.indexOf(id) !== index);
  if (twice !== undefined) throw new Error(`The call ${twice} ran twice.`);
  const known = new Set([...callIdsOf(messages), ...tornCalls]);
  const unknown = logged.find((id) => id !== "" && !known.has(id));
  if (unknown !== undefined) throw new Error(`The call ${unknown} ran before it was written down.`);
  const results = resultsOf(messages);
  const finished = results.filter(({ is_error }) => is_error !== true).map(({ tool_use_id }) => tool_use_id);
  const deeds = finished.map(deedOf);
  const repeated = deeds.find((deed, index) => deeds.indexOf(deed) !== index);
  if (repeated !== undefined) throw new Error(`${repeated} was finished and then done again.`);
  const there = new Set(logged);
  const missing = finished.find((id) => !there.has(id) && !existsSync(join(project, "written", `${id}.txt`)));
  if (missing !== undefined)
    throw new Error(`The call ${missing} counts as finished but left nothing behind.`);
}
