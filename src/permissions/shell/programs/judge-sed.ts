import { optionTable, scanOptions, valuesOf } from "../option-table.ts";
import { plainWord, type Word } from "../word.ts";
import { environmentReason, type Judgement, judgement, optionPaths, optionRisk, used } from "./judgement.ts";

const table = optionTable(
  "n quiet silent E r regexp-extended s separate z null-data u unbuffered l: line-length: posix debug sandbox e: " +
    "expression: f:<! file:<! i?! in-place?! help version",
);

/** Reads a sed command: only scripts of a small grammar are understood, in which nothing writes or executes. */
export function judgeSed(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), table);
  const given = valuesOf(scanned, "e", "expression");
  const fromFile = valuesOf(scanned, "f", "file").length > 0;
  const implied = given.length === 0 && !fromFile;
  const scripts = implied ? scanned.operands.slice(0, 1) : given;
  const files = scanned.operands.slice(implied ? 1 : 0);
  const inPlace = scanned.options.some(({ name }) => name === "i" || name === "in-place");
  const written = scripts.flatMap(({ text }) => namedFiles(text));
  const judged = judgement(
    true,
    [
      ...optionPaths(scanned.options),
      ...used(files, "read"),
      ...(inPlace ? used(files, "write") : []),
      ...used(written, "write"),
    ],
    [
      optionRisk("sed", scanned),
      scripts.every(({ literal, text }) => literal && isHarmlessScript(text))
        ? undefined
        : "the script of sed is more than printing, deleting and replacing text",
      scanned.unclear,
    ],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

const address = /^(?:\d+(?:~\d+)?|\$|\/(?:[^/\\\n]|\\[^\n])*\/I?|\+\d+|~\d+)/;
const command = /^(?:[pd=]|[qQ] ?\d*|n|N)/;
const delimiters = /^[/|,#:@!%_]$/;

/**
 * Whether a script is a list of `[address[,address]][!]command`, where the command prints, deletes, ends, replaces or
 * exchanges characters.
 */
export function isHarmlessScript(script: string): boolean {
  let rest = script;
  for (;;) {
    rest = rest.replace(/^[ \t\n;]+/, "");
    if (rest === "") return true;
    const first = address.exec(rest)?.[0] ?? "";
    rest = rest.slice(first.length).trimStart();
    if (first !== "" && rest.startsWith(",")) {
      rest = rest.slice(1).trimStart();
      const second = address.exec(rest)?.[0];
      if (second === undefined) return false;
      rest = rest.slice(second.length).trimStart();
    }
    if (first !== "" && hasBracketedDelimiter(first, "/")) return false;
    if (rest.startsWith("!")) rest = rest.slice(1).trimStart();
    const length =
      rest.startsWith("s") || rest.startsWith("y")
        ? substitutionLength(rest)
        : (command.exec(rest)?.[0].length ?? 0);
    if (length === 0) return false;
    rest = rest.slice(length);
    if (!/^[ \t]*(?:[;\n]|$)/.test(rest)) return false;
  }
}

/** The length of `s/…/…/flags` or `y/…/…/`; 0 for one that is not understood. */
function substitutionLength(text: string): number {
  const delimiter = text[1] ?? "";
  if (!delimiters.test(delimiter)) return 0;
  const middle = closing(text, 2, delimiter);
  const end = middle === undefined ? undefined : closing(text, middle + 1, delimiter);
  if (middle === undefined || end === undefined) return 0;
  if (hasBracketedDelimiter(text.slice(2, middle), delimiter) || text.slice(2, end).includes("\n")) return 0;
  const flags = text[0] === "y" ? "" : (/^[gpiI\d]*/.exec(text.slice(end + 1))?.[0] ?? "");
  return end + 1 + flags.length;
}

function closing(text: string, from: number, delimiter: string): number | undefined {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === delimiter) return at;
  }
  return undefined;
}

/** Programs differ in whether a delimiter between brackets ends the pattern. */
function hasBracketedDelimiter(pattern: string, delimiter: string): boolean {
  const inside =
    pattern.startsWith("/") && delimiter === "/" ? pattern.slice(1).replace(/\/I?$/, "") : pattern;
  return /\[/.test(inside.replace(/\\./g, "")) && new RegExp(`\\[[^\\]]*\\\\?\\${delimiter}`).test(inside);
}

/** Files that a script may name, so that rules which deny see them. */
function namedFiles(script: string): Word[] {
  return [...script.matchAll(/(?:^|[;\n}/|,#:@!%_gpiI\d ])[wWrR] +([^\n;}]+)/g)].flatMap(([, file]) =>
    file === undefined ? [] : [plainWord(file.trim())],
  );
}
