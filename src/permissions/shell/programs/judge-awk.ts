import { hasOption, optionTable, scanOptions, valuesOf } from "../option-table.ts";
import type { Word } from "../word.ts";
import { environmentReason, type Judgement, judgement, optionPaths, optionRisk, used } from "./judgement.ts";
import { hidesNext, regexEnd } from "./regex-literal.ts";

export const awkOptions = optionTable(
  "F: v: field-separator:! assign:! f:<! file:<! e:! source:! i:! include:! l:! load:! E:! exec:! o?> pretty-print?> " +
    "d?> dump-variables?> p?> profile?> D?! debug?! version help",
);

/**
 * Reads an awk command: only programs of a small grammar are understood, which write to the output alone. The first
 * operand ends the options. Options that only some programs have must not bring a value, which others would take for
 * the program.
 */
export function judgeAwk(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), awkOptions, { stopAtOperand: true });
  const operands = words.slice(1 + scanned.taken);
  const implied = !hasOption(scanned, "f", "file", "e", "source");
  const programs = implied ? operands.slice(0, 1) : valuesOf(scanned, "e", "source");
  const rest = operands.slice(implied ? 1 : 0);
  const files = rest.filter(({ text, literal }) => !literal || !/^[A-Za-z_]\w*=/.test(text));
  const assigned = [...valuesOf(scanned, "v", "assign"), ...rest.filter((word) => !files.includes(word))];
  const judged = judgement(
    true,
    [...optionPaths(scanned.options), ...used(files, "read")],
    [
      optionRisk("awk", scanned),
      programs.every(({ literal, text }) => literal && isHarmlessProgram(text))
        ? undefined
        : "the program of awk is more than patterns and printing",
      assigned.every(({ text }) => isPlainName(text.slice(0, text.indexOf("="))))
        ? undefined
        : "a variable of awk may change what it reads",
      scanned.unclear,
    ],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

const keywords = new Set(
  "BEGIN END if else while for do in next exit print printf delete break continue".split(" "),
);
export const awkFunctions = new Set(
  (
    "length substr split index match sub gsub gensub sprintf toupper tolower int sqrt log exp sin cos atan2 rand srand " +
    "strftime systime mktime strtonum and or xor lshift rshift compl"
  ).split(" "),
);
export const awkVariables = new Set("NR NF FNR FILENAME FS OFS ORS RS RSTART RLENGTH SUBSEP".split(" "));
const token =
  /[ \t]+|\\\n|#[^\n]*|\n|"(?:[^"\\\n]|\\[^\n])*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|\|\||&&|\+\+|--|[-+*/%^=!<>]=|[-+*/%^=!<>~?:,;(){}[\]$]/y;
const beforeRegex = /^(?:|[(,!~{};]|&&|\|\||\n)$/;

function isPlainName(name: string): boolean {
  return awkVariables.has(name) || ownName.test(name);
}

/** Variables of awk itself are written in capitals, its functions in small letters. */
const ownName = /^(?:_*[a-z]\w*|[A-Z]|[A-Z]\w*[a-z]\w*)$/;

/** Whether a program consists of known words; pipes, redirections, calls of other functions and other files are none. */
export function isHarmlessProgram(program: string): boolean {
  if (Array.from(program, (_, at) => at).some((at) => hidesNext(program, at))) return false;
  let previous = "";
  let prints = false;
  for (let at = 0; at < program.length; ) {
    const pattern = program[at] === "/" && beforeRegex.test(previous) ? regexAt(program, at) : undefined;
    token.lastIndex = at;
    const found = pattern ?? token.exec(program)?.[0];
    if (found === undefined) return false;
    at += found.length;
    if (/^(?:[ \t]|\\\n|#)/.test(found)) continue;
    if (pattern === undefined && found.startsWith("/") && program.slice(at).includes("/")) return false;
    if (/^[A-Za-z_]/.test(found) && !isKnownName(found, program.slice(at))) return false;
    if (found === "print" || found === "printf") prints = true;
    if (/^[;{}]$/.test(found)) prints = false;
    if (prints && (found === ">" || found === ">=")) return false;
    previous = pattern === undefined ? found : "/";
  }
  return true;
}

function regexAt(program: string, at: number): string | undefined {
  const end = regexEnd(program, at + 1, "/");
  return end === undefined ? undefined : program.slice(at, end + 1);
}

function isKnownName(name: string, rest: string): boolean {
  if (keywords.has(name) || awkVariables.has(name)) return true;
  if (awkFunctions.has(name)) return true;
  return ownName.test(name) && !/^\s*\(/.test(rest) && !reserved.has(name);
}

const reserved = new Set(
  (
    "getline system close fflush nextfile return func function switch case default asort asorti bindtextdomain dcgettext " +
    "dcngettext isarray typeof mkbool patsplit"
  ).split(" "),
);
