/**
 * Patterns of paths as opencode and Kiro have them, and as they are here. There a star spans folders too, a pattern is about
 * the whole path below the project, and one that begins with a slash is absolute. Here a star stays within a name, one name alone is
 * meant in any folder, and a single slash at the beginning is the project. What has no exact form allows less or denies more.
 */

/** More make a list too long to be read. */
const maxPatterns = 16;

interface Dialect {
  /** `[a-z]` and `{a,b}` mean something there; else they are the characters themselves. */
  readonly hasClasses?: boolean;
}

/** What denies here all that some patterns deny there; `undefined` in the list is everything, where no few patterns say it. */
export function deniedHere(
  patterns: readonly string[],
  dialect: Dialect = {},
): readonly (string | undefined)[] {
  // As the writer says a name in any folder, and a folder with all below it.
  const anywhere = (pattern: string): string => pattern.replace(/^(?:~?\/)?/, (start) => `${start}*/`);
  const floating = patterns.filter((each) => floats(each) && patterns.includes(anywhere(each)));
  const covered = new Set(floating.map(anywhere));
  const found = patterns.flatMap((each): readonly (string | undefined)[] => {
    const above = each.replace(/\/\*$/, "");
    if (covered.has(each) || (above !== each && (covered.has(above) || patterns.includes(above)))) return [];
    if (floating.includes(each)) return [placedHere(each, dialect)];
    const alternatives: readonly (string | undefined)[] = expandBraces(each, dialect) ?? [undefined];
    return alternatives.flatMap((one): readonly (string | undefined)[] => {
      if (one === undefined) return [undefined];
      return crossingStars(placedHere(one, dialect)) ?? [undefined];
    });
  });
  return [...new Set(found)];
}

/** Whether a pattern means the same in any folder here. */
function floats(pattern: string): boolean {
  return /^(?:~?\/)?[^/~][^/]*(?:\/\*\*)?$/.test(pattern);
}

/** What allows here no more than a pattern allows there. */
export function allowedHere(pattern: string, dialect: Dialect = {}): string {
  const placed = placedHere(pattern, dialect);
  // One name is meant in its folder, unless it begins with a star, which spans folders.
  return placed.replace(/^(\/\/|~\/)?(?=[^*/~][^/]*$)/, (start) => `${start}./`);
}

/** What denies there all that a pattern denies here. */
export function deniedThere(pattern: string): readonly string[] {
  const placed = placedThere(pattern.replace(/^\*\*\/(?=[^/]+$)/, ""));
  const { start, path } = placed;
  // No class and no escape means the same there; a sign that matches any character denies more.
  const plain = path.replace(/\\./g, "?").replace(/\[[^\]]*\]/g, "?");
  // A star there spans folders by itself.
  const base = plain.replace(/\/+$/, "").replace(/\*\*\/(?=\*)/g, "");
  const shapes = [...new Set([base, base.replace(/^\*\*\//, ""), base.replaceAll("/**/", "/")])];
  const below = shapes.flatMap((each) => (each.endsWith("*") ? [each] : [each, `${each}/*`]));
  const anywhere = !placed.floats ? [] : below.flatMap((each) => (each.startsWith("*") ? [] : [`*/${each}`]));
  return [...new Set([...below, ...anywhere])].map((each) => `${start}${each}`);
}

/** What allows there no more than a pattern allows here; undefined where nothing does. */
export function allowedThere(pattern: string): string | undefined {
  const { start, path, isFixed } = placedThere(pattern);
  if (/[\\[\]?]/.test(path)) return undefined;
  // A star there continues into folders: as here only behind a folder, or before the ending of a name in any folder.
  const isFolder = /^(?:[^*]+\/)?\*{1,2}$/.test(path);
  const isEnding = !isFixed && /^\*[^*/]*$/.test(path);
  const isExact = isFolder || isEnding || /^\*\*\/\*[^*/]*$/.test(path) || !path.includes("*");
  return isExact ? `${start}${path}` : undefined;
}

function placedHere(pattern: string, { hasClasses = false }: Dialect): string {
  const text = pattern
    .trim()
    .replace(/^\$HOME(?=\/|$)/, "~")
    .replace(/^(?:\.\/)+/, "");
  const escaped = hasClasses ? text : text.replace(/[\\[\]]/g, "\\$&");
  return escaped.startsWith("/") ? `/${escaped.replace(/^\/+/, "/")}` : escaped;
}

function placedThere(pattern: string): {
  readonly start: string;
  readonly path: string;
  /** Meant in its own folder only, where it allows. */
  readonly isFixed: boolean;
  /** Meant in any folder, where it denies. */
  readonly floats: boolean;
} {
  const [sign = ""] = /^(?:\/\/|~\/|\/)?/.exec(pattern) ?? [];
  const rest = pattern.slice(sign.length);
  const path = rest.replace(/^(?:\.\/)+/, "").replace(/^\/+/, "");
  // A name alone floats here below any beginning, and a folder with all below it too.
  const names = path.replace(/\/(?:\*\*)?$/, "");
  const starts = new Map([
    ["//", "/"],
    ["~/", "~/"],
  ]);
  const isFixed = path !== rest;
  return { start: starts.get(sign) ?? "", path, isFixed, floats: !names.includes("/") };
}

/** With each star reaching into folders, as it does there. */
function crossingStars(pattern: string): readonly string[] | undefined {
  const star = /(?<!\*)\*(?!\*)/g;
  let made = [""];
  let last = 0;
  for (const { index } of pattern.matchAll(star)) {
    const before = pattern.slice(last, index);
    const rest = pattern.slice(index + 1);
    last = index + 1;
    const whole = made.map((each) => each + before);
    const start = pattern.slice(0, index);
    const startsName = start === "" || start.endsWith("/");
    if (rest === "" || start.endsWith("**/")) made = whole.map((each) => `${each}*`);
    else if (start === "" && !rest.includes("/")) made = whole.map((each) => `${each}*`);
    else if (startsName) made = whole.map((each) => `${each}**/*`);
    else made = whole.flatMap((each) => [`${each}*`, `${each}*/**/*`]);
    if (made.length > maxPatterns) return undefined;
  }
  return made.map((each) => each + pattern.slice(last));
}

function expandBraces(pattern: string, { hasClasses = false }: Dialect): readonly string[] | undefined {
  if (!hasClasses || !/[{}]/.test(pattern)) return [pattern];
  let open = [pattern];
  for (let round = 0; round < 4 && open.length <= maxPatterns; round += 1) {
    if (!open.some((each) => /[{}]/.test(each))) return open;
    open = open.flatMap((each) => {
      const found = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(each);
      if (found === null) return [each];
      const [, before = "", inside = "", after = ""] = found;
      return inside.split(",").map((one) => before + one + after);
    });
  }
  return open.some((each) => /[{}]/.test(each)) ? undefined : open;
}
