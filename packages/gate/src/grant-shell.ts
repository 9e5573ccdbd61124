import { basename, posix } from "node:path";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import {
  factsOf,
  isDevice,
  type PathFact,
  type PermissionRequest,
  type ShellFacts,
  type UnitFacts,
} from "./call-facts.ts";
import { isInside, type PermissionPolicy, type PolicyRule, type ToolScopes } from "./permission-policy.ts";
import { grantsUnit, matchesText, matchesWholeCall } from "./rules/grants-unit.ts";
import { matchesPath } from "./rules/matches-call.ts";
import { parseRule } from "./rules/parse-rule.ts";
import type { ShellUnit } from "./shell/model.ts";
import { whyNotAccepted } from "./why-not-accepted.ts";

type ShellGrant =
  | {
      readonly type: "granted";
      readonly by: "rule" | "read-only" | "mode";
      readonly reason: string;
      readonly rule?: PolicyRule;
    }
  | { readonly type: "open"; readonly reason: string };

/** Whether every command of a shell call is allowed on its own, and every file it writes. */
export function grantShell(
  request: PermissionRequest,
  shell: ShellFacts,
  policy: PermissionPolicy,
): ShellGrant {
  const commands = policy.allow.filter(({ rule }) => rule.canonicalTool === request.tool);
  const whole = commands.find(({ rule }) => rule.specifier.type === "whole");
  if (whole !== undefined) return { type: "granted", by: "rule", reason: "", rule: whole };
  const exact = commands.find(
    ({ rule }) => rule.specifier.type === "command" && matchesWholeCall(rule.specifier, shell.analysis),
  );
  const context: Context = { policy, homes: factsOf(request).otherHomes, commands, exact };
  const { units } = shell.analysis;
  const rules = units.map((unit) =>
    commands.find(({ rule: { specifier } }) => specifier.type === "command" && grantsUnit(specifier, unit)),
  );
  // A file pattern shows names, whatever command it is in; what it matched is not reported.
  const isListingAllowed = exact !== undefined || rules.every((rule) => rule !== undefined);
  const shown = isListingAllowed
    ? undefined
    : shell.listed?.find((path) => !mayTouch(path, context, "reading"));
  if (shown !== undefined)
    return { type: "open", reason: `a file pattern would list ${shown.forms[0]}, which no rule allows` };
  const grants = units.map((unit, at) =>
    grantUnit(unit, shell.units[at] ?? nowhere, exact ?? rules[at], context),
  );
  const open =
    grants.find((grant) => grant.type === "open") ?? openRedirect(shell.redirects, grants, context);
  if (open !== undefined) return open;
  const granted = grants.filter((grant) => grant.type === "granted");
  return (
    granted.find(({ by }) => by === "rule") ??
    granted.find(({ by }) => by === "mode") ??
    granted[0] ??
    onlyRedirects
  );
}

const onlyRedirects: ShellGrant = {
  type: "granted",
  by: "mode",
  reason: "everything it writes may be written",
};
const nowhere: UnitFacts = { paths: [], otherTexts: [] };

interface Context {
  readonly policy: PermissionPolicy;
  readonly homes: readonly string[] | undefined;
  readonly commands: readonly PolicyRule[];
  readonly exact?: PolicyRule | undefined;
}

function grantUnit(
  unit: ShellUnit,
  facts: UnitFacts,
  rule: PolicyRule | undefined,
  context: Context,
): ShellGrant {
  const shown = unit.grantText ?? unit.written;
  const open = (reason: string): ShellGrant => ({ type: "open", reason });
  const touches = (by: Occasion): ShellGrant | undefined => {
    const isExact = context.exact !== undefined || (rule !== undefined && isExactRule(rule));
    const refused = facts.paths.find(
      (path) =>
        !(isExact && (path.isUnlisted === true || path.isGuess !== undefined)) &&
        !mayTouch(path, context, by),
    );
    if (refused?.isUnlisted === true)
      return open(`it is not known which files ${shown} would ${verbs[refused.use]}: ${refused.unknown}`);
    if (refused?.isGuess !== undefined)
      return open(`${shown} may use ${refused.forms[0]}, which is outside the working directories`);
    return refused === undefined
      ? undefined
      : open(`${shown} would ${verbs[refused.use]} ${refused.forms[0]}, which no rule allows`);
  };
  const misplaced = misplacedReason(unit, facts, context, rule);
  if (misplaced !== undefined) return open(misplaced);
  if (rule !== undefined) {
    // A link to somewhere else would lead what comes after it out of the working directories.
    const by = basename(unit.words[0]?.text ?? "") === "ln" ? "linking" : "granted";
    return touches(by) ?? { type: "granted", by: "rule", reason: "", rule };
  }
  if (unit.readOnly && facts.program !== undefined) return open(facts.program);
  if (unit.readOnly)
    return (
      touches("reading") ?? {
        type: "granted",
        by: "read-only",
        reason: "it only reads inside the working directories",
      }
    );
  const { paths } = facts;
  if (isFileCommand(unit) && context.policy.mode === "acceptEdits" && paths.length > 0) {
    const isOpen = (path: PathFact): boolean =>
      path.use === "read" ||
      whyNotAccepted(path, context.policy) === undefined ||
      context.policy.allow.some((candidate) =>
        matchesPath(candidate, path, { use: "grant", policy: context.policy, homes: context.homes }),
      );
    if (
      paths.every(
        (path) =>
          path.unknown === undefined &&
          isWithin(path, context.policy) &&
          mayEdit(path, context) &&
          isOpen(path),
      )
    )
      return {
        type: "granted",
        by: "mode",
        reason: "changes to files inside the working directories are accepted",
      };
  }
  return open(unit.reason ?? unit.exactOnly ?? `no allow rule matches ${shown}`);
}

function isExactRule({ rule: { specifier } }: PolicyRule): boolean {
  return specifier.type === "command" && specifier.match === "exact";
}

/** Why a command is asked about because of where it would run. */
function misplacedReason(
  unit: ShellUnit,
  { elsewhere, movedTo, isPartOfProject, repository, configuration }: UnitFacts,
  { policy, commands, exact }: Context,
  rule: PolicyRule | undefined,
): string | undefined {
  // A rule for the whole call names the folders it goes to; only where it starts is not in its text.
  const startsHere = unit.directories.every((directory) => directory === "");
  if (exact !== undefined && !startsHere) return undefined;
  if (elsewhere !== undefined) return elsewhere;
  if (repository !== undefined) return repository;
  if (configuration !== undefined && rule === undefined && unit.readOnly) return configuration;
  const isGit = basename(unit.words[0]?.text ?? "") === "git";
  if (isGit && rule === undefined && unit.readOnly && policy.trusted !== true)
    return "git obeys the configuration of this folder, and the folder is not trusted";
  const isSteerable = rule === undefined && unit.readOnly && !isUnsteerable(unit);
  if (isSteerable && policy.trusted !== true && policy.walled !== true)
    return `${unit.words[0]?.text} may obey files of this folder, the folder is not trusted, and nothing here isolates the command`;
  if (rule === undefined || movedTo === undefined || isGit || !unit.obeysDirectory) return undefined;
  if (isPartOfProject === true) return undefined;
  const [root = ""] = policy.workingDirectories;
  const targets = [posix.relative(root, movedTo), movedTo].map((path) => `cd ${path}`);
  const isFollowed = commands.some(
    ({ rule: { specifier } }) =>
      specifier.type === "command" && targets.some((text) => matchesText(specifier, text)),
  );
  return isFollowed
    ? undefined
    : `${unit.words[0]?.text} obeys the files of ${movedTo}, and its rule applies to ${root}`;
}

/** Whether a command does the same whatever files are around it: no settings, ignore lists or plug-ins of a folder. */
function isUnsteerable({ words: [program] }: ShellUnit): boolean {
  const text = program?.text ?? "";
  return unsteerable.has(/^(?:\/usr)?\/bin\/[^/]+$/.test(text) ? basename(text) : text);
}

const unsteerable: ReadonlySet<string> = new Set(
  `: [ [[ (( true false test echo printf pwd cd exit return break continue shift let read local declare export unset type wait
  cat tac head tail nl wc sort uniq cut tr paste join comm fold fmt expand unexpand rev column cmp diff grep egrep fgrep sed awk
  ls find stat du df basename dirname realpath readlink cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum
  base64 base32 od xxd hexdump strings seq expr factor date cal whoami id groups uname hostname arch nproc uptime tty
  sleep yes env printenv`.split(/\s+/),
);

const verbs = { read: "read", write: "write", remove: "remove" } as const;

type Occasion = "granted" | "linking" | "reading" | "redirect";

/** How the command came to be allowed decides what it may touch without a rule of its own. */
function mayTouch(path: PathFact, context: Context, by: Occasion): boolean {
  if (isDevice(path)) return true;
  if (path.use === "read" && by === "granted" && path.isGuess === undefined) return true;
  if (path.unknown === undefined && isWithin(path, context.policy)) {
    if (path.use === "read" || by === "granted" || by === "linking") return true;
    const isAccepted =
      context.policy.mode === "acceptEdits" && whyNotAccepted(path, context.policy) === undefined;
    if (isAccepted && mayEdit(path, context)) return true;
  }
  if ((by === "redirect" || by === "reading") && !mayEdit(path, context)) return false;
  const uses = path.isGuess === undefined ? [path] : [path, { ...path, use: "write" as const }];
  return context.policy.allow.some((rule) =>
    uses.some((use) =>
      matchesPath(rule, use, { use: "grant", policy: context.policy, homes: context.homes }),
    ),
  );
}

/** Neither the mode nor a rule about edits lets commands change what the agent's own tools may not edit. */
function mayEdit(path: PathFact, { policy, homes }: Context): boolean {
  if (path.use === "read") return true;
  const scopes = policy.toolScopes ?? [];
  const limiting = scopes.filter((scope, index) => scope.limitsBelow === true || index === scopes.length - 1);
  return limiting.every((scope) => mayEditWithin(scope, path, { policy, homes }));
}

function mayEditWithin(
  own: ToolScopes,
  path: PathFact,
  { policy, homes }: Pick<Context, "policy" | "homes">,
) {
  return own.tools.some(({ name, allowOnly, confinedTo }) => {
    if (confinedTo !== undefined || toolFacts.get(name)?.grantsUse !== "write") return false;
    return (
      allowOnly === undefined ||
      allowOnly.some((text) => {
        const reading = parseRule(`${name}(${text})`, { list: "allow" });
        if (reading.type === "invalid") return false;
        return matchesPath({ rule: reading.rule, anchor: own.anchor }, path, { use: "grant", policy, homes });
      })
    );
  });
}

/** A redirection writes a file as an edit would, whatever command it is at. */
function openRedirect(
  redirects: readonly PathFact[],
  grants: readonly ShellGrant[],
  context: Context,
): ShellGrant | undefined {
  const byRules = grants.every((grant) => grant.type === "granted" && grant.rule !== undefined);
  const by = (path: PathFact): Occasion =>
    context.exact !== undefined || (path.use === "read" && byRules) ? "granted" : "redirect";
  const refused = redirects.find((path) => !mayTouch(path, context, by(path)));
  return refused === undefined
    ? undefined
    : { type: "open", reason: `it would ${verbs[refused.use]} ${refused.forms[0]}, which no rule allows` };
}

function isWithin({ forms }: PathFact, { workingDirectories }: PermissionPolicy): boolean {
  return forms.every((form) => isInside(form, workingDirectories));
}

/** Commands that do nothing but change files, called in a way that can be read completely. */
function isFileCommand({ words, grantText, exactOnly }: ShellUnit): boolean {
  return (
    grantText !== undefined &&
    exactOnly === undefined &&
    fileCommands.has(basename(words[0]?.text ?? "")) &&
    words.every(({ literal, glob }) => literal && !glob)
  );
}

const fileCommands: ReadonlySet<string> = new Set("mkdir touch mv cp rm rmdir ln".split(" "));
