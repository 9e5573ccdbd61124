import type { Judgement, Word } from "../model.ts";
import { plainWord } from "../word.ts";
import { environmentReason, judgement, used } from "./judgement.ts";

/** What `find` starts for the files it finds. */
export interface FoundAction {
  readonly words: readonly Word[];
  /** It runs in the directory of each file. */
  readonly elsewhere: boolean;
}

const starting = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const writing = new Set(["-fprint", "-fprint0", "-fls", "-fprintf"]);

/** Tests and actions that only look at names and metadata, with the number of their values. */
export const findTests: ReadonlyMap<string, number> = new Map([
  ...names(
    "! ( ) , -a -and -o -or -not -print -print0 -ls -prune -quit -true -false -depth -d -xdev -mount -daystart " +
      "-empty -readable -writable -executable -nouser -nogroup -noleaf -ignore_readdir_race -noignore_readdir_race",
    0,
  ),
  ...names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -maxdepth -mindepth " +
      "-size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -used -fstype -printf -regextype " +
      "-newer -anewer -cnewer -samefile -newermt -newerat -newerct -newermm",
    1,
  ),
]);
/** Tests that look at another file. */
const comparing = /^-(?:files0-from|newer\w*|anewer|cnewer|samefile)$/;

function names(text: string, count: number): (readonly [string, number])[] {
  return text.split(" ").map((name) => [name, count] as const);
}

/** Reads a find command: only tests and actions of the table are understood; what it starts is judged for itself. */
export function judgeFind(words: readonly Word[]): Judgement {
  const { roots, from } = findRoots(words);
  const written = words.filter((_, at) => writing.has(words[at - 1]?.text ?? ""));
  const compared = words.filter((_, at) => comparing.test(words[at - 1]?.text ?? ""));
  const read = compared.filter(
    (word) => !/^-newer[a-zA-Z]t$/.test(words[words.indexOf(word) - 1]?.text ?? ""),
  );
  const deletes = words.some(({ text }) => text === "-delete");
  const { reason, started } = readTests(words, from);
  const judged = judgement(
    true,
    [
      ...used(roots, "read"),
      ...used(read, "read"),
      ...used(written, "write"),
      ...(deletes
        ? used(
            roots.map((root) => ({ ...root, ...namesOf(words.slice(from)) })),
            "write",
          ).map((path) => ({ ...path, below: "all" as const }))
        : []),
    ],
    [
      reason,
      unclearRoot(words.slice(1, from)),
      words.every(({ isOne }) => isOne) ? undefined : "an argument of find may be several words when it runs",
    ],
  );
  if (environmentReason(words) !== undefined) return { ...judged, readOnly: false };
  if (started.length === 0 || !judged.readOnly) return judged;
  const exactOnly = `${words[started[0] ?? 0]?.text} of find executes, writes or deletes`;
  // Links are not handed on to what is started: it would follow them to where they lead.
  return {
    ...judged,
    exactOnly,
    changesOperands: false,
    rendered: words.flatMap(({ rendered }, at) =>
      started.includes(at) ? ["'!'", "-type", "l", rendered] : [rendered],
    ),
  };
}

interface Tests {
  readonly reason?: string;
  /** Where `-exec` is. */
  readonly started: readonly number[];
}

function readTests(words: readonly Word[], from: number): Tests {
  const started: number[] = [];
  for (let at = from; at < words.length; at += 1) {
    const word = words[at] as Word; // within the bounds that the loop has just checked
    if (word.literal && word.text === "-exec" && !/^(?:!|-not)$/.test(words[at - 1]?.text ?? "")) {
      started.push(at);
      at = endOfAction(words, at + 1);
      if (at >= words.length) return { reason: "-exec of find has no end", started };
      continue;
    }
    const count = word.literal ? findTests.get(word.text) : undefined;
    if (count === undefined) return { reason: unknownTest(word), started };
    at += count;
    if (at >= words.length) return { reason: `${word.text} of find has no value`, started };
  }
  return { started };
}

function unknownTest({ text }: Word): string {
  const isAction = starting.has(text) || writing.has(text) || text === "-delete";
  return isAction
    ? `${text} of find executes, writes or deletes`
    : `${text} of find is not known to be harmless`;
}

function unclearRoot(words: readonly Word[]): string | undefined {
  return words.some(({ loose, literal, text }) => loose || (!literal && text.startsWith("-")))
    ? "an argument of find is only known when it runs and may be an action"
    : undefined;
}

export function findActions(words: readonly Word[]): FoundAction[] {
  const { roots, from } = findRoots(words);
  const actions: FoundAction[] = [];
  for (let at = 1; at < words.length; at += 1) {
    const name = words[at]?.text ?? "";
    if (!starting.has(name)) continue;
    const start = at + 1;
    at = endOfAction(words, start);
    const isMany = words[at]?.text === "+" || roots.length > 1;
    const elsewhere = name.endsWith("dir");
    // Whether tests choose some of the files, by their names or otherwise.
    const tests = words.slice(from, start - 1);
    const isOpen = tests.some(({ text }) => /^(?:!|-not|-o|-or|,)$/.test(text));
    const isSelection =
      !isOpen &&
      tests.some(({ text }, at) => selecting.test(text) && /[^*?.]/.test(tests[at + 1]?.text ?? "x"));
    const chosen = namesOf(words.slice(from));
    const inner = words.slice(start, at).flatMap((argument): Word[] => {
      if (!argument.text.includes("{}")) return [argument];
      if (argument.text === "{}" && !elsewhere)
        return foundFiles(argument, isMany ? [...roots, ...roots.slice(-1)] : roots, isSelection).map(
          (word) => ({
            ...word,
            ...chosen,
          }),
        );
      return [{ ...argument, literal: false, pathKnown: false }];
    });
    actions.push({ words: inner, elsewhere });
  }
  return actions;
}

const selecting =
  /^-(?:i?name|i?path|i?wholename|i?regex|i?lname|newer\w*|[acm]newer|[acm]time|[acm]min|size|empty|user|group|uid|gid|perm|inum)$/;

/**
 * The patterns of which one fits the name of every file that is found, where the tests say so: each way through them has to
 * go by a `-name`.
 */
export function namesOf(tests: readonly Pick<Word, "text" | "literal">[]): {
  readonly names?: readonly string[];
} {
  const texts = tests.map(({ text }) => text);
  const isNegatedGroup = texts.some((text, at) => text === "(" && /^(?:!|-not)$/.test(texts[at - 1] ?? ""));
  if (isNegatedGroup || tests.some(({ literal }, at) => !literal && /^-i?name$/.test(texts[at - 1] ?? "")))
    return {};
  const branches: string[][] = [[]];
  for (const text of texts) {
    if (/^(?:-o|-or|,)$/.test(text)) branches.push([]);
    else branches.at(-1)?.push(text);
  }
  const acts = (branch: readonly string[]): boolean =>
    branch.some((text) => /^-(?:print0?|delete|exec(?:dir)?|ok(?:dir)?|ls)$/.test(text));
  // Without parentheses, a way that does nothing itself prints nothing where another one does.
  const isFiltered = !texts.includes("(") && branches.some(acts);
  const names = (isFiltered ? branches.filter(acts) : branches).map((branch) => {
    const at = branch.findIndex(
      (text, place) => /^-i?name$/.test(text) && !/^(?:!|-not)$/.test(branch[place - 1] ?? ""),
    );
    return at === -1 ? undefined : branch[at + 1];
  });
  // Classes and escapes are read by the system's own rules.
  const known = names.filter((name) => name !== undefined && !/[[\\]/.test(name)) as string[];
  return known.length === names.length ? { names: known } : {};
}

/** The files that are found are below the places where the search starts, and their names begin with those. */
function foundFiles(mark: Word, roots: readonly Word[], isSelection: boolean): Word[] {
  return roots.map(({ path, pathKnown }, at) => ({
    ...mark,
    literal: false,
    path,
    pathKnown,
    isBelow: true,
    ...(isSelection && { isSelection: true as const }),
    ...(at > 0 && { continued: true as const, repeated: true as const }),
  }));
}

/** Where an action ends: at `;`, or at `+` after `{}`; the number of words where it does not end. */
function endOfAction(words: readonly Word[], start: number): number {
  const end = words.findIndex(
    ({ text }, at) => at >= start && (text === ";" || (text === "+" && words[at - 1]?.text === "{}")),
  );
  return end === -1 ? words.length : end;
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
