// @io
import { statSync } from "node:fs";
import { posix } from "node:path";
import type { PathFact } from "./call-facts.ts";
import { gatherPathFact, type PathEnvironment } from "./gather-path-facts.ts";
import { isInside } from "./permission-policy.ts";
import { protectsName } from "./protection-of.ts";
import { matchesPath } from "./rules/matches-call.ts";
import type { ShellUnit, ShellWord } from "./shell/model.ts";
import { runners } from "./shell/wrapper-specs.ts";

/**
 * Files that are named among the words of a program whose use of them is not known, where rules or guards match them
 * or they are outside the working directories. Of a program that may start others, also those in the texts that these
 * could be, where rules or guards match them.
 */
export async function gatherNamedFiles(
  { words: [program, ...words], namesFiles, directories, exactOnly, started = [] }: ShellUnit,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  if (program === undefined) return [];
  const isConfined = namesFiles === "tool" || (namesFiles === "any" && !runners.has(program.text));
  const [directory = ""] = directories;
  const base =
    directory === "" || directory === "unknown" ? {} : { directory: absolute(directory, environment) };
  const isRewriting = words.some(({ text }) => rewriting.test(text));
  const amongWords = words.flatMap((word, at) =>
    candidates(word).map((path) => ({
      path,
      isGuess:
        isRewriting || isOption(word) || isOption(words[at - 1]) ? ("option" as const) : ("operand" as const),
    })),
  );
  const inTexts = exactOnly === undefined ? [] : namesInTexts(started, words);
  const named = [
    ...(namesFiles === undefined ? [] : amongWords),
    ...inTexts.map((path) => ({ path, isGuess: "option" as const })),
  ];
  const facts = await Promise.all(
    named.map(async ({ path, isGuess }): Promise<PathFact> => {
      const { forms, unknown } = await gatherPathFact({ path, use: "read", ...base }, environment);
      return { forms, use: "read", isGuess, ...(unknown?.endsWith("to look it up") === true && { unknown }) };
    }),
  );
  const isListed = (at: number): boolean => namesFiles !== undefined && at < amongWords.length;
  return facts.filter(
    (fact, at) =>
      isNotable(fact, environment) ||
      (isConfined && isListed(at) && isOutside(fact, named[at]?.path ?? "", environment)),
  );
}

/** Options by which programs change the files that they are given: `perl -pi`, `--in-place`, `prettier --write`. */
const rewriting = /^(?:-[A-Za-z]{0,3}i(?:\.\w+)?|--in-?place(?:=.*)?|--write|--fix)$/;

/** So many parts of texts are looked at. */
const maxNamed = 200;

/** The parts of texts that a program may run; its plain words are not among them. */
function namesInTexts(
  started: readonly (readonly string[])[],
  words: readonly ShellWord[],
): readonly string[] {
  const plain = words.map(({ text }) => text).join("\0");
  const parts = started.filter((each) => each.join("\0") !== plain).flat();
  return [...new Set(parts)].filter((part) => !part.startsWith("//")).slice(0, maxNamed);
}

function absolute(directory: string, { directory: start, home }: PathEnvironment): string {
  if (directory === "~" || directory.startsWith("~/")) return `${home}${directory.slice(1)}`;
  return directory.startsWith("/") ? directory : `${start}/${directory}`;
}

function isOption(word: ShellWord | undefined): boolean {
  return word !== undefined && /^-[^\s]/.test(word.text) && word.text !== "--";
}

function candidates({ text, literal }: ShellWord): readonly string[] {
  return literal ? pathsInWord(text).filter((path) => path !== "." && path !== "/") : [];
}

/** What of a word may be a path: `--option=PATH`, `-oPATH`, `@PATH`, `name=PATH`, `PATH:PATH`. */
export function pathsInWord(text: string): readonly string[] {
  const plain = text.replace(/^fileb?:\/\//i, "");
  if (plain.length > 4_096 || /^[a-z][a-z0-9+.-]*:\/\//i.test(plain)) return [];
  // A dot command of a program for databases names its file after a space.
  const parts = plain.split(/^\.[a-z]+\s/.test(plain) ? /[=,:;@\s]+/ : /[=,:;@]+/);
  const glued = /^-[A-Za-z]/.test(plain) ? [plain.slice(2).replace(/^=/, "")] : [];
  const whole = plain.startsWith("-") ? [] : [plain];
  const found = [...whole, ...glued, ...parts.filter((part) => part !== plain && !part.startsWith("-"))];
  return [...new Set(found)].filter((path) => path !== "");
}

const notable = new WeakMap<readonly string[], { readonly policy: object; readonly isNotable: boolean }>();

/** Whether a rule restricts the file, read or written, or a guard protects it. */
function isNotable(fact: PathFact, environment: PathEnvironment): boolean {
  const known = notable.get(fact.forms);
  if (known?.policy === environment.policy) return known.isNotable;
  const { policy } = environment;
  const uses = [fact, { ...fact, use: "write" as const }];
  const isNotable =
    [...policy.deny, ...policy.ask].some((rule) =>
      uses.some((use) => matchesPath(rule, use, { use: "restrict", policy })),
    ) || fact.forms.some((form) => protectsName(form, policy) !== undefined);
  notable.set(fact.forms, { policy: environment.policy, isNotable });
  return isNotable;
}

/** An absolute path counts where its folder is there: others are texts, such as the routes of a server. */
function isOutside({ forms }: PathFact, path: string, { policy }: PathEnvironment): boolean {
  const outside = forms.find((form) => !isInside(form, policy.workingDirectories));
  if (outside === undefined || /^\/dev(?:\/|$)/.test(outside)) return false;
  const folder = posix.dirname(outside);
  return !path.startsWith("/") || exists(outside) || (folder !== "/" && exists(folder));
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
