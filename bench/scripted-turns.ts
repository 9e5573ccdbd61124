import { type Message, textOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";

/** How many files a measured agent reads in turn; they are in its working folder. */
export const fileCount = 64;

export function fileName(number: number): string {
  return `file-${number % fileCount}.txt`;
}

/**
 * Answers by the prompt alone, so that one server serves any number of runs: `turns=N` calls Read in N answers, `calls=K`
 * times in each, and then says DONE; with `writes` it calls Write instead; `children=N` hands the same to N child agents in one answer; `letters=N` is one
 * answer of that length. With `counted` each answer says its number, so that a compaction does not make it begin anew.
 */
export function answerScripted({ messages }: ModelRequest): StepAnswer {
  const prompt = firstText(messages);
  const letters = /\bletters=(\d+)/.exec(prompt)?.[1];
  if (letters !== undefined) return { text: "0123456789".repeat(Number(letters) / 10) };
  const turns = Number(/\bturns=(\d+)/.exec(prompt)?.[1] ?? 0);
  const folder = /\bfolder=(\S+)/.exec(prompt)?.[1] ?? "";
  const isCounted = /\bcounted\b/.test(prompt);
  if (isCounted && isSummaryQuestion(messages)) return { text: "Files were read; continue." };
  const done = isCounted ? lastNumber(messages) : messages.filter(({ role }) => role === "assistant").length;
  const children = Number(/\bchildren=(\d+)/.exec(prompt)?.[1] ?? 0);
  if (done >= (children > 0 ? 1 : turns)) return { text: "DONE" };
  if (children > 0) return { calls: Array.from({ length: children }, () => childCall(turns, folder)) };
  const calls = Number(/\bcalls=(\d+)/.exec(prompt)?.[1] ?? 1);
  if (/\bwrites\b/.test(prompt)) {
    const content = `Line of file ${done}, with some words to read.\n`.repeat(8);
    return { calls: [{ name: "Write", input: { file_path: `${folder}/written/${done}.txt`, content } }] };
  }
  return {
    ...(isCounted ? { text: `answer=${done + 1}` } : {}),
    calls: Array.from({ length: calls }, (_, call) => ({
      name: "Read",
      input: { file_path: `${folder}/${fileName(done * calls + call)}` },
    })),
  };
}

function childCall(turns: number, folder: string) {
  const prompt = `turns=${turns} folder=${folder}`;
  return {
    name: "Agent",
    input: { description: "read the files", subagent_type: "general-purpose", prompt },
  };
}

/** The last answer stays word for word in any compaction. */
function lastNumber(messages: readonly Message[]): number {
  const last = messages.findLast(({ role }) => role === "assistant");
  return last === undefined ? 0 : Number(/answer=(\d+)/.exec(textOf(last))?.[1] ?? 0);
}

function isSummaryQuestion(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  return last !== undefined && textOf(last).includes("replaced by a summary");
}

function firstText(messages: readonly Message[]): string {
  const content = messages[0]?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}
