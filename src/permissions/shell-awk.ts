import { optionPaths, optionRisk } from "./shell-command-spec.ts";
import { type Judgement, judgement, used } from "./shell-judgement.ts";
import { optionTable, scanOptions } from "./shell-options.ts";
import type { Word } from "./shell-word.ts";

const table = optionTable(
  "F: field-separator: v: assign: f:<! file:<! e: source: i:! include:! l:! load:! E:! exec:! o?> pretty-print?> " +
    "d?> dump-variables?> p?> profile?> D?! debug?! b c C g h I k L? M n N O P r s S t V W:! posix sandbox lint? " +
    "re-interval traditional csv version help",
);

/** Reads an awk command: its program may execute, write and read files. */
export function judgeAwk(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), table);
  const given = scanned.options.filter(({ name }) => name === "e" || name === "source");
  const fromFile = scanned.options.some(({ name }) => name === "f" || name === "file");
  const implied = given.length === 0 && !fromFile;
  const programs = implied
    ? scanned.operands.slice(0, 1)
    : given.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const files = scanned.operands
    .slice(implied ? 1 : 0)
    .filter(({ text, literal }) => !literal || !/^[A-Za-z_]\w*=/.test(text));
  return judgement(
    false,
    [...optionPaths(scanned.options), ...used(files, "read")],
    [
      optionRisk(words, scanned),
      ...programs.map(({ literal, text }) =>
        literal ? programRisk(text) : "the program of awk is only known when it runs",
      ),
      scanned.loose ? "an argument of awk is only known when it runs and may be an option" : undefined,
    ],
  );
}

const strange = "the program of awk is not understood";
const acting = new Set(["system", "getline", "ARGV", "ARGC", "ENVIRON"]);
const beforeRegex = new Set(["print", "printf", "return", "in", "case", "do", "else", "exit", ""]);
const token = /\s+|\\\n|#[^\n]*|"(?:[^"\\\n]|\\[\s\S])*"|[A-Za-z_]\w*|\d[\w.]*|\|\||>>|[\s\S]/y;
const regex = /\/(?:[^/\\\n]|\\.)*\//y;

/** Looks for pipes, files and calls outside of texts and patterns. */
function programRisk(program: string): string | undefined {
  let previous = "";
  let printing = false;
  let depth = 0;
  for (let at = 0; at < program.length; ) {
    token.lastIndex = at;
    const text = token.exec(program)?.[0] ?? "";
    at += text.length;
    if (/^(?:\s|\\\n|#)/.test(text)) {
      // A statement ends with its line, and a pattern may begin the next.
      if (/^\s*\n/.test(text)) previous = ";";
      continue;
    }
    if (text === "/" && isRegexAfter(previous)) {
      regex.lastIndex = at - 1;
      const found = regex.exec(program)?.[0];
      // Whether a slash in brackets ends the pattern differs between awks.
      if (found === undefined || /\[[^\]]*\/$/.test(found)) return strange;
      at += found.length - 1;
      previous = "/…/";
      continue;
    }
    // A pattern or a division: they differ in where texts and comments begin.
    if (text === "/" && /^[-+)]$/.test(previous) && /["#]/.test(program.slice(at))) return strange;
    if (text === '"' || text === "'" || text === "@" || text === "\\") return strange;
    if (acting.has(text)) return `${text} of awk executes, or reads other files`;
    if (text === "|" || text === ">>") return "the program of awk writes or executes";
    if (text === "print" || text === "printf") printing = true;
    if (text === "(") depth += 1;
    if (text === ")") depth -= 1;
    if (text === ";" || text === "}" || text === "{") {
      printing = false;
      depth = 0;
    }
    if (text === ">" && printing && depth <= 0) return "the program of awk writes a file";
    previous = text;
  }
  return undefined;
}

function isRegexAfter(previous: string): boolean {
  return beforeRegex.has(previous) || /^[(,!~&{};:?=<>|*%^]$|^\|\|$/.test(previous);
}
