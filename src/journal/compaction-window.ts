import type { ConversationSources } from "./rebuild-conversation.ts";

/** The lines of the conversation since the last compaction, so that the next one can say which of them it keeps. */
export interface CompactionWindow {
  addAnswer(lines: readonly string[]): void;
  add(lines: readonly string[]): void;
  /** From the first line of the answer that is so many from the end. */
  newest(answers: number): readonly string[];
  /** Those continue behind a summary. */
  replace(summary: string, answers: number): void;
}

export function createCompactionWindow(
  { lines: before, answers: begun }: ConversationSources = { lines: [], answers: [] },
): CompactionWindow {
  let lines = [...before];
  const places = new Map(lines.map((line, at) => [line, at]));
  let answers = begun.flatMap((line) => places.get(line) ?? []);
  const placeOf = (count: number): number =>
    count === 0 ? lines.length : (answers.at(-count) ?? answers[0] ?? lines.length);
  return {
    addAnswer(added) {
      answers.push(lines.length);
      lines.push(...added);
    },
    add: (added) => void lines.push(...added),
    newest: (count) => lines.slice(placeOf(count)),
    replace(summary, count) {
      const place = placeOf(count);
      lines = [summary, ...lines.slice(place)];
      answers = answers.filter((at) => at >= place).map((at) => at - place + 1);
    },
  };
}
