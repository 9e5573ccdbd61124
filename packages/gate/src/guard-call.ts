import { commandRights } from "@retinue/base/foundation/command-rights.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { canonicalToolName, type ToolFacts, toolTable } from "@retinue/base/foundation/tool-table.ts";
import {
  type CallFacts,
  isDevice,
  type KnownCall,
  onlyReads,
  type PathFact,
  touchedPaths,
} from "./call-facts.ts";
import {
  isInside,
  type PermissionPolicy,
  type PolicyRule,
  type ToolScope,
  type ToolScopes,
} from "./permission-policy.ts";
import {
  criticalityOf,
  exposureOf,
  isOtherDevice,
  protectionOf,
  protectsName,
  vitalityOf,
} from "./protection-of.ts";
import { grantsUnit } from "./rules/grants-unit.ts";
import { matchesCall, matchesPath, type RuleUse } from "./rules/matches-call.ts";
import { formatRule, parseRule } from "./rules/parse-rule.ts";
import type { ShellUnit } from "./shell/model.ts";

/** What holds for a call whatever rules and modes say. */
export interface CallGuards {
  /** Why it is outside what the agent's definition grants. */
  readonly outOfScope: string | undefined;
  /** Why it would answer questions in the place of a person. */
  readonly answersApprovals: string | undefined;
  /** Why settings that confine calls to the working directories refuse it. */
  readonly outside: string | undefined;
  /** Why it is asked about in every mode. */
  readonly alwaysAsks: string | undefined;
  /** Why it is asked about even where an allow rule matches. */
  readonly asksDespiteRules: string | undefined;
  /** It stays in the agent's own memory directory, where it needs no rule. */
  readonly isInMemory: boolean;
}

/** Everything about one call that no rule and no mode lifts. */
export function guardCall(call: KnownCall, policy: PermissionPolicy): CallGuards {
  const inMemory = isInMemory(call, policy);
  const touched: TouchedFacts = { ...call.facts, touched: touchedPaths(call.facts) };
  return {
    outOfScope: refuseByScopes(call, policy),
    answersApprovals: answersApprovals(touched),
    outside: inMemory ? undefined : refuseOutside(touched, policy),
    alwaysAsks:
      criticalRemoval(touched, policy) ??
      hiddenFromRules(touched, policy) ??
      trackedRead(touched) ??
      namedDenied(touched, policy) ??
      changeableDenied(touched, policy),
    asksDespiteRules: asksDespiteRules(touched, policy),
    isInMemory: inMemory,
  };
}

/** The facts of a call, with every path it touches, those of its commands too. */
interface TouchedFacts extends CallFacts {
  readonly touched: readonly PathFact[];
}

/** Whether a call stays in the agent's own memory directory, where it needs no rule. */
function isInMemory(request: KnownCall, policy: PermissionPolicy): boolean {
  const directory = policy.toolScopes?.at(-1)?.memoryDirectory;
  if (directory === undefined || !staysIn(request, directory)) return false;
  // Notes are no `.envrc` and no `.git`: what other programs obey is asked for here as elsewhere.
  return (
    request.effect === "read" ||
    request.facts.paths.every(({ forms }) =>
      forms.every((form) => !isSteering(form.slice(directory.length), policy)),
    )
  );
}

function isSteering(path: string, { platform }: PermissionPolicy): boolean {
  const places = { workingDirectories: [], platform };
  return protectionOf(path, places) !== undefined;
}

/** Why a call would answer questions in the place of a person, or undefined. No mode and no rule allows that. */
function answersApprovals(facts: TouchedFacts): string | undefined {
  if (
    facts.touched.some(({ forms, use }: PathFact) => use !== "read" && forms.some((form) => inbox.test(form)))
  )
    return "only users answer approvals, so agents cannot write to them";
  const analysis = facts.shell?.analysis;
  const texts = [
    ...(analysis?.units.flatMap(({ restrictTexts }) => restrictTexts) ?? []),
    // What is not understood is looked at as a whole.
    ...(analysis?.opaque === undefined ? [] : [analysis.exactText]),
  ];
  if (texts.some(isAnswering)) return "only a user can decide that, not a command of an agent";
  const whole = analysis?.exactText ?? "";
  if (hidesMark(whole)) return "it would hide that it is a command of an agent (`CLAUDECODE`)";
  return linking.test(whole) && inbox.test(whole)
    ? "only users answer approvals, so agents cannot create links to them"
    : undefined;
}

/** Commands of agents carry this variable, by which `retinue approve` knows them: it is neither set nor taken away. */
function hidesMark(text: string): boolean {
  if (!text.includes("CLAUDECODE")) return false;
  if (/\bCLAUDECODE\+?=/.test(text)) return true;
  const taking = text.search(/\bunset\b/);
  if (taking !== -1 && /[\s"'=]CLAUDECODE\b/.test(text.slice(taking))) return true;
  return /\benv\b[^;&|\n]{0,100}?(?:-\w{0,20}u|--unset)[\s=]{0,20}["']?CLAUDECODE\b/.test(text);
}

const linking = /(?:^|[\s;&|(/])(?:ln|link|mount)\s/;

/** The folder of a session, by its id, and the one for its approvals in it. */
const inbox = /\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/approvals(?![\w-])/i;

const personCommands = Object.keys(commandRights).filter((path) => commandRights[path] === "person");

/** Where the command is named, it is followed as far as options are ever written. */
function isAnswering(text: string): boolean {
  for (let at = text.indexOf("retinue"); at !== -1; at = text.indexOf("retinue", at + 1))
    if (/^$|[\s/]/.test(text.charAt(at - 1)) && answering.test(text.slice(at, at + 400))) return true;
  return false;
}

/** The command by any path, with options before the words that decide. */
const answering = new RegExp(
  `^retinue(?:\\.js)?\\s+(?:-\\S+\\s+(?:[^-\\s]\\S*\\s+)?)*(?:${personCommands
    .map((path) => path.replaceAll(" ", "\\s+"))
    .join("|")})(?![\\w-])|^retinue(?:\\.js)?\\s(?:[^\\n;&|]*\\s)?--(?:bg|background)(?![\\w-])`,
);

/**
 * Why settings that confine calls to the working directories refuse this one; no rule, mode or answer lifts that. What
 * cannot be known counts as outside.
 */
function refuseOutside(facts: TouchedFacts, policy: PermissionPolicy): string | undefined {
  const { confinement } = policy;
  if (confinement === undefined) return undefined;
  const opaque = facts.shell?.analysis.opaque;
  if (opaque !== undefined)
    return `settings confine calls to the working directories, and the command is not fully understood: ${opaque}`;
  const { readsExcept, writes } = confinement;
  const { workingDirectories } = policy;
  const listed = facts.shell?.listed ?? [];
  for (const path of [...facts.touched, ...listed].filter((candidate) => !isDevice(candidate))) {
    const isRead = path.use === "read";
    if (isRead ? readsExcept === undefined : writes !== true) continue;
    const open = isRead ? [...workingDirectories, ...(readsExcept ?? [])] : workingDirectories;
    if (!(path.unknown === undefined && path.forms.every((form) => isInside(form, open))))
      return refusal(path, isRead);
  }
  return undefined;
}

function refusal({ forms: [path] }: PathFact, isRead: boolean): string {
  const [verb, key] = isRead
    ? ["read", "blockReadsOutsideWorkingDirectories"]
    : ["written", "blockWritesOutsideWorkingDirectories"];
  return `${path} is not known to be inside the working directories, and nothing outside may be ${verb} (\`${key}\`)`;
}

/** Why a call is asked about even where an allow rule matches. */
function asksDespiteRules(facts: TouchedFacts, policy: PermissionPolicy): string | undefined {
  if (facts.web?.type === "web" && facts.web.isOdd !== undefined) return facts.web.isOdd;
  if (facts.shell?.analysis.opaque !== undefined)
    return `the command is not fully understood: ${facts.shell.analysis.opaque}`;
  for (const path of facts.touched) {
    if (isDevice(path)) continue;
    const exposed = exposureOf(path);
    if (exposed !== undefined) return exposed;
    if (path.use === "read") continue;
    for (const form of path.forms) {
      const why = protectionOf(form, policy);
      if (why !== undefined) return `${form} is protected: ${why}`;
    }
    if (path.isBehindLink === true) return `${path.forms[0]} is not known: ${path.unknown}`;
    if (path.isRepositoryPart === true)
      return `${path.forms[0]} is protected: git takes its folder for a repository and obeys it`;
    if (path.isHook === true) return `${path.forms[0]} is protected: git runs it as a hook (core.hooksPath)`;
    if (path.hasOtherNames === true)
      return `${path.forms[0]} has other names, and writing to it changes those too`;
  }
  return reachedRepository(facts, policy) ?? linkedRead(facts, policy) ?? namedProtected(facts, policy);
}

/** A repository on this machine may have been laid out so that git runs what is in it; only a rule that names it says yes. */
function reachedRepository({ shell }: CallFacts, policy: PermissionPolicy): string | undefined {
  for (const [at, unit] of (shell?.analysis.units ?? []).entries()) {
    const reason = shell?.units[at]?.transport;
    if (reason !== undefined && !isNamedExactly(unit, shell, policy)) return reason;
  }
  return undefined;
}

/** Whether a rule without a star says this command, or the whole call. */
function isNamedExactly(unit: ShellUnit, shell: CallFacts["shell"], { allow }: PermissionPolicy): boolean {
  return allow.some(
    ({ rule: { specifier } }) =>
      specifier.type === "command" &&
      specifier.match === "exact" &&
      (grantsUnit(specifier, unit) || specifier.text === shell?.analysis.exactText),
  );
}

/** A program whose use of files is not known may write one that is protected. */
function namedProtected({ shell }: CallFacts, policy: PermissionPolicy): string | undefined {
  return findGuess(shell, policy, ({ forms }, program) => {
    const why = forms.map((form) => protectsName(form, policy)).find((found) => found !== undefined);
    return why === undefined ? undefined : `${program} may write ${forms[0]}, which is protected: ${why}`;
  });
}

/**
 * A command may change what a rule keeps from being edited, for all that is known of its program, unless a rule names that
 * program: then somebody has decided about it.
 */
function changeableDenied({ shell }: CallFacts, policy: PermissionPolicy): string | undefined {
  for (const [at, unit] of (shell?.analysis.units ?? []).entries()) {
    const [path] = shell?.units[at]?.mayChange ?? [];
    if (path === undefined || isNamed(unit, shell, policy)) continue;
    const program = unit.words[0]?.text ?? "";
    const advice = `an allow rule that names it, such as Bash(${program} *), says that it may`;
    return path.unknown === undefined
      ? `it is not known whether ${program} changes ${path.forms[0]}, which rules keep from being edited; ${advice}`
      : `it is not known which files ${program} changes (${path.unknown}), and rules keep some from being edited; ${advice}`;
  }
  return undefined;
}

/** Whether a rule for commands covers this one; it then names its program. */
function isNamed(unit: ShellUnit, shell: CallFacts["shell"], { allow }: PermissionPolicy): boolean {
  return allow.some(
    ({ rule: { specifier } }) =>
      specifier.type === "command" &&
      (grantsUnit(specifier, unit) || specifier.text === shell?.analysis.exactText),
  );
}

/** Such a program may write what a rule keeps from being edited, where an option of it names the file. */
function namedDenied({ shell }: CallFacts, policy: PermissionPolicy): string | undefined {
  return findGuess(shell, policy, ({ forms, isGuess }, program) => {
    if (isGuess !== "option") return undefined;
    const denied = policy.deny.find((rule) =>
      matchesPath(rule, { forms, use: "write" }, { use: "restrict", policy }),
    );
    return denied && `${program} may write ${forms[0]}, which the rule ${formatRule(denied.rule)} denies`;
  });
}

/** The first answer about a file that may be used, in commands that no rule names as a whole. */
function findGuess(
  shell: CallFacts["shell"],
  policy: PermissionPolicy,
  judge: (path: PathFact, program: string) => string | undefined,
): string | undefined {
  for (const [at, unit] of (shell?.analysis.units ?? []).entries()) {
    const guesses = (shell?.units[at]?.paths ?? []).filter(({ isGuess }) => isGuess !== undefined);
    if (guesses.length > 0 && isNamedExactly(unit, shell, policy)) continue;
    const program = unit.words[0]?.text ?? "";
    for (const guess of guesses) {
      const found = judge(guess, program);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** What version control holds may be a file that rules forbid, and here it cannot be left out. */
function trackedRead({ shell }: CallFacts): string | undefined {
  if (shell?.rulesOnTracked !== true) return undefined;
  const unit = shell.analysis.units.find(({ showsTracked }) => showsTracked === true);
  return unit === undefined
    ? undefined
    : `${unit.written} may show files that rules deny; list the files after --, or use git diff, log -p or show with a commit`;
}

function criticalRemoval(facts: TouchedFacts, policy: PermissionPolicy): string | undefined {
  const places = {
    workingDirectories: policy.workingDirectories,
    homes: [policy.home, ...(facts.otherHomes ?? [])],
  };
  for (const { use, forms, isSelection } of facts.touched) {
    if (use !== "remove") continue;
    // Some files of the work are a matter of rules.
    if (isSelection === true && forms.every((form) => isInside(form, policy.workingDirectories))) continue;
    const found = forms.map((form) => criticalityOf(form, places)).find((why) => why !== undefined);
    if (found !== undefined) return `it would remove ${found}`;
  }
  return (
    unknownRemoval(facts) ??
    writtenDevice(facts) ??
    vitalChange(facts, (path) => vitalityOf(path, places.homes))
  );
}

/** What is only known when it runs may be a home or a project. */
function unknownRemoval({ shell }: CallFacts): string | undefined {
  const unit = shell?.analysis.units.find(({ removesUnknown }) => removesUnknown === true);
  return unit === undefined ? undefined : `what ${unit.written} removes is only known when it runs`;
}

/** Programs that take a disk, or all of its files, away. */
const diskPrograms =
  /^(?:mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|badblocks|[cs]?fdisk|s?gdisk|parted|hdparm|cryptsetup|diskutil|zpool|zfs|(?:lv|vg|pv)remove)$/;
/** Of them, those that name disks in other ways than by a path. */
const byName = /^(?:diskutil|zpool|zfs|(?:lv|vg|pv)remove)$/;

function writtenDevice({ shell, touched }: TouchedFacts): string | undefined {
  const device = touched
    .filter(({ use }) => use !== "read")
    .flatMap(({ forms }) => forms.slice(0, 1))
    .find(isOtherDevice);
  if (device !== undefined) return `it would write to the device ${device}`;
  const unit = shell?.analysis.units.find(({ words: [program, ...rest] }) => {
    const name = baseName(program?.text ?? "");
    return (
      diskPrograms.test(name) &&
      rest.length > 0 &&
      (byName.test(name) || rest.some(({ text, literal }) => !literal || text.startsWith("/dev/")))
    );
  });
  return unit === undefined ? undefined : `${unit.written} may overwrite a disk`;
}

/** Everything below a home or a folder of the system, under other rights or without what git does not track. */
function vitalChange(
  { shell }: CallFacts,
  whyVital: (path: string) => string | undefined,
): string | undefined {
  for (const [at, { words, written, operands }] of (shell?.analysis.units ?? []).entries()) {
    const name = baseName(words[0]?.text ?? "");
    const { paths = [], movedTo } = shell?.units[at] ?? {};
    const cleans = name === "git" && words.some(({ text }) => text === "clean") && movedTo !== undefined;
    const isWhole =
      /^ch(?:mod|own|grp)$/.test(name) &&
      operands.some(({ below, use }) => below !== undefined && use !== "read");
    const changed = isWhole ? paths.filter(({ use }) => use !== "read") : [];
    if (isWhole && changed.some(({ unknown }) => unknown !== undefined))
      return `what ${written} changes is only known when it runs`;
    const places = [...changed.flatMap(({ forms }) => forms), ...(cleans ? [movedTo] : [])];
    const found = places.map(whyVital).find((why) => why !== undefined);
    if (found !== undefined) return `it would change ${found}`;
    if (cleans && !movedTo.startsWith("/")) return `what ${written} removes is only known when it runs`;
  }
  return undefined;
}

/** What rules forbid could hide in a command that is not understood, or in a path that is not known. */
function hiddenFromRules(facts: TouchedFacts, policy: PermissionPolicy): string | undefined {
  if (facts.shell === undefined) return undefined;
  const { analysis } = facts.shell;
  const rules = [...policy.deny, ...policy.ask];
  const unclear = analysis.units.find((unit) => unit.grantText === undefined || readsItsProgram(unit));
  const hidesCommand = analysis.opaque !== undefined || unclear !== undefined;
  const why = analysis.opaque ?? unclear?.reason ?? "a shell runs what it is sent";
  if (
    hidesCommand &&
    rules.some(({ rule }: PolicyRule) => rule.specifier.type === "command" || isAboutPaths({ rule }))
  )
    return `the command is not fully understood (${why}), and rules deny some`;
  const guessedWords = analysis.units.find((unit, at) =>
    hidesWords(unit, facts.shell?.units[at]?.programUnknown === true, rules),
  );
  if (guessedWords !== undefined)
    return `what ${guessedWords.written} does is only known when it runs, and rules deny some commands`;
  const guessed = facts.touched.find(({ unknown }) => unknown !== undefined);
  if (guessed !== undefined && rules.some(isAboutPaths))
    return `it is not known which file the command uses (${guessed.unknown}), and rules deny some`;
  return undefined;
}

/** Whether a command that a rule matches could be another one than its words show. */
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

function isAboutPaths({ rule }: Pick<PolicyRule, "rule">): boolean {
  return rule.specifier.type === "path";
}

/** A file with several names may be one that a rule forbids under another. */
function linkedRead(facts: TouchedFacts, policy: PermissionPolicy): string | undefined {
  const hasPatterns = policy.deny.some(
    ({ rule: { specifier } }) => specifier.type === "path" && /[*?[]/.test(specifier.pattern),
  );
  const linked = hasPatterns ? facts.touched.find(({ hasOtherNames }) => hasOtherNames === true) : undefined;
  return linked === undefined ? undefined : `${linked.forms[0]} has other names, and rules deny some files`;
}

/**
 * Why a call is outside what the agent's definition grants, or excluded by it or by one above, or undefined. The tools of
 * a main agent say what that agent uses; they do not limit the agents it starts. Those of a subagent do.
 */
function refuseByScopes(request: KnownCall, policy: PermissionPolicy): string | undefined {
  const { toolScopes = [] } = policy;
  const own = toolScopes.at(-1);
  for (const above of toolScopes.slice(0, -1)) {
    const refusal =
      above.limitsBelow === true
        ? refuseByScope(request, above, policy)
        : refuseExcluded(request, above, policy);
    if (refusal !== undefined) return refusal;
  }
  return own === undefined ? undefined : refuseByScope(request, own, policy);
}

/** Whether a call reads or edits nothing outside a directory. */
function staysIn(request: KnownCall, directory: string): boolean {
  const { paths } = request.facts;
  if (paths.length === 0 || (request.effect !== "read" && request.effect !== "edit")) return false;
  return paths.every(
    ({ forms, unknown, hasOtherNames }) =>
      unknown === undefined && hasOtherNames !== true && forms.every((form) => isInside(form, [directory])),
  );
}

function refuseByScope(request: KnownCall, scopes: ToolScopes, policy: PermissionPolicy): string | undefined {
  const scope = scopes.tools.find(({ name }) => name === request.tool);
  if (scope === undefined) return "it is not among the tools of this agent";
  const isMemory = scopes.memoryDirectory !== undefined && staysIn(request, scopes.memoryDirectory);
  if (scope.confinedTo === "memory" && !isMemory) {
    return scopes.memoryDirectory === undefined
      ? "it works only inside the agent's memory directory, and there is none"
      : `it works only inside the agent's memory directory ${scopes.memoryDirectory}`;
  }
  const excluded = refuseExcluded(request, scopes, policy) ?? refuseChange(request, scopes);
  if (excluded !== undefined) return excluded;
  if (scope.allowOnly === undefined || (scope.alsoIn === "memory" && isMemory)) return undefined;
  const isCovered = coversAll(scope, request, { anchor: scopes.anchor, policy });
  return isCovered ? undefined : `the agent may only make calls that match ${scope.allowOnly.join(", ")}`;
}

/** Why an agent that promises to change nothing may not make a call. */
function refuseChange({ effect, facts: { shell } }: KnownCall, { onlyReads: isReader }: ToolScopes) {
  if (isReader !== true) return undefined;
  if (effect === "edit") return "this agent only reads";
  return shell === undefined || onlyReads(shell)
    ? undefined
    : "this agent only reads, and that is not known of the command";
}

/** What a definition excludes of one reading or editing tool, it excludes of all of them, and of commands. */
function refuseExcluded(
  request: KnownCall,
  { anchor, tools, deny: rules = [], removes = [] }: ToolScopes,
  policy: PermissionPolicy,
): string | undefined {
  const excluding = [
    ...rules,
    // The tools for files that entries of `disallowedTools` take away whole: commands do not do their work either.
    ...(request.facts.shell === undefined
      ? []
      : fileTools.filter((name) =>
          removes.some(
            (entry) => canonicalToolName(entry.trim()) === name || matchesPattern(entry.trim(), name),
          ),
        )),
    ...tools.flatMap(({ name, deny = [] }) => deny.map((text) => `${name}(${text})`)),
  ];
  return excluding.some((text) => excludes(text, request, { anchor, policy }))
    ? "the agent's definition excludes such calls"
    : undefined;
}

const fileTools = toolTable.flatMap(({ name, grantsUse }: ToolFacts) =>
  grantsUse === undefined ? [] : [name],
);

interface ScopeContext {
  readonly anchor: string;
  readonly policy: PermissionPolicy;
}

function excludes(text: string, request: KnownCall, context: ScopeContext): boolean {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") return text.startsWith(`${request.tool}(`);
  return matches({ rule: reading.rule, anchor: context.anchor }, request, "restrict", context);
}

/** One specifier must cover the call; for a shell call, each of its commands may have another. */
function coversAll({ name, allowOnly = [] }: ToolScope, request: KnownCall, context: ScopeContext): boolean {
  const rules = allowOnly.flatMap((text): PolicyRule[] => {
    const reading = parseRule(`${name}(${text})`, { list: "allow" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor: context.anchor }] : [];
  });
  if (rules.some((rule) => matches(rule, request, "grant", context))) return true;
  const analysis = request.facts.shell?.analysis;
  if (analysis === undefined || analysis.opaque !== undefined || analysis.units.length === 0) return false;
  return analysis.units.every((unit) =>
    rules.some(({ rule }) => rule.specifier.type === "command" && grantsUnit(rule.specifier, unit)),
  );
}

function matches(rule: PolicyRule, request: KnownCall, use: RuleUse, { policy }: ScopeContext): boolean {
  return matchesCall(rule, request, { use, policy });
}
