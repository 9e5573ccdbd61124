import type { JudgeCommand, Judgement, OperandUse, UnreadableName, UsedPath, Word } from "../model.ts";
import {
  type FoundOption,
  type OptionTable,
  optionTable,
  plainWord,
  quoteWord,
  type ScannedWords,
  type ScanOptions,
  scanOptions,
  valuesOf,
} from "../word.ts";

/** A judgement with the first reason that was found, if any. */
export function judgement(
  readOnly: boolean,
  paths: readonly UsedPath[],
  reasons: readonly (string | undefined)[] = [],
): Judgement {
  const exactOnly = reasons.find((reason) => reason !== undefined);
  if (exactOnly === undefined) return { readOnly, paths, anywhere: true };
  return { readOnly: false, exactOnly, paths, anywhere: true };
}

export function used(words: readonly Word[], use: OperandUse): UsedPath[] {
  return words.map((word) => ({ word, use }));
}

/** The first option that starts a program or writes a file. */
export function optionRisk(program: string, { options }: Pick<ScannedWords, "options">): string | undefined {
  const found = options.find(
    ({ signs, value }) =>
      signs.includes("!") || (signs.includes(">") && !/^(?:-|\/dev\/null)$/.test(value?.text ?? "")),
  );
  if (found === undefined) return undefined;
  const option = `${found.name.length === 1 ? "-" : "--"}${found.name}`;
  return `the option ${option} of ${program} starts a program or writes a file`;
}

export function optionPaths(options: readonly FoundOption[]): UsedPath[] {
  return options.flatMap(({ signs, value }) => {
    if (value === undefined) return [];
    const paths: UsedPath[] = [];
    if (signs.includes(">")) paths.push({ word: value, use: "write" });
    if (signs.includes("<")) paths.push({ word: value, use: "read" });
    const file = signs.includes("@") ? /^(?:[^@<]*[=])?[@<](.+)$/s.exec(value.text)?.[1] : undefined;
    if (file !== undefined) paths.push({ word: { ...value, text: file, path: file }, use: "read" });
    return paths;
  });
}

/** A word whose value would show what is in the environment. */
export function environmentReason(words: readonly Word[]): string | undefined {
  const name = words.find(({ environment }) => environment !== undefined)?.environment;
  return name === undefined ? undefined : `the value of the variable ${name} is not known`;
}

/**
 * What the operands of a program are: `copy` and `move` write the last one, `archive` the first, `filter` all but the
 * first, `text` none is a file.
 */
type Operands = "none" | "text" | "read" | "write" | "remove" | "copy" | "move" | "archive" | "filter";

/** Which files a program uses, by its operands and options. */
interface OperandSpec {
  readonly operands: Operands;
  /** So many operands at the start are no paths, unless one of the options `instead` is given. */
  readonly skip?: number;
  readonly instead?: string;
  readonly maxOperands?: number;
  /** Without an operand it works on the directory; `"r"`: only with that option. */
  readonly implicit?: boolean | string;
  /** It uses whole directories: always, or with one of these options. */
  readonly below?: true | string;
  /** Files that it removes or overwrites with one of these options, and all that is below them. */
  readonly removes?: readonly { readonly options: string; readonly operands: "last" | "sources" | "rest" }[];
  /** Below a directory it goes where links lead: always, or with one of these options. */
  readonly follows?: true | string;
  /** A file that is written has another name, made from that of the operand. */
  readonly renames?: (path: string) => readonly string[];
  /** Below a directory it leaves out names that begin with a dot, unless one of these options is given. */
  readonly hidden?: string;
  /** The options by which it leaves out files and folders of a name, below those it searches; the last option counts. */
  readonly leavesOut?: (name: UnreadableName) => readonly string[];
  /** It writes into the directory, unless one of these options is given. */
  readonly landsHere?: string;
  /** Sources may be on another machine, `HOST:PATH`, and what is there is not known. */
  readonly fetches?: true;
  /** With these options it goes to other folders first, one after the other. */
  readonly enters?: string;
}

/** When a program only reads. */
interface ReadingSpec {
  readonly readOnly?: true;
  /** It only reads where these options are given, and no others. */
  readonly readOnlyWith?: string;
  /** Of those options, one of these must be there. */
  readonly readOnlyNeeds?: string;
  /** An option that is added when it only reads. */
  readonly added?: string;
  /** The program, with options, that runs in its place, with the operands alone, when it only reads. */
  readonly runsAs?: string;
}

/** How a program reads its arguments. An option that is missing here is not understood. */
export interface ProgramSpec extends OperandSpec, ReadingSpec {
  readonly options?: string;
  /** `-5` is an option. */
  readonly numeric?: true;
  readonly letters?: ScanOptions["letters"];
  /** The first operand ends the options, at least in some versions of the program. */
  readonly optionsFirst?: true;
  /** What it does depends on files of the directory it runs in. */
  readonly obeysDirectory?: true;
  /** A reason of its own why a wildcard does not cover it. */
  readonly caution?: (scanned: ScannedWords, words: readonly Word[]) => string | undefined;
}

/** Makes the reader of a program from its table. */
export function programJudge(spec: ProgramSpec): JudgeCommand {
  const table = optionTable(spec.options ?? "");
  return (words) => {
    const program = words[0]?.text ?? "";
    const scanned = scanOptions(words.slice(1), table, {
      numeric: spec.numeric === true,
      letters: spec.letters ?? "plain",
    });
    const skipped = hasAny(spec.instead ?? "", scanned.options) ? 0 : (spec.skip ?? 0);
    const operands = scanned.operands.slice(skipped);
    const tooMany = spec.maxOperands !== undefined && scanned.operands.length > spec.maxOperands;
    const isCertain = !scanned.loose || (spec.operands === "text" && !hasSign(table, /[<>@!]/));
    const isReader =
      spec.readOnly === true ||
      (scanned.options.length > 0 &&
        scanned.options.every(({ name }) => spec.readOnlyWith?.split(" ").includes(name)) &&
        (spec.readOnlyNeeds === undefined || hasAny(spec.readOnlyNeeds, scanned.options)));
    const used = isReader && spec.operands === "write" ? readingOnly(spec) : spec;
    const judged = judgement(isReader && isCertain, usedPaths(used, scanned, operands), [
      optionRisk(program, scanned),
      // Where no option acts, it does not matter to a rule what a word turns out to be.
      scanned.loose && !hasSign(table, /[>!]/) ? undefined : scanned.unclear,
      spec.optionsFirst === true && scanned.options.some(({ late }) => late === true)
        ? `an option of ${program} is after an operand`
        : undefined,
      tooMany ? `${program} takes fewer operands when it only reads` : undefined,
      spec.operands === "none" && operands.length > 0
        ? `${program} takes no operands when it only reads`
        : undefined,
      spec.caution?.(scanned, words),
    ]);
    const hidden = environmentReason(words);
    const { leavesOut } = spec;
    return {
      ...judged,
      ...(leavesOut !== undefined && {
        leaveOut: (names: readonly UnreadableName[]) =>
          withOptionsLast(words, names.flatMap(leavesOut), scanned.ended),
      }),
      ...(spec.added !== undefined && { rendered: withOption(words, spec.added) }),
      ...(spec.runsAs !== undefined && {
        rendered: [...spec.runsAs.split(" "), "--", ...operands.map(({ rendered }) => rendered)],
      }),
      ...(hidden !== undefined && { readOnly: false }),
      // Its paths say all, or its operands are none.
      ...((spec.operands === "text" || scanned.loose || scanned.unclear === undefined) && {
        changesOperands: false,
      }),
      ...(spec.enters !== undefined && { folders: valuesOf(scanned, ...spec.enters.split(" ")) }),
      anywhere: spec.obeysDirectory !== true,
    };
  };
}

function hasSign(table: OptionTable, sign: RegExp): boolean {
  return [...table.values()].some((signs) => sign.test(signs));
}

/** A program that writes the files it is given, called so that it only reads them. */
function readingOnly(spec: ProgramSpec): ProgramSpec {
  return { ...spec, operands: "read" };
}

/** Options behind all others, and before the word that ends them. */
function withOptionsLast(
  words: readonly Word[],
  options: readonly string[],
  ended: number | undefined,
): readonly string[] {
  const rendered = words.map((word) => word.rendered);
  const at = ended === undefined ? rendered.length : ended + 1;
  return [...rendered.slice(0, at), ...options.map(quoteWord), ...rendered.slice(at)];
}

function withOption([program, ...rest]: readonly Word[], option: string): readonly string[] {
  return [program?.rendered ?? "", option, ...rest.map(({ rendered }) => rendered)];
}

function usedPaths(spec: ProgramSpec, scanned: ScannedWords, operands: readonly Word[]): UsedPath[] {
  const paths = [
    ...optionPaths(scanned.options),
    ...(spec.readOnly === true && spec.operands === "read" ? latePaths(scanned.options) : []),
    ...operandPaths(spec.operands, operands, scanned.options),
    ...operands.flatMap((word) =>
      (spec.renames?.(word.path) ?? []).map((path) => ({
        word: { ...word, path },
        use: spec.operands === "read" ? ("read" as const) : ("write" as const),
      })),
    ),
  ];
  paths.push(...removedPaths(spec, scanned.options, operands));
  if (spec.fetches === true) paths.push(...fetchedPaths(operands));
  if (operands.length === 0 && isImplicit(spec.implicit, scanned.options))
    paths.push({ word: plainWord("."), use: spec.operands === "write" ? "write" : "read" });
  const isBelow = spec.below === true || hasAny(spec.below ?? "", scanned.options);
  const shown = spec.hidden === undefined || hasAny(spec.hidden, scanned.options) ? "all" : "visible";
  const isFollowing = spec.follows === true || hasAny(spec.follows ?? "", scanned.options);
  const below = isFollowing ? "follow" : shown;
  const reached = isBelow ? paths.map((path) => ({ ...path, below }) as const) : paths;
  return spec.landsHere === undefined || hasAny(spec.landsHere, scanned.options)
    ? reached
    : [...reached, { word: plainWord("."), use: "write", below: "all" }];
}

/** A file of another machine arrives under its name; of what is below a folder, and of a pattern, no name is known. */
function fetchedPaths(operands: readonly Word[]): UsedPath[] {
  const [target] = operands.slice(-1);
  if (target === undefined) return [];
  return operands.slice(0, -1).flatMap((source): UsedPath[] => {
    const remote = /^[^/]*:(.*)$/s.exec(source.text)?.[1];
    if (remote === undefined) return [];
    if (!source.literal || /^\.{0,2}$|[/*?[\]{}]$|\/\.{1,2}$|[*?[{]/.test(remote))
      return [{ word: target, use: "write", below: "all" }];
    const name = remote.slice(remote.lastIndexOf("/") + 1);
    return [{ word: { ...target, path: `${target.path.replace(/\/+$/, "")}/${name}` }, use: "write" }];
  });
}

function removedPaths(
  { removes = [] }: ProgramSpec,
  options: readonly FoundOption[],
  operands: readonly Word[],
): UsedPath[] {
  const places = { last: operands.slice(-1), sources: operands.slice(0, -1), rest: operands.slice(1) };
  return removes.flatMap(({ options: names, operands: which }) =>
    hasAny(names, options)
      ? used(places[which], "remove").map((path): UsedPath => ({ ...path, below: "all" }))
      : [],
  );
}

/** Where the first operand ends the options, the value of a later one is a file that is read. */
function latePaths(options: readonly FoundOption[]): UsedPath[] {
  return used(
    options.flatMap(({ late, value }) => (late === true && value !== undefined ? [value] : [])),
    "read",
  );
}

function isImplicit(implicit: ProgramSpec["implicit"], options: readonly FoundOption[]): boolean {
  return typeof implicit === "string" ? hasAny(implicit, options) : (implicit ?? false);
}

function hasAny(names: string, options: readonly FoundOption[]): boolean {
  const list = names.split(" ");
  return options.some(({ name }) => list.includes(name));
}

function operandPaths(use: Operands, operands: readonly Word[], options: readonly FoundOption[]): UsedPath[] {
  if (use === "none" || use === "text") return [];
  if (use === "archive") return [...used(operands.slice(0, 1), "write"), ...used(operands.slice(1), "read")];
  if (use === "filter") return [...used(operands.slice(0, 1), "read"), ...used(operands.slice(1), "write")];
  if (use !== "copy" && use !== "move") return used(operands, use);
  const named = options.some(
    ({ name, signs }) => (name === "t" || name === "target-directory") && signs.includes(">"),
  );
  const sources = named ? operands : operands.slice(0, -1);
  const target = named ? [] : operands.slice(-1);
  const moved = use === "move" ? used(sources, "remove") : [];
  const into = options.flatMap(({ name, value }) =>
    value !== undefined && (name === "t" || name === "target-directory") ? [value] : [],
  );
  return [...used(sources, "read"), ...moved, ...used(named ? into : target, "copy")];
}
