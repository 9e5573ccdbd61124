import type { JudgeCommand, UsedPath } from "./shell-judgement.ts";
import { judgement, used } from "./shell-judgement.ts";
import { type FoundOption, optionTable, type ScannedWords, scanOptions } from "./shell-options.ts";
import { plainWord, type Word } from "./shell-word.ts";

/** What the operands of a command are: `copy` and `move` write the last one, `archive` the first. */
export type OperandUse = "none" | "read" | "write" | "remove" | "copy" | "move" | "archive";

export interface CommandSpec {
  readonly options?: string;
  readonly operands: OperandUse;
  /** So many operands at the start are no paths, unless one of the options `instead` is given. */
  readonly skip?: number;
  readonly instead?: string;
  /** Without an operand it works on the directory; `"r"`: only with that option. */
  readonly implicit?: boolean | string;
  /** It reads whole directories: always, or with one of these options. */
  readonly below?: true | string;
  /** It writes into the directory, unless one of these options is given. */
  readonly landsHere?: string;
  readonly readOnly?: boolean;
  /** A reason of its own why a wildcard does not cover it. */
  readonly caution?: (scanned: ScannedWords, words: readonly Word[]) => string | undefined;
}

/** Makes the reader of a command from its table. */
export function commandJudge(spec: CommandSpec): JudgeCommand {
  const table = optionTable(spec.options ?? "");
  const risky = [...table.values()].some((signs) => /[>!]/.test(signs));
  return (words) => {
    const scanned = scanOptions(words.slice(1), table);
    const skipped = hasAny(spec.instead ?? "", scanned.options) ? 0 : (spec.skip ?? 0);
    const operands = scanned.operands.slice(skipped);
    const paths = [
      ...optionPaths(scanned.options),
      ...operandPaths(spec.operands, operands, scanned.options),
    ];
    if (operands.length === 0 && isImplicit(spec.implicit, scanned.options))
      paths.push({ word: plainWord("."), use: spec.operands === "write" ? "write" : "read" });
    const below = spec.below === true || hasAny(spec.below ?? "", scanned.options);
    const reached = below
      ? paths.map((path) => (path.use === "read" ? { ...path, below: true as const } : path))
      : paths;
    if (spec.landsHere !== undefined && !hasAny(spec.landsHere, scanned.options))
      reached.push({ word: plainWord("."), use: "write" });
    return judgement(spec.readOnly ?? false, reached, [
      optionRisk(words, scanned),
      risky && scanned.loose
        ? `an argument of ${words[0]?.text} is only known when it runs and may be an option`
        : undefined,
      spec.caution?.(scanned, words),
    ]);
  };
}

export function optionRisk(words: readonly Word[], { options }: ScannedWords): string | undefined {
  const found = options.find(
    ({ signs, value }) => signs.includes("!") || (signs.includes(">") && value?.text !== "-"),
  );
  if (found === undefined) return undefined;
  const option = `${found.name.length === 1 ? "-" : "--"}${found.name}`;
  return `the option ${option} of ${words[0]?.text} starts a program or writes a file`;
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

function isImplicit(implicit: CommandSpec["implicit"], options: readonly FoundOption[]): boolean {
  return typeof implicit === "string" ? hasAny(implicit, options) : (implicit ?? false);
}

function hasAny(names: string, options: readonly FoundOption[]): boolean {
  const list = names.split(" ");
  return options.some(({ name }) => list.includes(name));
}

function operandPaths(
  use: OperandUse,
  operands: readonly Word[],
  options: readonly FoundOption[],
): UsedPath[] {
  if (use === "none") return [];
  if (use === "archive") return [...used(operands.slice(0, 1), "write"), ...used(operands.slice(1), "read")];
  if (use !== "copy" && use !== "move") return used(operands, use);
  const named = options.some(({ name }) => name === "t" || name === "target-directory");
  const sources = named ? operands : operands.slice(0, -1);
  const target = named ? [] : operands.slice(-1);
  const moved = use === "move" ? used(sources, "write") : [];
  return [...used(sources, "read"), ...moved, ...used(target, "write")];
}
