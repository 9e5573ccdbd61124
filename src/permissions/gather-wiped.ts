import { basename } from "node:path";
import type { PathFact } from "./call-facts.ts";
import { gatherPathFact, type PathEnvironment } from "./gather-path-facts.ts";
import { isInside } from "./permission-policy.ts";
import type { ShellUnit } from "./shell/shell-analysis.ts";

/** Programs that take away or overwrite what they are given, with the words that make them do so. */
const wiping: readonly {
  readonly name: RegExp;
  readonly when?: RegExp;
  /** Operands before the files: a mode, an owner, an archive. */
  readonly skip?: number;
  /** Only the last operand is changed. */
  readonly last?: true;
  /** What lies in the working directories is left to rules: `below` them, or `all` of it. */
  readonly spares?: "below" | "all";
}[] = [
  { name: /^rsync$/, when: /^--del/, last: true, spares: "below" },
  { name: /^rsync$/, when: /^--remove-(?:source|sent)/ },
  { name: /^tar$/, when: /^--remove-files$/ },
  { name: /^zip$/, when: /^(?:-[a-zA-Z]*m[a-zA-Z]*|--move)$/, skip: 1 },
  {
    name: /^(?:chmod|chown|chgrp|chattr|setfacl)$/,
    when: /^(?:-[a-zA-Z]*R[a-zA-Z]*|--recursive)$/,
    spares: "all",
  },
  { name: /^(?:shred|wipe|srm|wipefs|mkfs(?:\.\w+)?|mkswap|blkdiscard|trash|trash-put|rimraf|del)$/ },
];

const removing = /^(?:rm|shred|unlink|wipe|srm)$/;

/**
 * What a command takes away without naming it as `rm` does, so that a home, a project or a folder of the system is not
 * lost that way. Below the work it is a matter of rules.
 */
export async function gatherWiped(
  unit: ShellUnit,
  paths: readonly PathFact[],
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const [program, ...words] = unit.words.map(({ text }) => text);
  const name = basename(program ?? "");
  if (name === "find") return emptiedByFind(words, paths, environment);
  if (name === "git") return cleanedByGit(unit, environment);
  const found = wiping.find(
    (each) =>
      each.name.test(name) && (each.when === undefined || words.some((word) => each.when?.test(word))),
  );
  if (found === undefined) return [];
  const operands = words.filter((word) => !word.startsWith("-")).slice(found.skip ?? 0);
  const wiped = found.last === true ? operands.slice(-1) : operands;
  const start = directoryOf(unit);
  const facts = await Promise.all(
    wiped.map((path) => gatherPathFact({ path, use: "remove", ...start }, environment)),
  );
  return facts.filter(({ forms }) => !forms.some((form) => isSpared(form, found.spares, environment)));
}

function directoryOf({ directories: [directory = ""] }: ShellUnit): { readonly directory?: string } {
  return directory.startsWith("/") ? { directory } : {};
}

function isSpared(
  path: string,
  spares: "below" | "all" | undefined,
  { policy: { workingDirectories } }: PathEnvironment,
): boolean {
  if (spares === undefined || !isInside(path, workingDirectories)) return false;
  return spares === "all" || !workingDirectories.includes(path);
}

/** `find -delete` empties the folder it starts in, and so does `-exec rm`. */
function emptiedByFind(
  words: readonly string[],
  paths: readonly PathFact[],
  { directory }: PathEnvironment,
): readonly PathFact[] {
  const isRemoving = words.some(
    (word, at) => /^-(?:exec|execdir|ok)$/.test(word) && removing.test(basename(words[at + 1] ?? "")),
  );
  if (!isRemoving && !words.includes("-delete")) return [];
  const isWhole = words.every((text) => !text.startsWith("-") || unselecting.has(text));
  const outside = paths.filter(({ forms }) => isWhole || !forms.every((form) => isInside(form, [directory])));
  return outside.map((path) => ({ ...path, use: "remove" }));
}

/** Options of `find` that choose no files, so that all of them are deleted. */
const unselecting: ReadonlySet<string> = new Set(
  "-delete -depth -mindepth -xdev -mount -print -H -L -P".split(" "),
);

/** `git -C ~ clean -fdx`: the repository is no part of the work. */
async function cleanedByGit(
  { words, directories }: ShellUnit,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const isCleaning =
    words.some(({ text }) => text === "clean") && words.some(({ text }) => /^-\w*f/.test(text));
  if (!isCleaning) return [];
  const moved = directories.filter((directory) => directory !== "" && directory !== "unknown");
  const facts = await Promise.all(moved.map((path) => gatherPathFact({ path, use: "remove" }, environment)));
  return facts.filter(({ forms }) =>
    forms.some((form) => !isInside(form, environment.policy.workingDirectories)),
  );
}
