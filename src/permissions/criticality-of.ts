import { type CallFacts, factsOf, type PathFact, type PermissionRequest } from "./call-facts.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import { protectionOf } from "./protection-of.ts";
import type { ShellUnit } from "./shell/shell-analysis.ts";

/** Why a call is asked about in every mode, also where permissions are bypassed. */
export function alwaysAsks(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const facts = factsOf(request);
  return criticalRemoval(facts, policy) ?? hiddenFromRules(facts, policy);
}

/** Why a call is asked about whatever allow rules say. */
export function asksDespiteRules(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const facts = factsOf(request);
  if (facts.web?.type === "web" && facts.web.isOdd !== undefined) return facts.web.isOdd;
  if (facts.shell?.analysis.opaque !== undefined)
    return `the command is not fully understood: ${facts.shell.analysis.opaque}`;
  for (const path of touchedPaths(facts)) {
    if (path.use === "read" || isDevice(path)) continue;
    for (const form of path.forms) {
      const why = protectionOf(form, policy);
      if (why !== undefined) return `${form} is protected: ${why}`;
    }
    if (path.isRepositoryPart === true)
      return `${path.forms[0]} is protected: git takes its folder for a repository and obeys it`;
    if (path.hasOtherNames === true)
      return `${path.forms[0]} has other names, and writing to it changes those too`;
  }
  return trackedRead(facts) ?? linkedRead(facts, policy);
}

/** What version control holds may be a file that rules forbid, and here it cannot be left out. */
function trackedRead({ shell }: CallFacts): string | undefined {
  if (shell?.rulesOnTracked !== true) return undefined;
  const unit = shell.analysis.units.find(({ showsTracked }) => showsTracked === true);
  return unit === undefined
    ? undefined
    : `${unit.written} may show files that rules forbid; name the files after --, or use git diff, log -p or show with a commit`;
}

/** Every path of a call, those of its commands and redirections too. */
export function touchedPaths({ paths, shell }: CallFacts): readonly PathFact[] {
  return shell === undefined
    ? paths
    : [...paths, ...shell.units.flatMap((unit) => unit.paths), ...shell.redirects];
}

/** Writing there reaches no file. */
export function isDevice({ forms: [lexical] }: PathFact): boolean {
  return lexical !== undefined && /^\/dev\/(?:null|stdout|stderr|stdin|fd\/[012])$/.test(lexical);
}

function criticalRemoval(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  const places = {
    workingDirectories: policy.workingDirectories,
    homes: [policy.home, ...(facts.otherHomes ?? [])],
  };
  for (const { use, forms } of touchedPaths(facts)) {
    if (use !== "remove") continue;
    const found = forms.map((form) => criticalityOf(form, places)).find((why) => why !== undefined);
    if (found !== undefined) return `it would remove ${found}`;
  }
  return undefined;
}

/** What rules forbid could hide in a command that is not understood, or in a path that is not known. */
function hiddenFromRules(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  if (facts.shell === undefined) return undefined;
  const { analysis } = facts.shell;
  const rules = [...policy.deny, ...policy.ask];
  const unclear = analysis.units.find((unit) => unit.grantText === undefined || readsItsProgram(unit));
  const hidesCommand = analysis.opaque !== undefined || unclear !== undefined;
  const why = analysis.opaque ?? unclear?.reason ?? "a shell runs what it is sent";
  if (hidesCommand && rules.some(isScoped))
    return `the command is not fully understood (${why}), and rules forbid some`;
  const guessedWords = analysis.units.find((unit, at) =>
    hidesWords(unit, facts.shell?.units[at]?.programUnknown === true, rules),
  );
  if (guessedWords !== undefined)
    return `what ${guessedWords.written} does is only known when it runs, and rules forbid some commands`;
  const guessed = touchedPaths(facts).find(({ unknown }) => unknown !== undefined);
  if (guessed !== undefined && rules.some(isAboutPaths))
    return `it is not known which file the command uses (${guessed.unknown}), and rules forbid some`;
  return undefined;
}

/** Whether a command that a rule speaks of could be another one than its words show. */
function hidesWords(
  { words, written }: ShellUnit,
  programUnknown: boolean,
  rules: readonly PolicyRule[],
): boolean {
  const commands = rules.flatMap(({ rule: { specifier } }) =>
    specifier.type === "command" ? [specifier.text] : [],
  );
  if (commands.length === 0) return false;
  if (programUnknown) return true;
  const name = baseName(words[0]?.text ?? "");
  const isRestricted = commands.some((text) => text === name || text.startsWith(`${name} `));
  const isAlias = name === "git" && words.some(({ text }) => /^(?:--config-env=)?alias\./i.test(text));
  return (
    isRestricted && (isAlias || written.endsWith("…") || words.some(({ literal }, at) => !literal && at < 3))
  );
}

function baseName(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}

/** A shell without a script or text of its own takes its commands from what is sent to it. */
function readsItsProgram({ words: [program, ...rest] }: ShellUnit): boolean {
  const name = program?.text.slice(program.text.lastIndexOf("/") + 1) ?? "";
  if (!/^(?:ba|da|z|k|mk|a|fi|c|tc)?sh$/.test(name)) return false;
  return (
    rest.every(({ text }) => /^[-+]/.test(text)) && !rest.some(({ text }) => /^-\w*c|^--version$/.test(text))
  );
}

function isScoped({ rule }: PolicyRule): boolean {
  return rule.specifier.type === "command" || isAboutPaths({ rule });
}

function isAboutPaths({ rule }: Pick<PolicyRule, "rule">): boolean {
  return rule.specifier.type === "path";
}

/** A file with several names may be one that a rule forbids under another. */
function linkedRead(facts: CallFacts, policy: PermissionPolicy): string | undefined {
  const hasPatterns = policy.deny.some(
    ({ rule: { specifier } }) => specifier.type === "path" && /[*?[]/.test(specifier.pattern),
  );
  const linked = hasPatterns
    ? touchedPaths(facts).find(({ hasOtherNames }) => hasOtherNames === true)
    : undefined;
  return linked === undefined ? undefined : `${linked.forms[0]} has other names, and rules forbid some files`;
}

/** Why no one removes a path without being asked, in any mode; undefined for ordinary paths. */
export function criticalityOf(
  path: string,
  {
    workingDirectories,
    homes,
  }: { readonly workingDirectories: readonly string[]; readonly homes: readonly string[] },
): string | undefined {
  const bare = withoutGlob(path);
  if (bare === "/" || /^\/?[A-Za-z]:\/?$/.test(bare)) return "the whole file system";
  if (systemFolders.has(bare.toLowerCase())) return "a folder of the system";
  if (/^\/(?:home|Users)\/[^/]+$/.test(bare)) return "a home directory";
  if (homes.some((home) => isSameOrAbove(bare, home))) return "the home directory";
  if (workingDirectories.some((directory) => isSameOrAbove(bare, directory))) return "the project itself";
  if (bare.endsWith("/.git")) return "the history of a repository";
  return undefined;
}

/** `/x/*` empties `/x`. */
function withoutGlob(path: string): string {
  const bare = path
    .replace(/\/(?:\.?\*+|\.\[[^\]]*\]\*|\{[^}]*\*[^}]*\}|\.\?\?\*)(?=\/?$)/, "")
    .replace(/\/+$/, "");
  return bare === "" ? "/" : bare;
}

function isSameOrAbove(path: string, other: string): boolean {
  return path === other || other.startsWith(path === "/" ? "/" : `${path}/`);
}

const systemFolders: ReadonlySet<string> = new Set(
  `/bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib
  /usr/local /usr/sbin /usr/share /var /var/lib /var/log /users /system /library /applications /volumes /private
  /private/etc /private/var /c /c/windows /c/users`.split(/\s+/),
);
