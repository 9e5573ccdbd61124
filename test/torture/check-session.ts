import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "@retinue/core/conversation/message.ts";
import { loadSession } from "@retinue/core/journal/session-choices.ts";
import { findAnthropicFlaw } from "@retinue/testing/anthropic-wire.ts";
import { callIdsOf, deedOf, doneDeeds, plan, resultsOf } from "./torture-script.ts";

export interface SessionState {
  readonly lines: number;
  readonly torn: boolean;
  readonly done: ReadonlySet<string>;
  /** How many calls so far were cut off and answered as interrupted. */
  readonly interrupted: number;
}

export interface CheckedPlace {
  readonly transcript: string;
  readonly project: string;
  /** How often the last line was torn; such a line is given an end when the file is opened again, and then passed over. */
  readonly tears: number;
  /** Calls whose line was torn away after they were written down; they may have run. */
  readonly tornCalls: ReadonlySet<string>;
}

/** Reads what a killed run left behind and throws when a promise is broken. */
export async function checkSession({ transcript, ...place }: CheckedPlace): Promise<SessionState> {
  const text = existsSync(transcript) ? readFileSync(transcript, "utf8") : "";
  const lines = text.split("\n");
  const torn = lines.pop() !== "";
  const unreadable = lines.filter((line) => !isJson(line));
  if (unreadable.length > place.tears)
    throw new Error(`A line of the transcript is not JSON: ${unreadable.at(-1)?.slice(0, 200)}`);
  const state = { lines: lines.length - unreadable.length, torn };
  if (state.lines === 0) return { ...state, done: new Set(), interrupted: 0 };
  const {
    messages,
    damage: { broken },
  } = await loadSession(transcript);
  if (broken > unreadable.length + Number(torn))
    throw new Error(`${broken} lines of the transcript were passed over.`);
  checkConversation(messages);
  checkDeeds(messages, place);
  const failed = resultsOf(messages).filter(({ is_error }) => is_error === true);
  const odd = failed.find(({ content }) => !/interrupted/i.test(JSON.stringify(content)));
  if (odd !== undefined) throw new Error(`A call failed that should not: ${JSON.stringify(odd.content)}`);
  return { ...state, done: doneDeeds(messages), interrupted: failed.length };
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/** A provider accepts the conversation with one more prompt behind it. */
export function checkConversation(messages: readonly Message[]): void {
  const sent = [...messages, ...(messages.at(-1)?.role === "user" ? [] : [proceed])];
  const flaw = findAnthropicFlaw({ model: "any", max_tokens: 1, messages: sent });
  if (flaw !== undefined) throw new Error(`The rebuilt conversation is not valid: ${flaw}`);
  for (const [index, { role }] of messages.entries())
    if (role !== (index % 2 === 0 ? "user" : "assistant"))
      throw new Error(`Message ${index} of the rebuilt conversation is of the ${role}.`);
}

const proceed = { role: "user", content: "Continue." } as const;

/** Compares what the conversation says with what really happened in the folder. */
function checkDeeds(
  messages: readonly Message[],
  { project, tornCalls }: Pick<CheckedPlace, "project" | "tornCalls">,
): void {
  const logged = readLog(project);
  const twice = logged.find((id, index) => logged.indexOf(id) !== index);
  if (twice !== undefined) throw new Error(`The call ${twice} ran twice.`);
  const known = new Set([...callIdsOf(messages), ...tornCalls]);
  const unknown = logged.find((id) => !known.has(id));
  if (unknown !== undefined) throw new Error(`The call ${unknown} ran before it was written down.`);
  const finished = resultsOf(messages).filter(({ is_error }) => is_error !== true);
  const deeds = finished.map(({ tool_use_id }) => deedOf(tool_use_id));
  const repeated = deeds.find((deed, index) => deeds.indexOf(deed) !== index);
  if (repeated !== undefined) throw new Error(`${repeated} was finished and then done again.`);
  for (const { tool_use_id: id } of finished) {
    const isWrite = plan.flat().find(({ name }) => name === deedOf(id))?.tool === "Write";
    const isThere = isWrite ? existsSync(join(project, "written", `${id}.txt`)) : logged.includes(id);
    if (!isThere) throw new Error(`The call ${id} counts as finished but left nothing behind.`);
  }
}

function readLog(project: string): readonly string[] {
  const file = join(project, "log.txt");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").trim().split("\n");
}
