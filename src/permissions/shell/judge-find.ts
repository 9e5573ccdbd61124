import { environmentReason, type Judgement, judgement, used } from "./judgement.ts";
import { plainWord, type Word } from "./shell-word.ts";

/** What `find` starts for the files it finds. */
export interface FoundAction {
  readonly words: readonly Word[];
  /** It runs in the directory of each file. */
  readonly elsewhere: boolean;
}

const starting = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const writing = new Set(["-fprint", "-fprint0", "-fls", "-fprintf"]);

/** Tests and actions that only look at names and metadata, with the number of their values. */
const stripControlCharacters: ReadonlyMap<string, number> = new Map([
  ...names(
    "! ( ) , -a -and -o -or -not -print -print0 -ls -prune -quit -true -false -depth -d -xdev -mount -daystart " +
      "-empty -readable -writable -executable -nouser -nogroup -noleaf -ignore_readdir_race -noignore_readdir_race",
    0,
  ),
  ...names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -maxdepth -mindepth " +
      "-size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -used -fstype -printf -regextype",
    1,
  ),
]);

function names(text: string, count: number): (readonly [string, number])[] {
  return text.split(" ").map((name) => [name, count] as const);
}

/** Reads a find command: only tests and actions of the table are understood. */
export function judgeFind(words: readonly Word[]): Judgement {
  const { roots, from } = findRoots(words);
  const written = words.filter((_, at) => writing.has(words[at - 1]?.text ?? ""));
  const read = words.filter((_, at) =>
    /^-(?:files0-from|newer\w*|anewer|cnewer|samefile)$/.test(words[at - 1]?.text ?? ""),
  );
  const deletes = words.some(({ text }) => text === "-delete");
  const judged = judgement(
    true,
    [
      ...used(roots, "read"),
      ...used(read, "read"),
      ...used(written, "write"),
      ...(deletes ? used(roots, "write").map((path) => ({ ...path, below: "all" as const })) : []),
    ],
    [unclearTest(words, from), unclearRoot(words.slice(1, from))],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

function unclearTest(words: readonly Word[], from: number): string | undefined {
  for (let at = from; at < words.length; at += 1) {
    const word = words[at];
    const count = word?.literal === true ? stripControlCharacters.get(word.text) : undefined;
    if (word === undefined || count === undefined) {
      const isAction =
        word !== undefined && (starting.has(word.text) || writing.has(word.text) || word.text === "-delete");
      return isAction
        ? `${word.text} of find executes, writes or deletes`
        : `${word?.text} of find is not among the tests that are known to be harmless`;
    }
    at += count;
    if (at >= words.length) return `${word.text} of find has no value`;
  }
  return undefined;
}

function unclearRoot(words: readonly Word[]): string | undefined {
  return words.some(({ loose, literal, text }) => loose || (!literal && text.startsWith("-")))
    ? "an argument of find is only known when it runs and may be an action"
    : undefined;
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

/** The places where the search starts, and where its tests begin. */
function findRoots(words: readonly Word[]): { readonly roots: Word[]; readonly from: number } {
  let from = 1;
  while (/^-[HP]$/.test(words[from]?.text ?? "")) from += 1;
  const start = from;
  while (from < words.length && !/^[-(!,]/.test(words[from]?.text ?? "")) from += 1;
  const roots = words.slice(start, from);
  return { roots: roots.length === 0 ? [plainWord(".")] : roots, from };
}
