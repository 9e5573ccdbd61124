/** How names are compared. */
export interface PathComparison {
  /** Names that differ only in case or composition are one file. */
  readonly foldsCase?: boolean;
  /** `src/**` means any folder of that name below, as in rules that restrict. */
  readonly floats?: boolean;
}

/**
 * Whether a gitignore-style pattern, anchored at a directory, covers a path. Both are absolute and in canonical form.
 * A pattern without a slash matches at any depth; a match of a folder covers everything in it.
 */
export function coversPath(
  pattern: string,
  anchor: string,
  path: string,
  { foldsCase = false, floats = false }: PathComparison = {},
): boolean {
  const known = compilePattern(pattern, anchor, { foldsCase, floats });
  const text = foldsCase ? foldName(path) : path;
  // Most paths are none that a pattern could mean, which its plain letters show.
  if (!text.includes(known.letters)) return false;
  const inside = relativeTo(known.anchor, text);
  if (inside === undefined) return false;
  return known.segments === undefined || covers(known.segments, inside);
}

interface CompiledPattern {
  readonly anchor: string;
  /** Absent where everything below the anchor is meant. */
  readonly segments: readonly string[] | undefined;
  /** Text that is in every path which the pattern covers. */
  readonly letters: string;
}

/** Only saves time: a pattern of a rule is compared with many paths. By pattern, anchor and comparison. */
const compiled = new Map<string, Map<string, (CompiledPattern | undefined)[]>>();
const maxCompiled = 2_000;

function compilePattern(
  pattern: string,
  anchor: string,
  { foldsCase, floats }: Required<PathComparison>,
): CompiledPattern {
  const way = (foldsCase ? 2 : 0) + (floats ? 1 : 0);
  const known = compiled.get(pattern)?.get(anchor)?.[way];
  if (known !== undefined) return known;
  const fold = foldsCase ? foldName : (text: string) => text;
  let rest = pattern.replace(/^(?:\.\/)+/, "");
  let at = anchor;
  while (rest === ".." || rest.startsWith("../")) {
    rest = rest.slice(3);
    at = at.slice(0, at.lastIndexOf("/")) || "/";
  }
  const start = { pattern: rest, anchor: at };
  const bare = fold(start.pattern).replace(/\/+$/, "");
  const names = bare.split("/").filter((segment) => segment !== "" && segment !== ".");
  const isBareName = names.length === 1 && (floats || !pattern.startsWith("./"));
  const isFolder = floats && names.length === 2 && names[1] === "**" && names[0] !== "**";
  const isEverything = bare === "" || bare === ".";
  const floating = isBareName || isFolder ? ["**", ...names] : names;
  const made: CompiledPattern = {
    anchor: fold(start.anchor),
    segments: isEverything ? undefined : floating,
    letters: isEverything ? "" : longestLetters(names),
  };
  if (compiled.size >= maxCompiled) compiled.clear();
  const anchors = compiled.get(pattern) ?? new Map<string, (CompiledPattern | undefined)[]>();
  compiled.set(pattern, anchors);
  const ways = anchors.get(anchor) ?? [];
  anchors.set(anchor, ways);
  ways[way] = made;
  return made;
}

function longestLetters(segments: readonly string[]): string {
  const plain = segments
    .filter((segment) => !/[[\]\\]/.test(segment))
    .flatMap((segment) => segment.split(/[*?]+/));
  return plain.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

/** The same text for names that a file system without case takes for one; invisible characters do not count there. */
export function foldName(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "");
}

/** The segments of a path below a directory, or undefined when it is not below it. */
function relativeTo(anchor: string, path: string): readonly string[] | undefined {
  const base = anchor.endsWith("/") ? anchor : `${anchor}/`;
  if (path === anchor) return [];
  return path.startsWith(base) ? path.slice(base.length).split("/") : undefined;
}

/** Follows all positions the pattern can be in at the same time, so the work is bounded by pattern times path. */
function covers(pattern: readonly string[], path: readonly string[]): boolean {
  let positions = closure(new Set([0]), pattern);
  if (positions.has(pattern.length)) return true;
  for (const segment of path) {
    const next = new Set<number>();
    for (const position of positions) {
      const expected = pattern[position];
      if (expected === "**") next.add(position);
      else if (expected !== undefined && matchesName(expected, segment)) next.add(position + 1);
    }
    positions = closure(next, pattern);
    if (positions.has(pattern.length)) return true;
  }
  return false;
}

/** `**` may mean nothing, except at the end, where something must follow the folder. */
function closure(positions: Set<number>, pattern: readonly string[]): Set<number> {
  for (const position of positions) {
    if (pattern[position] === "**" && position < pattern.length - 1) positions.add(position + 1);
  }
  const last = pattern.length - 1;
  if (pattern[last] === "**" && positions.has(last)) positions.add(pattern.length);
  return positions;
}

type Sign =
  | { readonly type: "star" }
  | { readonly type: "one"; readonly matches: (character: string) => boolean };

/** Whether a name fits a pattern with `*`, `?`, `[a-z]`, `[!a]` and backslashes. Takes pattern times name at most. */
export function matchesName(pattern: string, name: string): boolean {
  if (!/[*?[\\]/.test(pattern)) return pattern === name;
  const signs = readSigns(pattern);
  const characters = [...name];
  let sign = 0;
  let at = 0;
  let star = -1;
  let mark = 0;
  while (at < characters.length) {
    const expected = signs[sign];
    if (expected?.type === "star") {
      star = sign;
      mark = at;
      sign += 1;
    } else if (expected?.matches(characters[at] ?? "") === true) {
      sign += 1;
      at += 1;
    } else if (star !== -1) {
      sign = star + 1;
      mark += 1;
      at = mark;
    } else return false;
  }
  while (signs[sign]?.type === "star") sign += 1;
  return sign === signs.length;
}

function readSigns(pattern: string): readonly Sign[] {
  const characters = [...pattern];
  const signs: Sign[] = [];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    const close = character === "[" ? characters.indexOf("]", at + 2) : -1;
    if (character === "*") signs.push({ type: "star" });
    else if (character === "?") signs.push({ type: "one", matches: () => true });
    else if (close !== -1) {
      signs.push({ type: "one", matches: readClass(characters.slice(at + 1, close)) });
      at = close;
    } else {
      const isEscape = character === "\\" && at + 1 < characters.length;
      if (isEscape) at += 1;
      const literal = characters[at] ?? "";
      signs.push({ type: "one", matches: (candidate) => candidate === literal });
    }
  }
  return signs;
}

function readClass(inner: readonly string[]): (character: string) => boolean {
  const isNegated = inner[0] === "!" || inner[0] === "^";
  const members = isNegated ? inner.slice(1) : inner;
  const has = (character: string): boolean =>
    members.some((member, at) => {
      if (member === "-" && at > 0 && at < members.length - 1)
        return (members[at - 1] ?? "") <= character && character <= (members[at + 1] ?? "");
      return member === character;
    });
  return (character) => has(character) !== isNegated;
}
