import {
  type FoundOption,
  optionTable,
  type ScannedWords,
  type ScanOptions,
  scanOptions,
} from "../option-table.ts";
import { plainWord, type Word } from "../word.ts";
import {
  environmentReason,
  type JudgeCommand,
  judgement,
  optionPaths,
  optionRisk,
  type UsedPath,
  used,
} from "./judgement.ts";

/**
 * What the operands of a program are: `copy` and `move` write the last one, `archive` the first, `filter` all but the
 * first, `text` none is a file.
 */
export type Operands = "none" | "text" | "read" | "write" | "remove" | "copy" | "move" | "archive" | "filter";

/** How a program reads its arguments. An option that is missing here is not understood. */
export interface ProgramSpec {
  readonly options?: string;
  /** `-5` is an option. */
  readonly numeric?: true;
  readonly letters?: ScanOptions["letters"];
  /** The first operand ends the options, at least in some versions of the program. */
  readonly optionsFirst?: true;
  readonly operands: Operands;
  /** So many operands at the start are no paths, unless one of the options `instead` is given. */
  readonly skip?: number;
  readonly instead?: string;
  readonly maxOperands?: number;
  /** Without an operand it works on the directory; `"r"`: only with that option. */
  readonly implicit?: boolean | string;
  /** It uses whole directories: always, or with one of these options. */
  readonly below?: true | string;
  /** Below a directory it goes where links lead: always, or with one of these options. */
  readonly follows?: true | string;
  /** A file that is written has another name, made from that of the operand. */
  readonly renames?: (path: string) => readonly string[];
  /** Below a directory it leaves out names that begin with a dot, unless one of these options is given. */
  readonly hidden?: string;
  /** It writes into the directory, unless one of these options is given. */
  readonly landsHere?: string;
  readonly readOnly?: true;
  /** An option that is added when it only reads. */
  readonly added?: string;
  /** What it does depends on files of the directory it runs in. */
  readonly obeysDirectory?: true;
  /** A reason of its own why a wildcard does not cover it. */
  readonly caution?: (scanned: ScannedWords, words: readonly Word[]) => string | undefined;
}

/** Makes the reader of a program from its table. */
export function programJudge(spec: ProgramSpec): JudgeCommand {
  const table = optionTable(spec.options ?? "");
  const acts = [...table.values()].some((signs) => /[>!]/.test(signs));
  const reads = [...table.values()].some((signs) => /[<@]/.test(signs));
  return (words) => {
    const program = words[0]?.text ?? "";
    const scanned = scanOptions(words.slice(1), table, {
      numeric: spec.numeric === true,
      letters: spec.letters ?? "plain",
    });
    const skipped = hasAny(spec.instead ?? "", scanned.options) ? 0 : (spec.skip ?? 0);
    const operands = scanned.operands.slice(skipped);
    const tooMany = spec.maxOperands !== undefined && scanned.operands.length > spec.maxOperands;
    const isCertain = !scanned.loose || (spec.operands === "text" && !acts && !reads);
    const judged = judgement(spec.readOnly === true && isCertain, usedPaths(spec, scanned, operands), [
      optionRisk(program, scanned),
      // Where no option acts, it does not matter to a rule what a word turns out to be.
      scanned.loose && !acts ? undefined : scanned.unclear,
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
    return {
      ...judged,
      ...(spec.added !== undefined && { rendered: withOption(words, spec.added) }),
      ...(hidden !== undefined && { readOnly: false }),
      anywhere: spec.obeysDirectory !== true,
    };
  };
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
      (spec.renames?.(word.path) ?? []).map((path) => ({ word: { ...word, path }, use: "write" as const })),
    ),
  ];
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
  return [...used(sources, "read"), ...moved, ...used(target, "copy")];
}
