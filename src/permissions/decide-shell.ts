import { basename } from "node:path";
import { factsOf, type PathFact, type PermissionRequest, type ShellFacts } from "./call-facts.ts";
import { isInside } from "./containment.ts";
import { isDevice } from "./guard-call.ts";
import { grantsUnit, saysWholeCall } from "./match-command.ts";
import { matchesPath } from "./match-rule.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import type { ShellUnit } from "./shell-analysis.ts";

export type ShellGrant =
  | { readonly type: "granted"; readonly because: string; readonly rule?: PolicyRule }
  | { readonly type: "open"; readonly because: string };

/** Whether every command of a shell call is allowed on its own, and every file it writes. */
export function grantShell(
  request: PermissionRequest,
  shell: ShellFacts,
  policy: PermissionPolicy,
): ShellGrant {
  const commands = policy.allow.filter(({ rule }) => rule.canonicalTool === request.tool);
  const whole = commands.find(({ rule }) => rule.specifier.type === "whole");
  if (whole !== undefined) return { type: "granted", because: "", rule: whole };
  if (shell.elsewhere !== undefined) return { type: "open", because: shell.elsewhere };
  const context: Context = { policy, homes: factsOf(request).otherHomes, commands };
  const exact = commands.find(
    ({ rule }) => rule.specifier.type === "command" && saysWholeCall(rule.specifier, shell.analysis),
  );
  const moved = shell.moves.find((path) => !isWithin(path, policy));
  if (moved !== undefined && exact === undefined)
    return {
      type: "open",
      because: `commands would run in ${moved.forms[0]}, outside the working directories`,
    };
  const grants = shell.analysis.units.map((unit, at) =>
    grantUnit(unit, shell.units[at]?.paths ?? [], { ...context, exact }),
  );
  const open =
    grants.find((grant) => grant.type === "open") ??
    openRedirect(shell.redirects, grants, { ...context, exact });
  if (open !== undefined) return open;
  return (
    grants.find((grant) => grant.type === "granted" && grant.rule !== undefined) ?? grants[0] ?? onlyRedirects
  );
}

const onlyRedirects: ShellGrant = { type: "granted", because: "everything it writes may be written" };

interface Context {
  readonly policy: PermissionPolicy;
  readonly homes: readonly string[] | undefined;
  readonly commands: readonly PolicyRule[];
  readonly exact?: PolicyRule | undefined;
}

function grantUnit(unit: ShellUnit, paths: readonly PathFact[], context: Context): ShellGrant {
  const shown = unit.grantText ?? unit.written;
  const rule =
    context.exact ??
    context.commands.find(
      ({ rule: { specifier } }) => specifier.type === "command" && grantsUnit(specifier, unit),
    );
  if (rule !== undefined) {
    // A link to somewhere else would lead what comes after it out of the working directories.
    const by = basename(unit.words[0]?.text ?? "") === "ln" ? "linking" : "granted";
    const refused = paths.find((path) => !mayTouch(path, context, by));
    if (refused === undefined) return { type: "granted", because: "", rule };
    return {
      type: "open",
      because: `${shown} would ${verbs[refused.use]} ${refused.forms[0]}, which no rule allows`,
    };
  }
  if (unit.readOnly) {
    const refused = paths.find((path) => !mayTouch(path, context, "reading"));
    if (refused === undefined)
      return { type: "granted", because: "it only reads inside the working directories" };
    return {
      type: "open",
      because: `${shown} would ${verbs[refused.use]} ${refused.forms[0]}, which no rule allows`,
    };
  }
  if (isFileCommand(unit) && context.policy.mode === "acceptEdits" && paths.length > 0) {
    if (paths.every((path) => path.unknown === undefined && isWithin(path, context.policy)))
      return { type: "granted", because: "changes to files inside the working directories are accepted" };
  }
  return { type: "open", because: unit.because ?? unit.exactOnly ?? `no rule allows ${shown}` };
}

const verbs = { read: "read", write: "write", remove: "remove" } as const;

type Occasion = "granted" | "linking" | "reading" | "redirect";

/** How the command came to be allowed decides what it may touch without a rule of its own. */
function mayTouch(path: PathFact, context: Context, by: Occasion): boolean {
  if (isDevice(path)) return true;
  if (path.use === "read" && by === "granted") return true;
  if (path.unknown === undefined && isWithin(path, context.policy)) {
    if (path.use === "read" || by === "granted" || by === "linking" || context.policy.mode === "acceptEdits")
      return true;
  }
  return context.policy.allow.some((rule) =>
    matchesPath(rule, path, { use: "grant", policy: context.policy, homes: context.homes }),
  );
}

/** A redirection writes a file as an edit would, whatever command it stands at. */
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
    : { type: "open", because: `it would ${verbs[refused.use]} ${refused.forms[0]}, which no rule allows` };
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
