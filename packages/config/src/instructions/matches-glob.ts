/**
 * Whether a path with forward slashes fits a glob: `*` and `?` within a folder, `**` across folders, `{a,b}` for either.
 * Takes at most the product of both lengths, whatever the pattern.
 */
export function matchesGlob(pattern: string, path: string): boolean {
  const segments = path.split("/");
  return expandBraces(pattern).some((plain) => matchesSegments(plain.split("/"), segments));
}

const maxAlternatives = 256;

/** Innermost braces first; a pattern with absurdly many alternatives is taken as it is. */
function expandBraces(pattern: string): readonly string[] {
  let open = [pattern];
  const done: string[] = [];
  while (open.length > 0) {
    if (open.length + done.length > maxAlternatives) return [pattern];
    open = open.flatMap((text) => {
      const braces = /\{([^{}]*,[^{}]*)\}/.exec(text);
      if (braces === null) {
        done.push(text);
        return [];
      }
      const after = braces.index + braces[0].length;
      return (braces[1] ?? "")
        .split(",")
        .map((choice) => `${text.slice(0, braces.index)}${choice}${text.slice(after)}`);
    });
  }
  return done;
}

function matchesSegments(pattern: readonly string[], path: readonly string[]): boolean {
  return matchesSequence(pattern, path, {
    isMany: (item) => item === "**",
    fits: (item, segment) =>
      matchesSequence([...item], [...segment], {
        isMany: (sign) => sign === "*",
        fits: (sign, letter) => sign === "?" || sign === letter,
      }),
  });
}

interface Signs {
  readonly isMany: (item: string) => boolean;
  readonly fits: (item: string, part: string) => boolean;
}

/** Walks forward and, on a mismatch, lets only the last "many" take one more: never exponential. */
function matchesSequence(pattern: readonly string[], parts: readonly string[], signs: Signs): boolean {
  let item = 0;
  let part = 0;
  let lastMany = -1;
  let takenUpTo = 0;
  while (part < parts.length) {
    const sign = pattern[item];
    if (sign !== undefined && signs.isMany(sign)) {
      lastMany = item;
      takenUpTo = part;
      item += 1;
    } else if (sign !== undefined && signs.fits(sign, parts[part] ?? "")) {
      item += 1;
      part += 1;
    } else if (lastMany !== -1) {
      takenUpTo += 1;
      item = lastMany + 1;
      part = takenUpTo;
    } else return false;
  }
  return pattern.slice(item).every((sign) => signs.isMany(sign));
}
