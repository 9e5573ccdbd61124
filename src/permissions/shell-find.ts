import { type Judgement, judgement, used } from "./shell-judgement.ts";
import { plainWord, type Word } from "./shell-word.ts";

/** What `find` starts for the files it finds. */
export interface FoundAction {
  readonly words: readonly Word[];
  /** It runs in the directory of each file. */
  readonly elsewhere: boolean;
}

const starting = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const writing = new Set(["-fprint", "-fprint0", "-fls", "-fprintf"]);

export function judgeFind(words: readonly Word[]): Judgement {
  const roots = findRoots(words);
  const written = words.filter((_, at) => writing.has(words[at - 1]?.text ?? ""));
  const read = words.filter((_, at) => words[at - 1]?.text === "-files0-from");
  const deletes = words.some(({ text }) => text === "-delete");
  const action = words.find(({ text }) => starting.has(text) || writing.has(text) || text === "-delete");
  const loose = words.slice(1).some((word) => word.loose);
  return judgement(
    true,
    [
      ...used(roots, "read"),
      ...used(read, "read"),
      ...used(written, "write"),
      ...(deletes ? used(roots, "write") : []),
    ],
    [
      action === undefined ? undefined : `${action.text} of find executes, writes or deletes`,
      loose ? "an argument of find is only known when it runs and may be an action" : undefined,
    ],
  );
}

export function findActions(words: readonly Word[]): FoundAction[] {
  const actions: FoundAction[] = [];
  for (let at = 1; at < words.length; at += 1) {
    const name = words[at]?.text ?? "";
    if (!starting.has(name)) continue;
    const start = at + 1;
    while (at < words.length && !isEnd(words, at, start)) at += 1;
    const inner = words
      .slice(start, at)
      .map((argument) =>
        argument.text.includes("{}") ? { ...argument, literal: false, pathKnown: false } : argument,
      );
    actions.push({ words: inner, elsewhere: name.endsWith("dir") });
  }
  return actions;
}

function isEnd(words: readonly Word[], at: number, start: number): boolean {
  const text = words[at]?.text;
  return at >= start && (text === ";" || (text === "+" && words[at - 1]?.text === "{}"));
}

function findRoots(words: readonly Word[]): Word[] {
  let at = 1;
  while (/^-(?:[HLP]|D|O.*)$/.test(words[at]?.text ?? "")) at += words[at]?.text === "-D" ? 2 : 1;
  const rest = words.slice(at);
  const end = rest.findIndex(({ text }) => /^[-(!,]/.test(text));
  const roots = end === -1 ? rest : rest.slice(0, end);
  return roots.length === 0 ? [plainWord(".")] : roots;
}
