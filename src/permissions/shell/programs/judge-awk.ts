import { hasOption, optionTable, scanOptions, valuesOf } from "../option-table.ts";
import type { Word } from "../word.ts";
import { environmentReason, type Judgement, judgement, optionPaths, optionRisk, used } from "./judgement.ts";

const table = optionTable(
  "F: field-separator: v: assign: f:<! file:<! e: source: i:! include:! l:! load:! E:! exec:! o?> pretty-print?> " +
    "d?> dump-variables?> p?> profile?> D?! debug?! posix re-interval version help",
);

/** Reads an awk command: only programs of a small grammar are understood, which write to the output alone. */
export function judgeAwk(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), table);
  const given = valuesOf(scanned, "e", "source");
  const implied = given.length === 0 && !hasOption(scanned, "f", "file");
  const programs = implied ? scanned.operands.slice(0, 1) : given;
  const files = scanned.operands
    .slice(implied ? 1 : 0)
    .filter(({ text, literal }) => !literal || !/^[A-Za-z_]\w*=/.test(text));
  const assigned = [
    ...valuesOf(scanned, "v", "assign"),
    ...scanned.operands.slice(implied ? 1 : 0).filter((word) => !files.includes(word)),
  ];
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
const functions = new Set(
  "length substr split index match sub gsub sprintf toupper tolower int sqrt log exp sin cos atan2 rand srand".split(
    " ",
  ),
);
const variables = new Set("NR NF FNR FILENAME FS OFS ORS RS RSTART RLENGTH SUBSEP".split(" "));
const token =
  /[ \t]+|\\\n|#[^\n]*|\n|"(?:[^"\\\n]|\\[^\n])*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|\|\||&&|\+\+|--|[-+*/%^=!<>]=|[-+*/%^=!<>~?:,;(){}[\]$]/y;
const regex = /\/(?:[^/\\\n["]|\\[^\n"]|\[\^?\]?[^\]/\n"]*\])+\//y;
const beforeRegex = /^(?:|[(,!~{};]|&&|\|\||\n)$/;

function isPlainName(name: string): boolean {
  return variables.has(name) || /^[a-z][a-z0-9_]*$/.test(name);
}

/** Whether a program consists of known words; pipes, redirections, calls of other functions and other files are none. */
export function isHarmlessProgram(program: string): boolean {
  let previous = "";
  let prints = false;
  for (let at = 0; at < program.length; ) {
    regex.lastIndex = at;
    const pattern = program[at] === "/" && beforeRegex.test(previous) ? regex.exec(program)?.[0] : undefined;
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

function isKnownName(name: string, rest: string): boolean {
  if (keywords.has(name) || variables.has(name)) return true;
  if (functions.has(name)) return true;
  return /^[a-z][a-z0-9_]*$/.test(name) && !/^\s*\(/.test(rest) && !reserved.has(name);
}

const reserved = new Set(
  (
    "getline system close fflush nextfile return func function switch case default gensub asort asorti strftime systime " +
    "mktime and or xor compl lshift rshift bindtextdomain dcgettext dcngettext isarray typeof mkbool strtonum patsplit"
  ).split(" "),
);
