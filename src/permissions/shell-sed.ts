import { optionPaths, optionRisk } from "./shell-command-spec.ts";
import { type Judgement, judgement, used } from "./shell-judgement.ts";
import { optionTable, scanOptions } from "./shell-options.ts";
import { plainWord, type Word } from "./shell-word.ts";

const table = optionTable(
  "n quiet silent debug E r regexp-extended s separate z null-data u unbuffered l: line-length: posix b binary " +
    "follow-symlinks sandbox e: expression: f:<! file:<! i?! in-place?! help version",
);

/** Reads a sed command: its scripts may execute, write and read files. */
export function judgeSed(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), table);
  const given = scanned.options.filter(({ name }) => name === "e" || name === "expression");
  const fromFile = scanned.options.some(({ name }) => name === "f" || name === "file");
  const scriptWords = given.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const implied = scriptWords.length === 0 && !fromFile;
  const scripts = implied ? scanned.operands.slice(0, 1) : scriptWords;
  const files = scanned.operands.slice(implied ? 1 : 0);
  const reading = scripts.every(({ literal }) => literal)
    ? readScript(scripts.map(({ text }) => text).join("\n"))
    : { reads: [], writes: [], risk: "the script of sed is only known when it runs" };
  const inPlace = scanned.options.some(({ name }) => name === "i" || name === "in-place");
  return judgement(
    true,
    [
      ...optionPaths(scanned.options),
      ...used(files, "read"),
      ...(inPlace ? used(files, "write") : []),
      ...used(reading.reads.map(plainWord), "read"),
      ...used(reading.writes.map(plainWord), "write"),
    ],
    [
      optionRisk(words, scanned),
      reading.risk,
      scanned.loose ? "an argument of sed is only known when it runs and may be an option" : undefined,
    ],
  );
}

interface ScriptReading {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly risk?: string;
}

const strange = { reads: [], writes: [], risk: "the script of sed is not understood" };
const address = /(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)/y;
const simple = /[=dDgGhHnNpPxzF]/;

/** Follows the commands of a script; whatever it does not know, or writes or executes, is a risk. */
function readScript(script: string): ScriptReading {
  const reads: string[] = [];
  const writes: string[] = [];
  let at = 0;
  while (at < script.length) {
    const start = skipAddresses(script, at);
    if (start === undefined) return strange;
    if (start >= script.length) break;
    const next = skipCommand(script, start, { reads, writes });
    if (typeof next === "string") return { reads, writes, risk: next };
    at = next;
  }
  return { reads, writes };
}

function skipAddresses(script: string, from: number): number | undefined {
  let at = from;
  for (;;) {
    while (at < script.length && /[\s;,!{}]/.test(script[at] ?? "")) at += 1;
    address.lastIndex = at;
    const found = address.exec(script);
    if (found !== null) {
      at += found[0].length;
      continue;
    }
    if (script[at] !== "/" && script[at] !== "\\") return at;
    const delimiter = script[at] === "\\" ? at + 1 : at;
    const end = closing(script, delimiter + 1, script[delimiter] ?? "");
    if (end === undefined) return undefined;
    at = end + 1;
    while (/[IM]/.test(script[at] ?? "")) at += 1;
  }
}

/** Where the next command begins, or why this one is a risk. */
function skipCommand(
  script: string,
  at: number,
  { reads, writes }: { readonly reads: string[]; readonly writes: string[] },
): number | string {
  const command = script[at] ?? "";
  if (simple.test(command)) return at + 1;
  const line = endOfLine(script, at);
  if ("qQlL".includes(command)) return at + 1 + (/^ *\d*/.exec(script.slice(at + 1, line))?.[0].length ?? 0);
  if ("btT:".includes(command)) return afterLabel(script, at, line);
  if ("aic".includes(command)) return afterText(script, at);
  if (command === "#") return line;
  if (command === "s" || command === "y") return afterSubstitution(script, at, writes);
  if (command === "r" || command === "R") {
    reads.push(script.slice(at + 1, line).trim());
    return line;
  }
  if (command === "w" || command === "W") writes.push(script.slice(at + 1, line).trim());
  if (command === "w" || command === "W" || command === "e")
    return `the command ${command} of sed writes or executes`;
  return strange.risk;
}

function afterSubstitution(script: string, at: number, writes: string[]): number | string {
  const delimiter = script[at + 1] ?? "\n";
  const middle = delimiter === "\n" || delimiter === "\\" ? undefined : closing(script, at + 2, delimiter);
  const end = middle === undefined ? undefined : closing(script, middle + 1, delimiter);
  if (end === undefined) return strange.risk;
  if (script[at] === "y") return end + 1;
  const flags = /^[gpiIM\d]*/.exec(script.slice(end + 1, end + 40))?.[0] ?? "";
  const next = script[end + 1 + flags.length] ?? "";
  if (next === "w") writes.push(script.slice(end + 2 + flags.length, endOfLine(script, end)).trim());
  return /^[\s;}]?$/.test(next)
    ? end + 1 + flags.length
    : `the flag ${next} of a substitution of sed is not harmless`;
}

function closing(script: string, from: number, delimiter: string): number | undefined {
  for (let at = from; at < script.length; at += 1) {
    if (script[at] === "\\") at += 1;
    else if (script[at] === delimiter) return at;
  }
  return undefined;
}

function endOfLine(script: string, at: number): number {
  const end = script.indexOf("\n", at);
  return end === -1 ? script.length : end;
}

function afterLabel(script: string, at: number, line: number): number {
  const semicolon = script.indexOf(";", at);
  return semicolon === -1 || script[at] === ":" ? line : Math.min(line, semicolon);
}

/** The text of `a`, `i` and `c` goes on while its lines end in a backslash. */
function afterText(script: string, at: number): number {
  let end = endOfLine(script, at);
  while (end < script.length && script[end - 1] === "\\") end = endOfLine(script, end + 1);
  return end;
}
