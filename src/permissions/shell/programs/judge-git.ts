import { optionTable, type ScannedWords, scanOptions } from "../option-table.ts";
import { quoteWord, type Word } from "../word.ts";
import { gitChangingCommands } from "./git-changing-commands.ts";
import { type GitCommand, revisionPath } from "./git-command.ts";
import { gitReadingCommands } from "./git-reading-commands.ts";
import { hardenedGit } from "./hardened-git.ts";
import {
  environmentReason,
  type Judgement,
  judgement,
  optionPaths,
  optionRisk,
  type Place,
  used,
} from "./judgement.ts";

export const gitGlobals = optionTable(
  "C:! c:! exec-path?! git-dir:! work-tree:! namespace:! p! paginate! config-env:! super-prefix:! attr-source:! bare! " +
    "P no-pager no-replace-objects no-optional-locks no-lazy-fetch no-advice literal-pathspecs glob-pathspecs " +
    "noglob-pathspecs icase-pathspecs version v help!",
);

/** The words of a git command with those before the subcommand taken out. */
export function withoutGitGlobals(words: readonly Word[]): readonly Word[] {
  const { taken } = scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true });
  return taken === 0 ? words : [...words.slice(0, 1), ...words.slice(taken + 1)];
}

/** Whether all options before the subcommand are such that a rule need not name them. */
export function hasHarmlessGitGlobals(words: readonly Word[]): boolean {
  const scanned = scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true });
  return optionRisk("git", scanned) === undefined && scanned.unclear === undefined;
}

const commands: ReadonlyMap<string, GitCommand> = new Map([...gitReadingCommands, ...gitChangingCommands]);

/** Reads a git command; what it obeys is the configuration of the repository it is in. */
export function judgeGit(words: readonly Word[], { here, repository }: Place): Judgement {
  const before = scanOptions(words.slice(1), gitGlobals, { stopAtOperand: true });
  const [, subcommand, ...rest] = withoutGitGlobals(words);
  const elsewhere = here ? undefined : "git runs the configuration of the directory it is in";
  const outer = [elsewhere, optionRisk("git", before), before.unclear];
  if (subcommand === undefined) {
    const isQuestion = before.options.some(({ name }) => name === "version" || name === "v");
    return judgement(isQuestion, [], outer);
  }
  if (!subcommand.literal) return judgement(false, [], ["the git command is only known when it runs"]);
  const command = commands.get(subcommand.text);
  if (command === undefined) return unknownCommand(subcommand.text, outer);
  const scanned = scanOptions(rest, command.options, { numeric: numbered.has(subcommand.text) });
  const paths = [
    ...optionPaths(scanned.options),
    ...used(command.reads(scanned, repository), "read"),
    ...used(command.writes(scanned), "write"),
  ];
  const judged = judgement(command.readOnly(scanned), paths, [
    ...outer,
    optionRisk(`git ${subcommand.text}`, scanned),
    scanned.unclear,
    command.caution(scanned),
  ]);
  const hasVerb = rest[0] !== undefined && rest[0] === scanned.operands[0];
  const isMisplaced = command.verb === "must" && !hasVerb;
  const readOnly = judged.readOnly && !isMisplaced && environmentReason(words) === undefined;
  return {
    ...judged,
    readOnly,
    anywhere: false,
    ...(command.shows(scanned) && !namesPaths(scanned) && { showsTracked: true as const }),
    ...(readOnly && { rendered: harden(before, subcommand, rest, command) }),
    ...(readOnly &&
      isLimitable(subcommand.text, scanned) && {
        limited: harden(before, subcommand, rest.map(asCommit), command),
      }),
  };
}

/** Whether all it shows is named by path: `git show HEAD:src/a.ts`. */
function namesPaths({ operands }: ScannedWords): boolean {
  return operands.length > 0 && operands.every(({ literal, text }) => literal && revisionPath.test(text));
}

const limitable = new Set(["diff", "log", "show", "whatchanged", "diff-tree", "grep"]);

/** Whether paths can be left out of what it shows: no operand names an object in another way than as a commit. */
function isLimitable(name: string, { operands, options }: ScannedWords): boolean {
  return (
    limitable.has(name) &&
    !options.some((option) => option.name === "no-index" || option.name === "L") &&
    operands.slice(name === "grep" ? 1 : 0).every(({ literal, text }) => literal && !/:|\^\{|^-/.test(text))
  );
}

/** A hash could be that of a file's contents; as a commit it cannot. */
function asCommit(word: Word): Word {
  return word.literal && /^[0-9a-f]{4,64}$/.test(word.text)
    ? { ...word, rendered: `'${word.text}^{commit}'` }
    : word;
}

const numbered = new Set([
  "log",
  "show",
  "whatchanged",
  "reflog",
  "shortlog",
  "stash",
  "rev-list",
  "format-patch",
]);

function unknownCommand(name: string, reasons: readonly (string | undefined)[]): Judgement {
  const reason =
    reasons.find((found) => found !== undefined) ?? `git ${name} may be an alias or another program`;
  return { readOnly: false, exactOnly: reason, wildcardHead: `git ${name}`, paths: [], anywhere: false };
}

function harden(
  before: ScannedWords,
  subcommand: Word,
  rest: readonly Word[],
  command: GitCommand,
): readonly string[] {
  const kept = before.options.flatMap(({ name }) =>
    /^(?:literal|glob|noglob|icase)-pathspecs$|^no-replace-objects$/.test(name) ? [`--${name}`] : [],
  );
  const verbs = command.verb !== undefined && rest[0]?.text.startsWith("-") === false ? 1 : 0;
  return [
    "git",
    ...hardenedGit.map(quoteWord),
    ...kept,
    subcommand.rendered,
    ...rest.slice(0, verbs).map(({ rendered }) => rendered),
    ...command.hardening,
    ...rest.slice(verbs).map(({ rendered }) => rendered),
  ];
}
