/** One option: the parser, help, completion, the man page and the checks are made from this. */
export interface OptionEntry {
  /** Every way to write it, with its value: `-c, --continue`, `--model <model>`. */
  readonly flags: string;
  readonly description: string;
  /** What its value must be; any text when left out. */
  readonly value?: OptionValue;
  /** It may be given several times, and all values count. */
  readonly isRepeatable?: true;
  readonly default?: string;
  /** Whether further words behind it belong to it: names of tools, or folders that are there. */
  readonly moreWords?: "tools" | "folders";
  /** The heading in `retinue run --help`. */
  readonly group?: string;
  /** It has no effect unless one of these is given. */
  readonly needs?: readonly OptionNeed[];
  /** Options that cannot be given together with it. */
  readonly conflicts?: readonly string[];
  /** Known, but not shown. */
  readonly isHidden?: boolean;
}

/** An option, or an option with one value: `{ option: "--output-format", value: "stream-json" }`. */
export interface OptionNeed {
  readonly option: string;
  readonly value?: string;
}

export type OptionValue =
  /** One of these words; `accepts` takes spellings that help does not name. */
  | {
      readonly type: "word";
      readonly words: readonly string[];
      readonly accepts?: (text: string) => boolean;
    }
  /** Several of these words, with commas; the value becomes a list. */
  | { readonly type: "word-list"; readonly words: readonly string[] }
  /** Any text; these are what most people write. */
  | { readonly type: "suggested"; readonly words: readonly string[] }
  /** Rules or names of tools, with commas outside of parentheses; the value becomes a list. */
  | { readonly type: "entries" }
  | { readonly type: "number"; readonly expected: string; readonly isGood: (value: number) => boolean }
  | { readonly type: "duration" };

export const count: OptionValue = {
  type: "number",
  expected: "a whole number from 1",
  isGood: (value) => Number.isSafeInteger(value) && value > 0,
};

export const amount: OptionValue = {
  type: "number",
  expected: "an amount above 0",
  isGood: (value) => value > 0,
};

export const port: OptionValue = {
  type: "number",
  expected: "a port from 0 to 65535",
  isGood: (value) => Number.isInteger(value) && value >= 0 && value <= 65_535,
};

const secondsPerUnit: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3600],
]);

/** `90`, `90s`, `10m`, `1h30m`; a bare number is seconds. */
export function readSeconds(text: string): number | undefined {
  const parts = [...text.trim().matchAll(/([0-9]+(?:\.[0-9]+)?)([smh])/g)];
  const isWhole = parts.map(([part]) => part).join("") === text.trim() && parts.length > 0;
  const seconds = isWhole
    ? parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (secondsPerUnit.get(unit) ?? 0), 0)
    : Number(text.trim() === "" ? Number.NaN : text);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

/** The name that messages and docs use: the last long one, as in `--allowed-tools, --allowedTools <list>`. */
export function longName({ flags }: Pick<OptionEntry, "flags">): string {
  return namesOf(flags).findLast((name) => name.startsWith("--")) ?? flags;
}

/** Every way to write an option, without its value. */
export function namesOf(flags: string): readonly string[] {
  return [...flags.matchAll(/(?:^|[ ,])(--?[A-Za-z][\w-]*)/g)].flatMap(([, name]) => name ?? []);
}
