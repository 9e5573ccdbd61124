import { factsOf, isDevice, type PermissionRequest, type ShellFacts } from "./call-facts.ts";
import { decide } from "./decide.ts";
import { isInside, type PermissionPolicy } from "./permission-policy.ts";
import { formatRule, type PermissionRule, parseRule } from "./rules/parse-rule.ts";
import type { ShellAnalysis, ShellUnit } from "./shell/model.ts";
import { whyNotAccepted } from "./why-not-accepted.ts";

const maxRules = 5;

export interface SuggestOptions {
  /** Where rules with relative paths start. */
  readonly anchor: string;
  /** Rules for this call alone, with no wildcard. */
  readonly exact?: boolean;
}

/**
 * Rules that together would allow this call and little more: one for each part of a shell command, the folder of a path,
 * the host of an address. None when they could not be kept to that, or when no rule would help under this policy. The
 * first that work are taken: for calls like this one, for this very command, for the whole line.
 */
export function suggestRules(
  request: PermissionRequest,
  policy: PermissionPolicy,
  { anchor, exact = false }: SuggestOptions,
): readonly string[] {
  if (decide(request, policy, { attended: false }).type === "allow") return [];
  for (const texts of attempts(request, policy, exact)) {
    const rules = [...new Set(texts)].map(readBack);
    const understood = rules.filter((rule) => rule !== undefined);
    if (understood.length === 0 || understood.length !== rules.length || rules.length > maxRules) continue;
    const added = understood.map((rule) => ({ rule, anchor }));
    const allowed = decide(request, { ...policy, allow: [...policy.allow, ...added] }, { attended: false });
    if (allowed.type === "allow") return understood.map(formatRule);
  }
  return [];
}

/** The rules to be tried, from wide to narrow. */
function attempts(
  request: PermissionRequest,
  policy: PermissionPolicy,
  exact: boolean,
): readonly (readonly string[])[] {
  const { shell } = factsOf(request);
  if (shell === undefined) return [candidates(request, policy, exact)];
  if (shell.analysis.opaque !== undefined) return [];
  const files = (isExact: boolean): readonly string[] =>
    outsidePaths(shell, policy).map(({ use, path }) => `${use}(${pathPattern(path, policy, isExact)})`);
  const line = `Bash(${shell.analysis.exactText})`;
  const narrow = [[...shellRules(shell.analysis, true), ...files(true)], [line], [line, ...files(true)]];
  return exact ? narrow : [[...shellRules(shell.analysis, false), ...files(false)], ...narrow];
}

function candidates(request: PermissionRequest, policy: PermissionPolicy, exact: boolean): readonly string[] {
  const { tool, effect, host, input } = request;
  const facts = factsOf(request);
  if (tool === "Skill" && typeof input["skill"] === "string") return [`${tool}(${input["skill"]} *)`];
  if (tool === "Workflow")
    return typeof input["name"] === "string" && input["scriptPath"] === undefined
      ? [`${tool}(${input["name"]})`]
      : [];
  if (host !== undefined) return [`${tool}(domain:${host})`];
  if (effect === "edit")
    return facts.paths.flatMap((path) => {
      const isWithin = path.forms.every((form) => isInside(form, policy.workingDirectories));
      const isSteering = isWithin && whyNotAccepted(path, policy) !== undefined;
      return path.forms.map((form) => `Edit(${pathPattern(form, policy, exact || isSteering)})`);
    });
  if (effect === "read" && request.paths.length > 0)
    return request.paths.map((path) => `Read(${pathPattern(path, policy, exact)})`);
  if (!tool.startsWith("mcp__")) return [];
  return [facts.mcp === undefined ? tool : `mcp__${facts.mcp.server}__${facts.mcp.tool}`];
}

/** The files of a shell call that rules for commands do not open. */
function outsidePaths(
  { units, redirects, analysis }: ShellFacts,
  policy: PermissionPolicy,
): readonly { readonly use: "Read" | "Edit"; readonly path: string }[] {
  const reading = units.flatMap(({ paths }, at) => (analysis.units[at]?.readOnly === true ? paths : []));
  return [...reading, ...redirects].flatMap((fact) => {
    const { use, forms } = fact;
    const isWithin = forms.every((form) => isInside(form, policy.workingDirectories));
    const isAccepted = policy.mode === "acceptEdits" && whyNotAccepted(fact, policy) === undefined;
    if (isDevice(fact) || (isWithin && (use === "read" || isAccepted))) return [];
    return forms.map((path) => ({ use: use === "read" ? ("Read" as const) : ("Edit" as const), path }));
  });
}

/** A rule must say exactly what was meant: one that reads back differently is none. */
function readBack(text: string): PermissionRule | undefined {
  const reading = parseRule(text, { list: "allow" });
  if (reading.type === "invalid" || reading.rule.specifier.type === "text") return undefined;
  return formatRule(reading.rule) === text ? reading.rule : undefined;
}

function shellRules({ units, opaque }: ShellAnalysis, exact: boolean): readonly string[] {
  if (opaque !== undefined) return [];
  return units.filter(({ readOnly }) => !readOnly).map((unit) => `Bash(${unitPattern(unit, exact)})`);
}

/** The empty text makes an invalid rule, so that nothing is suggested for the whole command. */
function unitPattern(unit: ShellUnit, exact: boolean): string {
  const { grantText, exactOnly, wildcardHead, words } = unit;
  if (grantText === undefined || /[*\n]/.test(grantText)) return "";
  if (exact) return grantText;
  const beginning = knownBeginning(words.map(({ text }) => text));
  if (beginning === undefined || !`${grantText} `.startsWith(`${beginning} `)) return grantText;
  const isRisky =
    exactOnly !== undefined && !(wildcardHead !== undefined && beginning.startsWith(wildcardHead));
  const isPlain = words.every(({ literal, glob }) => literal && !glob);
  return isRisky || !isPlain ? grantText : `${beginning} *`;
}

/**
 * Only for commands whose dangerous options are known to the engine: there a wildcard covers other operands, and an
 * option that executes or writes is still asked about. Anything else is suggested as it is.
 */
function knownBeginning([command = "", first = "", second = ""]: readonly string[]): string | undefined {
  if (command === "git" && gitCommands.has(first)) return `git ${first}`;
  if (!packageManagers.has(command)) return undefined;
  if (first === "test") return `${command} test`;
  return first === "run" && /^[\w:.-]+$/.test(second) && !second.startsWith("-")
    ? `${command} run ${second}`
    : undefined;
}

const gitCommands: ReadonlySet<string> = new Set(["add", "commit", "push", "switch", "tag"]);

const packageManagers: ReadonlySet<string> = new Set(["npm", "pnpm", "yarn"]);

/** How a rule names a file, or the folder it is in: from the first working directory, from home, or from the root. */
function pathPattern(
  path: string,
  { home, workingDirectories: [work = ""] }: PermissionPolicy,
  exact: boolean,
): string {
  if (!path.startsWith("/") || /[*?[\]\\{}!()]/.test(path)) return "";
  const folder = path.slice(0, path.lastIndexOf("/"));
  // A folder that holds a whole home or more is too much.
  const isWide = folder === "" || home === folder || home.startsWith(`${folder}/`);
  const isFile = exact || isWide;
  if (work !== "" && path.startsWith(`${work}/`)) {
    const inside = path.slice(work.length + 1);
    if (isFile) return inside.includes("/") ? inside : `./${inside}`;
    return folder === work ? "./**" : `${folder.slice(work.length + 1)}/**`;
  }
  if (isFile) return exact && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : `/${path}`;
  return `/${folder}/**`;
}
