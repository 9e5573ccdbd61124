import type { JudgeCommand, Judgement, Place, UsedPath, Word } from "../model.ts";
import { hasOption, type OptionTable, optionTable, plainWord, scanOptions, valuesOf } from "../word.ts";
import { shells } from "../wrapper-specs.ts";
import { judgePrintenv, judgePs, judgeQuestion } from "./inspecting-programs.ts";
import { judgeBuiltin } from "./judge-builtin.ts";
import { judgeDevelopment } from "./judge-development.ts";
import { judgeFind } from "./judge-find.ts";
import { judgeGit } from "./judge-git.ts";
import { judgeJq } from "./judge-jq.ts";
import { hidesNext, judgeSed, regexEnd } from "./judge-sed.ts";
import {
  environmentReason,
  judgement,
  optionPaths,
  optionRisk,
  type ProgramSpec,
  programJudge,
  used,
} from "./judgement.ts";
import { judgeCurl, judgeWget, networkPrograms } from "./network-programs.ts";
import { readingPrograms } from "./reading-programs.ts";
import { writingPrograms } from "./writing-programs.ts";

/** What a command does with these arguments; undefined for one that no table knows. */
export function judgeCommand(words: readonly Word[], place: Place): Judgement | undefined {
  const name = words[0]?.text ?? "";
  return (
    judgeQuestion(words) ??
    judgeBuiltin(words) ??
    judges.get(name)?.(words, place) ??
    judgeDevelopment(words) ??
    judgeInterpreter(words)
  );
}

const specs: readonly (readonly [string, ProgramSpec])[] = [
  ...readingPrograms,
  ...writingPrograms,
  ...networkPrograms,
];

const judges: ReadonlyMap<string, JudgeCommand> = new Map<string, JudgeCommand>([
  ...specs.map(([name, spec]): [string, JudgeCommand] => [name, programJudge(spec)]),
  ["git", judgeGit],
  ["find", judgeFind],
  ["sed", judgeSed],
  ["gsed", judgeSed],
  ["jq", judgeJq],
  ["curl", judgeCurl],
  ["wget", judgeWget],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, JudgeCommand] => [name, judgeAwk]),
  ...["tar", "gtar", "bsdtar"].map((name): [string, JudgeCommand] => [name, judgeTar]),
  ...["npm", "pnpm", "yarn"].map((name): [string, JudgeCommand] => [name, judgeManager]),
  ["dd", judgeDd],
  ["ps", judgePs],
  ["printenv", judgePrintenv],
]);

function judgeDd(words: readonly Word[]): Judgement {
  const files = (prefix: string): Word[] =>
    words
      .filter(({ text }) => text.startsWith(prefix))
      .map((word) => ({ ...word, text: word.text.slice(3), path: word.path.slice(3) }));
  const isKnown = words
    .slice(1)
    .every(
      ({ text, literal }) =>
        literal &&
        /^(?:if|of|bs|ibs|obs|cbs|count|skip|seek|iseek|oseek|conv|iflag|oflag|status)=/.test(text),
    );
  return judgement(
    false,
    [...used(files("if="), "read"), ...used(files("of="), "write")],
    [isKnown ? undefined : "an argument of dd is not understood"],
  );
}

const interpreter =
  /^(?:python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|ruby[\d.]*|perl[\d.]*|php[\d.]*|lua[\d.]*|Rscript|osascript|tclsh|expect|guile|ghci?|runghc|erl|elixir|julia|groovy|scala|jshell|irb|psql|mysql|sqlite3|gdb|lldb|emacs|vim?|vim|nvim|nano|ed|ex|npx|bunx|pnpx|uvx|pipx)$/;
/** Interpreters that print their version without reading a file of the project. */
const versioned = /^(?:node|nodejs|ruby|perl|php)$/;

/** A wildcard that names an interpreter grants any code, and says so; one that only begins with a star does not. */
function judgeInterpreter(words: readonly Word[]): Judgement | undefined {
  const name = words[0]?.text ?? "";
  if (!interpreter.test(name)) return undefined;
  const isQuestion =
    words.length === 2 && words[1]?.literal === true && /^(?:--version|-v)$/.test(words[1].text);
  const isPython =
    /^python3?$/.test(name) && /^(?:--version|-V)$/.test(words[1]?.text ?? "") && words.length === 2;
  if ((isQuestion && versioned.test(name)) || isPython) return judgement(true, []);
  const at = findStarted(words);
  const inner = at === undefined ? undefined : judgeDevelopment(words.slice(at));
  return {
    readOnly: false,
    exactOnly: `${name} runs any program it is given`,
    wildcardHead: name,
    pinnedHead: at === undefined ? undefined : textOf(words.slice(0, at + 1)),
    ...(at !== undefined &&
      inner?.exactOnly !== undefined && {
        requiredHead: `${textOf(words.slice(0, at))} ${inner.wildcardHead ?? textOf(words.slice(at))}`,
      }),
    namesFiles: inner === undefined ? "code" : "tool",
    ...(inner?.changesOperands !== undefined && { changesOperands: inner.changesOperands }),
    paths: [],
    anywhere: false,
  };
}

function textOf(words: readonly Word[]): string {
  return words.map(({ text }) => text).join(" ");
}

/** Where the script is that the interpreter of a language runs; programs that edit files or data have none. */
export function findScript(words: readonly Word[]): number | undefined {
  const name = words[0]?.text ?? "";
  if (shells.has(name)) {
    const at = words.findIndex((word, place) => place > 0 && (!word.literal || !/^[-+]/.test(word.text)));
    return at === -1 ? undefined : at;
  }
  return interpreter.test(name) && !editor.test(name) ? findStarted(words) : undefined;
}

const editor = /^(?:psql|mysql|sqlite3|gdb|lldb|emacs|vim?|nvim|nano|ed|ex)$/;

/** Options that change nothing about which code an interpreter runs. */
const calmOptions =
  /^(?:-[uBEsIqyv]|--check|--test|--yes|--no-install|--quiet|--silent|--no-warnings|--watch)$/;

/** Where the script, module or package is that is run: a rule that reaches so far leaves only its arguments open. */
function findStarted(words: readonly Word[]): number | undefined {
  let at = 1;
  while (words[at]?.literal === true && calmOptions.test(words[at]?.text ?? "")) at += 1;
  if (words[at]?.text === "-m") at += 1;
  const last = words[at];
  return last === undefined || !last.literal || last.text.startsWith("-") ? undefined : at;
}

const managerOptions = optionTable(
  "s silent q quiet w: workspace: workspaces if-present D E P S O B save save-dev save-exact save-optional save-prod " +
    "no-save omit: include: only: production prod dev no-audit no-fund no-optional legacy-peer-deps strict-peer-deps " +
    "force f verbose d loglevel: json long depth: all a parseable dry-run ignore-scripts frozen-lockfile " +
    "no-frozen-lockfile immutable prefer-offline offline yes y r recursive filter: F: parallel stream no-bail bail " +
    "include-workspace-root progress no-progress color no-color version v help h package-lock no-package-lock " +
    "package-lock-only non-interactive pure-lockfile latest L i g global script-shell:! shell:! prefix: C: dir: " +
    "cwd: userconfig:! globalconfig:! node-options:! init-module:! git:! editor:! viewer:! browser:! " +
    "onload-script:! use-yarnrc:! modules-folder:!",
);

const builtIn = new Set(
  (
    "add install i ci remove rm uninstall un update up upgrade outdated list ls ll why audit publish pack link unlink " +
    "config init create cache info view search login logout version dedupe prune rebuild owner team token set import fetch store"
  ).split(" "),
);

/** Reads a call of npm, pnpm or yarn: their own options are known ones, and what follows a script's name is the script's. */
function judgeManager(words: readonly Word[]): Judgement {
  const program = words[0]?.text ?? "";
  const before = scanOptions(words.slice(1), managerOptions, { stopAtOperand: true });
  const [command, ...rest] = words.slice(1 + before.taken);
  // npm takes every option before `--` for its own, wherever it is.
  const isStrict = program === "npm" || (command !== undefined && builtIn.has(command.text));
  const after = scanOptions(isStrict ? rest : [], managerOptions);
  // yarn and pnpm find those that lead them elsewhere after a script's name too.
  const own = rest.slice(0, rest.findIndex(({ text }) => text === "--") >>> 0);
  const leading = isStrict ? [] : scanOptions(own, managerOptions).options;
  const verb = command?.text ?? "";
  const changes =
    configuring.has(`${program} ${verb}`) ||
    (/^(?:c|config)$/.test(verb) && !/^(?:get|list|ls)$/.test(after.operands[0]?.text ?? "list"));
  const isQuestion = words.length === 2 && /^(?:--version|-v)$/.test(words[1]?.text ?? "");
  const judged = judgement(
    isQuestion && program === "npm",
    [],
    [
      optionRisk(program, { options: [...before.options, ...after.options, ...leading] }),
      before.unclear ?? after.unclear,
      own.some(({ text }) => text.startsWith("--config."))
        ? `an option of ${program} changes its configuration`
        : undefined,
      changes ? `a changed configuration of ${program} can start programs` : undefined,
    ],
  );
  const scans = [...before.options, ...after.options, ...leading];
  const entered = valuesOf({ options: scans }, "prefix", "C", "dir", "cwd");
  // Which of several counts differs.
  const folders = entered.length > 1 ? entered.map((word) => ({ ...word, pathKnown: false })) : entered;
  return {
    ...judged,
    ...(folders.length > 0 && { folders }),
    ...(judged.exactOnly === undefined && judgeStarted(words, words.indexOf(command ?? plainWord("")))),
    ...(!isQuestion && { namesFiles: "any" as const }),
    anywhere: false,
  };
}

/** Further commands of package managers that change what they start. */
const configuring = new Set(["npm set", "pnpm set", "pnpm c", "yarn set", "yarn plugin"]);

/** A tool of developers that a package manager starts is judged as if it were called by itself. */
function judgeStarted(
  words: readonly Word[],
  command: number,
): Pick<Judgement, "exactOnly" | "wildcardHead" | "changesOperands"> {
  if (command === -1) return {};
  let at = /^(?:exec|x|dlx|run)$/.test(words[command]?.text ?? "") ? command + 1 : command;
  if (words[at]?.text === "--") at += 1;
  const inner = judgeDevelopment(words.slice(at));
  if (inner?.exactOnly === undefined) return inner?.changesOperands === true ? { changesOperands: true } : {};
  const head = `${textOf(words.slice(0, at))} ${inner.wildcardHead ?? textOf(words.slice(at))}`;
  return { exactOnly: inner.exactOnly, wildcardHead: head, changesOperands: inner.changesOperands };
}

export const tarOptions: OptionTable = optionTable(
  "A c d r t u x f: file: C: directory: I:! use-compress-program:! to-command:! checkpoint? checkpoint-action:! " +
    "rsh-command:! rmt-command:! F:! info-script:! new-volume-script:! T:< files-from:< X:< exclude-from:< " +
    "g:> listed-incremental:> index-file:> P! absolute-names! remove-files! one-top-level? K: N: L: b: H: V: " +
    "owner: group: mode: mtime: transform:! xform:! strip-components: exclude: exclude-vcs no-same-owner no-same-permissions " +
    "same-owner same-permissions j J z Z a v k m p w h O S B l o to-stdout create extract get list append update concatenate " +
    "catenate diff compare delete test-label gzip bzip2 xz zstd auto-compress verbose keep-old-files overwrite " +
    "skip-old-files touch volno-file:> suffix: format: sort: warning: wildcards numeric-owner totals? dereference help version",
);
/** With these options tar only lists what is in an archive. */
const listing = new Set(
  "t list f file v verbose z gzip j bzip2 J xz a auto-compress exclude numeric-owner".split(" "),
);
const extracting = ["x", "extract", "get"];
const writing = "c create r append u update A concatenate catenate delete".split(" ");

/** Reads a tar command: which archive and which directory it writes. */
function judgeTar(words: readonly Word[]): Judgement {
  const scanned = scanOptions(separated(words.slice(1)), tarOptions);
  const creates = hasOption(scanned, ...writing);
  const archives = valuesOf(scanned, "f", "file");
  const directories = valuesOf(scanned, "C", "directory");
  const paths: UsedPath[] = [...optionPaths(scanned.options), ...used(archives, creates ? "write" : "read")];
  if (hasOption(scanned, ...extracting))
    paths.push(...below(directories.length > 0 ? directories : [plainWord(".")], "write"));
  else paths.push(...used(directories, "read"));
  // What a list names is not known.
  if (hasOption(scanned, "T", "files-from"))
    paths.push({ word: { ...plainWord("."), pathKnown: false }, use: "read" });
  const reach = hasOption(scanned, "h", "dereference") ? "follow" : "all";
  if (creates) paths.push(...below(scanned.operands, "read", reach));
  if (hasOption(scanned, "remove-files")) paths.push(...below(scanned.operands, "remove"));
  const isListing =
    hasOption(scanned, "t", "list") &&
    archives.length === 1 &&
    scanned.options.every(({ name }) => listing.has(name));
  return judgement(isListing && environmentReason(words) === undefined, paths, [
    optionRisk("tar", scanned),
    archives.some(({ text }) => text.includes(":")) ? "tar opens an archive on another machine" : undefined,
    scanned.unclear,
  ]);
}

function below(words: readonly Word[], use: UsedPath["use"], reach: "all" | "follow" = "all"): UsedPath[] {
  return used(words, use).map((path) => ({ ...path, below: reach }));
}

/** `xzf a.tgz` is `-x -z -f a.tgz`: the values follow in the order of the letters. */
function separated(words: readonly Word[]): Word[] {
  const [first, ...rest] = words;
  if (first === undefined || !first.literal || first.text.startsWith("-")) return [...words];
  const separate: Word[] = [];
  for (const letter of first.text) {
    separate.push(plainWord(`-${letter}`));
    const value = tarOptions.get(letter)?.includes(":") ? rest.shift() : undefined;
    if (value !== undefined) separate.push(value);
  }
  return [...separate, ...rest];
}

export const awkOptions = optionTable(
  "F: v: field-separator:! assign:! f:<! file:<! e:! source:! i:! include:! l:! load:! E:! exec:! o?> pretty-print?> " +
    "d?> dump-variables?> p?> profile?> D?! debug?! version help",
);

/**
 * Reads an awk command: only programs of a small grammar are understood, which write to the output alone. The first
 * operand ends the options. Options that only some programs have must not bring a value, which others would take for
 * the program.
 */
function judgeAwk(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), awkOptions, { stopAtOperand: true });
  const operands = words.slice(1 + scanned.taken);
  const implied = !hasOption(scanned, "f", "file", "e", "source");
  const programs = implied ? operands.slice(0, 1) : valuesOf(scanned, "e", "source");
  const rest = operands.slice(implied ? 1 : 0);
  const files = rest.filter(({ text, literal }) => !literal || !/^[A-Za-z_]\w*=/.test(text));
  // The library of gawk that changes files in place.
  const isInPlace = valuesOf(scanned, "i", "include").some(({ text }) =>
    /(?:^|\/)inplace(?:\.awk)?$/.test(text),
  );
  const assigned = [...valuesOf(scanned, "v", "assign"), ...rest.filter((word) => !files.includes(word))];
  const judged = judgement(
    true,
    [...optionPaths(scanned.options), ...used(files, "read"), ...(isInPlace ? used(files, "write") : [])],
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
function isHarmlessProgram(program: string): boolean {
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
