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
  return words.flatMap((word, at) => {
    if (!starting.has(word.text)) return [];
    const rest = words.slice(at + 1);
    const end = rest.findIndex(
      ({ text }, place) => text === ";" || (text === "+" && rest[place - 1]?.text === "{}"),
    );
    const inner = rest
      .slice(0, end === -1 ? undefined : end)
      .map((argument) =>
        argument.text.includes("{}") ? { ...argument, literal: false, pathKnown: false } : argument,
      );
    return [{ words: inner, elsewhere: word.text.endsWith("dir") }];
  });
}

function findRoots(words: readonly Word[]): Word[] {
  let at = 1;
  while (/^-(?:[HLP]|D|O.*)$/.test(words[at]?.text ?? "")) at += words[at]?.text === "-D" ? 2 : 1;
  const rest = words.slice(at);
  const end = rest.findIndex(({ text }) => /^[-(!,]/.test(text));
  const roots = end === -1 ? rest : rest.slice(0, end);
  return roots.length === 0 ? [plainWord(".")] : roots;
}
