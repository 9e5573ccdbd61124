import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { matchesName } from "@retinue/gate/covers-path.ts";
import type { FieldTaker } from "../field-reader.ts";
import { allowedHere, deniedHere } from "../path-patterns.ts";
import type { PortableTool, ToolClass } from "../portable-agent.ts";
import { splitsAtUnderscore } from "../tool-words.ts";

type Action = "allow" | "ask" | "deny";

interface Rule {
  readonly key: string;
  readonly pattern: string;
  readonly action: Action;
}

/** What each key of `permission` decides about. */
export const permissionKeys: readonly (readonly [key: string, classes: readonly ToolClass[]])[] = [
  ["read", ["read"]],
  ["edit", ["create", "change", "notebook"]],
  ["glob", ["find"]],
  ["grep", ["search"]],
  ["list", ["list"]],
  ["bash", ["shell"]],
  ["task", ["subagent"]],
  ["todowrite", ["todo"]],
  ["question", ["ask"]],
  ["webfetch", ["fetch"]],
  ["websearch", ["websearch"]],
  ["skill", ["skill"]],
];

/** Keys that guard something other than a tool of ours. */
const withoutTool: ReadonlySet<string> = new Set([
  "external_directory",
  "doom_loop",
  "lsp",
  "plan_enter",
  "plan_exit",
]);

/**
 * Everything is allowed until a rule says otherwise, and the last rule that matches wins. Here a denial always wins, so
 * what a later rule opens again inside a denial stays denied. `ofAll` are the settings that hold for every agent.
 */
export function readPermission(
  taker: FieldTaker,
  ofAll: readonly Readonly<Record<string, unknown>>[] = [],
): { readonly tools: "all" | readonly PortableTool[]; readonly deny: readonly PortableTool[] } | undefined {
  const written = [
    ...ofAll.flatMap(({ tools, permission }) => [
      ...oldTools(tools, taker),
      ...(readRules(permission, "permission", taker) ?? []),
    ]),
    ...oldTools(taker.take("tools"), taker),
    ...(readRules(taker.take("permission"), "permission", taker) ?? []),
    ...(readRuleList(taker.take("permissions"), taker) ?? []),
  ];
  const rules = written.map((rule) => withKnownKey(rule, taker));
  reportUnkept(rules, taker);
  if (taker.diagnostics.some(({ severity }) => severity === "error")) return undefined;
  const states = permissionKeys.map(([key, classes]) => ({ key, classes, state: settle(rules, key, taker) }));
  const servers = settle(rules, undefined, taker);
  const named = namedTools(rules);
  const listed =
    servers.base === "deny" || states.some(({ state }) => state.base === "deny" && state.allows.length > 0);
  const denials = states.flatMap(({ classes, state, key }) => {
    const isGone = state.base === "deny" && state.allows.length === 0;
    if (isGone) return listed ? [] : entries(classes, key);
    const patterns = paths.has(key)
      ? deniedHere(state.denies)
      : state.denies.flatMap((pattern) => denied(key, pattern, taker));
    if (patterns.includes(undefined)) return entries(classes, key);
    return patterns.flatMap((pattern) => entries(classes, key, pattern));
  });
  if (servers.denies.length > 0)
    taker.loses(
      "pattern-dropped",
      "A rule for every tool denies some calls; which calls of MCP servers it means cannot be kept here, and none is allowed.",
      "permission",
    );
  const ofEvery: readonly PortableTool[] = servers.denies.length > 0 ? [{ class: "mcp", raw: "*" }] : [];
  const deny = [...denials, ...named.deny, ...ofEvery];
  if (!listed) return { tools: "all", deny };
  const tools = states.flatMap(({ classes, state, key }) => {
    if (state.base === "allow") return entries(classes, key);
    return state.allows.flatMap((pattern) =>
      allowed(key, pattern, taker).flatMap((each) => entries(classes, key, each)),
    );
  });
  const ofServers: readonly PortableTool[] =
    servers.base === "allow" ? [{ class: "mcp", raw: "*" }] : named.allow;
  return { tools: [...tools, ...ofServers], deny };
}

/** What a key is about decides what its patterns are patterns of. */
const paths: ReadonlySet<string> = new Set(["read", "edit", "list"]);

/** Patterns that deny here what one denies there; where none do, the whole tool is denied. */
function denied(key: string, pattern: string, taker: FieldTaker): readonly (string | undefined)[] {
  // A sign for one character is none here.
  if (key === "bash" || key === "task") return [pattern.replaceAll("?", "*")];
  if (key === "skill" && !/[*?\s]/.test(pattern)) return [pattern, `${pattern} *`];
  if (key === "webfetch") return [pattern];
  taker.loses(
    "pattern-dropped",
    `Which calls ${quote(pattern)} of \`permission.${key}\` denies cannot be kept here; none is allowed.`,
    "permission",
  );
  return [undefined];
}

/** The pattern that allows here no more than one allows there, where there is one. */
function allowed(key: string, pattern: string, taker: FieldTaker): readonly string[] {
  if (paths.has(key)) return [allowedHere(pattern)];
  const isSaid =
    key === "bash" || key === "task"
      ? !pattern.includes("?")
      : key === "webfetch" || (key === "skill" && !/[*?\s]/.test(pattern));
  if (isSaid) return [pattern];
  taker.loses(
    "pattern-dropped",
    `Which calls ${quote(pattern)} of \`permission.${key}\` allows cannot be kept here; they are not allowed.`,
    "permission",
  );
  return [];
}

/** What opencode asks about or keeps inside the project, and what the session decides here. */
function reportUnkept(rules: readonly Rule[], taker: FieldTaker): void {
  if (rules.some(({ key, action }) => key === "external_directory" && action === "deny"))
    taker.loses(
      "deny-dropped",
      "`permission.external_directory` denies what is outside of the project; here the session decides about that.",
      "permission",
    );
  const unasked = ["read", "glob", "grep", "list", "skill", "todowrite"];
  const asked = rules.find(
    ({ key, action }) => action === "ask" && unasked.some((each) => matchesKey(key, each)),
  );
  if (asked !== undefined)
    taker.loses(
      "mode-dropped",
      `\`permission.${asked.key}\` asks also before it reads; here reading inside the working directories needs no question.`,
      "permission",
    );
}

function entries(classes: readonly ToolClass[], raw: string, pattern?: string): PortableTool[] {
  return classes.map((kind) => ({ class: kind, raw, ...(pattern === undefined ? {} : { pattern }) }));
}

interface Settled {
  base: "allow" | "deny";
  allows: string[];
  denies: string[];
}

/** Without a key: what holds for tools that no rule names. */
function settle(rules: readonly Rule[], key: string | undefined, taker: FieldTaker): Settled {
  const state: Settled = { base: "allow", allows: [], denies: [] };
  for (const rule of rules) {
    if (rule.key !== "*" && (key === undefined || !matchesKey(rule.key, key))) continue;
    const { pattern } = rule;
    const isDeny = rule.action === "deny";
    if (pattern === "*") Object.assign(state, { base: isDeny ? "deny" : "allow", allows: [], denies: [] });
    else if (isDeny) state.denies.push(pattern);
    else if (state.base === "deny") state.allows.push(pattern);
    else if (state.denies.length > 0)
      taker.loses(
        "pattern-dropped",
        `\`permission.${rule.key}\` opens ${quote(pattern)} again inside what it denies; here the denial holds.`,
        "permission",
      );
  }
  return state;
}

/** A star stands for any characters and a question mark for one; nothing else is a sign there. */
function matchesKey(pattern: string, key: string): boolean {
  return matchesName(pattern.replace(/[\\[\]]/g, "\\$&"), key);
}

/**
 * Rules that name tools of servers, or of plugins, one by one. Which calls of such a tool a pattern means cannot be kept here: a
 * tool of which some calls are denied is denied.
 */
function namedTools(rules: readonly Rule[]): {
  readonly allow: readonly PortableTool[];
  readonly deny: readonly PortableTool[];
} {
  const known = new Set(permissionKeys.map(([key]) => key));
  const named = new Map<string, { isAllowed: boolean; isPartDenied: boolean }>();
  for (const { key, pattern, action } of rules) {
    const covers = permissionKeys.some(([tool]) => matchesKey(key, tool));
    if (key === "*" || known.has(key) || withoutTool.has(key)) continue;
    if (covers && !key.includes("_") && action !== "deny") continue;
    const before = named.get(key) ?? { isAllowed: true, isPartDenied: false };
    const isAllowed = action !== "deny";
    if (pattern === "*") named.set(key, { isAllowed, isPartDenied: false });
    else named.set(key, { ...before, isPartDenied: before.isPartDenied || !isAllowed });
  }
  const allow: PortableTool[] = [];
  const deny: PortableTool[] = [];
  for (const [key, { isAllowed, isPartDenied }] of named) {
    const split = splitsAtUnderscore(key).map((each): PortableTool => ({ class: "mcp", ...each, raw: key }));
    // A star may stand for any server, and so may a name that is too long to be one.
    const isAny = /[*?_]/.test(key);
    const every: readonly PortableTool[] = isAny ? [{ class: "mcp", raw: key }] : [];
    if (!isAllowed || isPartDenied) deny.push(...(split.length === 0 ? every : split));
    else allow.push(...split);
  }
  return { allow, deny };
}

/** Other names of the keys, and of tools that `edit` covers. */
const otherKeys: ReadonlyMap<string, string> = new Map([
  ["write", "edit"],
  ["patch", "edit"],
  ["apply_patch", "edit"],
  ["multiedit", "edit"],
  ["shell", "bash"],
  ["ls", "list"],
  ["agent", "task"],
]);

/** A denial under a key that opencode does not know was meant for somebody; what such a key allows is not known. */
function withKnownKey(rule: Rule, taker: FieldTaker): Rule {
  const { key, action } = rule;
  const isKnown = (name: string) => permissionKeys.some(([known]) => known === name);
  if (isKnown(key) || withoutTool.has(key) || key.includes("*") || key.includes("?")) return rule;
  const lower = key.toLowerCase();
  const meant = otherKeys.get(lower) ?? lower;
  if (action === "deny" && isKnown(meant)) {
    taker.loses(
      "deny-dropped",
      `opencode has no key ${quote(key)} and ignores it; here it counts as \`${meant}\`.`,
      taker.has("permission") ? "permission" : "tools",
    );
    return { ...rule, key: meant };
  }
  if (!key.includes("_"))
    taker.report(
      "note",
      "unknown-tool",
      `opencode: there is no tool here for ${quote(key, 80)}.`,
      "permission",
    );
  return rule;
}

/** The list of the next version: the last rule that matches wins here too. A mapping is a misspelt `permission`. */
function readRuleList(value: unknown, taker: FieldTaker): readonly Rule[] | undefined {
  if (!Array.isArray(value)) {
    if (value !== undefined)
      taker.loses(
        "deny-dropped",
        "`permissions` that is no list is nothing in opencode; here it counts as `permission`.",
        "permissions",
      );
    return readRules(value, "permissions", taker);
  }
  const rules: Rule[] = [];
  for (const entry of value) {
    const { permission, action: subject, resource, pattern, effect } = isRecord(entry) ? entry : {};
    const key = permission ?? subject;
    const calls = resource ?? pattern ?? "*";
    const action = actionOf(effect);
    if (typeof key !== "string" || typeof calls !== "string" || action === undefined)
      return taker.fails("permissions", "an entry is no rule with `permission`, `resource` and `effect`");
    rules.push({ key, pattern: calls, action });
  }
  return rules;
}

function readRules(
  value: unknown,
  name: "permission" | "permissions",
  taker: FieldTaker,
): readonly Rule[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") {
    const action = actionOf(value);
    return action === undefined
      ? taker.fails(name, `${quote(value)} is not allow, ask or deny`)
      : [{ key: "*", pattern: "*", action }];
  }
  if (!isRecord(value)) return taker.fails(name, "it is neither a word nor a mapping");
  const rules: Rule[] = [];
  for (const [key, said] of Object.entries(value)) {
    const patterns = isRecord(said) ? Object.entries(said) : [["*", said] as const];
    for (const [pattern, word] of patterns) {
      const action = actionOf(word);
      if (action === undefined)
        return taker.fails(name, `${quote(word)} of \`${key}\` is not allow, ask or deny`);
      rules.push({ key, pattern, action });
    }
  }
  return rules;
}

/** `tools: {write: false}` of older versions; `permission` comes later and wins. */
function oldTools(value: unknown, taker: FieldTaker): readonly Rule[] {
  if (value === undefined || value === null) return [];
  if (!isRecord(value)) {
    taker.fails("tools", "in opencode it is a mapping of names to true or false");
    return [];
  }
  return Object.entries(value).flatMap(([name, isOn]): Rule[] => {
    if (typeof isOn !== "boolean") {
      taker.fails("tools", `\`${name}\` is neither true nor false`);
      return [];
    }
    const key = ["write", "edit", "patch", "apply_patch", "multiedit"].includes(name) ? "edit" : name;
    return [{ key, pattern: "*", action: isOn ? "allow" : "deny" }];
  });
}

function actionOf(word: unknown): Action | undefined {
  return word === "allow" || word === "ask" || word === "deny" ? word : undefined;
}
