import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { matchesName } from "@retinue/gate/covers-path.ts";
import {
  emptyAgent,
  hasClass,
  modelOf,
  modelWord,
  oneAgent,
  refusedReading,
  restOf,
  usableName,
} from "../common-fields.ts";
import { createForeignFields, type ForeignFields, reportRest } from "../field-reader.ts";
import { type FormatId, formatFacts } from "../format-facts.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import { allowedHere, allowedThere, deniedHere, deniedThere } from "../path-patterns.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
  ToolClass,
} from "../portable-agent.ts";
import { readFenced, readJson, type SourceFields, type SourceRefusal } from "../read-fenced.ts";
import { splitsAtUnderscore } from "../tool-words.ts";
import { writeFenced, writeJson } from "../write-fenced.ts";

/** opencode's Markdown files. */
export const opencodeFormat: AgentFormat = {
  id: "opencode",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const settings = settingsAbove(context);
    if ("refused" in settings) return refusedReading(settings);
    const id = context.relative.replace(/\.md$/i, "");
    const written = fields.values.get("name");
    const name = typeof written === "string" ? written : id;
    const merged = withSettings(fields, settings, { name, file: context.file });
    return readAgent(merged, context, { format: "opencode", id, ofAll: settings });
  },
  write: (agent, note) => writeFenced(fieldsOf(agent), agent.prompt, note),
  // Folders are part of the name.
  fileName: ({ id }) =>
    `${id
      .split("/")
      .map((part) => usableName(part))
      .join("/")}.md`,
};

/** Agents under `agent` in opencode.json, which may hold comments. */
export const opencodeJsonFormat: AgentFormat = {
  id: "opencode-json",
  read(text, context) {
    const document = readJson(text, context, { comments: true });
    if ("refused" in document) return refusedReading(document);
    const settings = settingsAbove(context);
    if ("refused" in settings) return refusedReading(settings);
    const readings = entriesOf(document.value).map(({ key, id, value }): PortableReading => {
      const { prompt = value["system"], system: _same, ...others } = value;
      const fields: SourceFields = {
        values: new Map(Object.entries(others)),
        body: promptOf(prompt, context),
        locate: (path) => document.locate([key, id, ...path]) ?? document.locate([key, id]),
        diagnostics: [],
      };
      if (typeof prompt === "string" && fields.body === "" && prompt.trim() !== "")
        return {
          agents: [],
          diagnostics: [
            {
              severity: "error",
              code: "unreadable-file",
              message: `The prompt of ${quote(id)} names a file that does not exist or is outside the project: ${quote(prompt, 120)}.`,
              advice: "Name a file below the folder of the project.",
              file: context.file,
              ...document.locate([key, id, "prompt"]),
            },
          ],
        };
      const merged = withSettings(fields, settings, { name: id, file: context.file });
      return readAgent(merged, context, {
        format: "opencode-json",
        id,
        ofAll: [...settings, document.value],
      });
    });
    return {
      agents: readings.flatMap((reading) => reading.agents),
      diagnostics: readings.flatMap((reading) => reading.diagnostics),
    };
  },
  write(agent, note) {
    const fields = [...fieldsOf(agent), ["prompt", agent.prompt] as const].filter(
      ([, value]) => value !== undefined,
    );
    const text = writeJson([["agent", { [agent.id]: Object.fromEntries(fields) }]]);
    return note === undefined
      ? text
      : `${note
          .split("\n")
          .map((line) => `// ${line}\n`)
          .join("")}${text}`;
  },
  fileName: () => "opencode.json",
};

type Settings = Readonly<Record<string, unknown>>;

/** The agents in one `opencode.json`. The next version writes `agents` and `system`; `mode` is the old place of primary agents. */
function entriesOf(
  document: Settings,
): readonly { readonly key: string; readonly id: string; readonly value: Settings }[] {
  return (["mode", "agent", "agents"] as const).flatMap((key) => {
    const value = document[key];
    if (!isRecord(value)) return [];
    return Object.entries(value).flatMap(([id, agent]) =>
      isRecord(agent) ? [{ key, id, value: key === "mode" ? { ...agent, mode: "primary" } : agent }] : [],
    );
  });
}

/** What the other files of settings contain: what they permit holds for every agent below their folder. */
function settingsAbove({ file, above }: ReadContext): readonly Settings[] | SourceRefusal {
  const { project, user } = formatFacts["opencode-json"];
  const isPersonal = file.replaceAll("\\", "/").includes("/.config/opencode/");
  const found: Settings[] = [];
  for (const each of above?.(isPersonal ? user : project) ?? []) {
    if (each.file === file) continue;
    const document =
      each.text === undefined
        ? { refused: [unreadableSettings(each.file)] }
        : readJson(each.text, { file: each.file, relative: each.file }, { comments: true });
    if ("refused" in document) return document;
    found.push(document.value);
  }
  return found;
}

function unreadableSettings(file: string): Diagnostic {
  const message =
    "This file cannot be read and may restrict the agents of the project; those that it applies to are not loaded.";
  return { severity: "error", code: "unreadable-restriction", message, file, line: 1, column: 1 };
}

/** The fields of an agent over those that settings have for one of its name, as opencode merges them. */
function withSettings(
  fields: SourceFields,
  settings: readonly Settings[],
  { name, file }: { readonly name: string; readonly file: string },
): SourceFields {
  const under = settings.flatMap((document) =>
    entriesOf(document).flatMap(({ id, value: { prompt: _prompt, system: _system, ...others } }) =>
      id === name ? [others] : [],
    ),
  );
  if (under.length === 0) return fields;
  const merged = [...under, Object.fromEntries(fields.values)].reduce<Settings>(mergeFields, {});
  const note: Diagnostic = {
    severity: "note",
    code: "settings-count-too",
    message: `opencode.json has settings of ${quote(name)} too; both apply.`,
    file,
    ...(fields.locate(["name"]) ?? fields.locate(["description"])),
  };
  return { ...fields, values: new Map(Object.entries(merged)), diagnostics: [...fields.diagnostics, note] };
}

function mergeFields(under: Settings, over: Settings): Settings {
  const merged = new Map(Object.entries(under));
  for (const [key, value] of Object.entries(over)) {
    // A word for all tools is a rule among others.
    const [before, after] = [merged.get(key), value].map((each) =>
      key === "permission" && typeof each === "string" ? { "*": each } : each,
    );
    merged.set(key, isRecord(before) && isRecord(after) ? mergeFields(before, after) : value);
  }
  return Object.fromEntries(merged);
}

function promptOf(prompt: unknown, { include }: ReadContext): string {
  if (typeof prompt !== "string") return "";
  const named = /^\{file:(.+)\}$/.exec(prompt.trim())?.[1];
  return (named === undefined ? prompt : (include?.(named.trim()) ?? "")).trim();
}

function readAgent(
  fields: SourceFields,
  context: ReadContext,
  {
    format,
    id,
    ofAll,
  }: {
    readonly format: FormatId;
    readonly id: string;
    readonly ofAll: readonly Readonly<Record<string, unknown>>[];
  },
): PortableReading {
  const taker = createForeignFields(fields.values, context, fields.locate);
  const rights = readPermission(taker, ofAll) ?? { tools: [], deny: [] };
  const name = taker.text("name") ?? id;
  const mode = taker.text("mode");
  if (taker.flag("disable") === true || taker.flag("disabled") === true)
    return {
      agents: [],
      diagnostics: [
        {
          severity: "note",
          code: "agent-disabled",
          message: `The agent ${quote(name)} is disabled in its file.`,
          file: context.file,
          ...fields.locate(["disable"]),
        },
      ],
    };
  const description = taker.text("description") ?? "";
  if (description === "")
    taker.report(
      "warning",
      "no-description",
      "There is no `description`, by which a model decides when to use the agent.",
      "description",
    );
  if (mode !== undefined && !["subagent", "primary", "all"].includes(mode))
    taker.loses("mode-dropped", `opencode has no mode ${quote(mode)}; it has no effect here.`, "mode");
  const isPrimary = mode === "primary" || /(?:^|\/)modes?\//.test(context.file.replaceAll("\\", "/"));
  if (isPrimary)
    taker.report(
      "note",
      "unknown-kept",
      "`mode: primary` has no meaning here: the agent can be started like any other.",
      "mode",
    );
  const written: PortableAgent = {
    ...emptyAgent(format, context.file),
    ...rights,
    id: name,
    description,
    prompt: fields.body,
    model: modelOf(taker.text("model"), format),
    limits: { turns: taker.number("steps") ?? taker.number("maxSteps") },
    color: taker.text("color"),
    rest: {},
  };
  const agent = holdRestrictions(written, taker, {
    product: "opencode",
    keys: ["disallowedTools", "permissionMode"],
  });
  reportRest(taker, "opencode");
  const rest = { ...(isPrimary ? { mode: "primary" } : {}), ...taker.rest() };
  return oneAgent(
    { ...agent, rest },
    {
      fields,
      taker,
      places: {
        maxTurns: "steps",
        tools: fields.values.has("permission") ? "permission" : "tools",
        disallowedTools: "permission",
      },
    },
  );
}

/** Nothing unknown is ever written: opencode hands it to the provider. */
function fieldsOf(agent: PortableAgent): (readonly [string, unknown])[] {
  const { mode, ...rest } = Object.fromEntries(restOf(agent, "opencode"));
  const isColor =
    agent.color !== undefined &&
    /^(?:#[0-9a-f]{6}|primary|secondary|accent|success|warning|error|info)$/i.test(agent.color);
  return [
    ["description", agent.description],
    ["mode", mode ?? "subagent"],
    ["model", modelWord(agent, "opencode", /^[\w.-]+\/\S+$/)],
    ["steps", agent.limits.turns],
    ["permission", permissionOf(agent)],
    ["color", isColor ? agent.color : undefined],
    ...Object.entries(rest),
  ];
}

/** Deny everything first and open what is allowed; or, where everything is allowed, only what is denied. */
function permissionOf(agent: PortableAgent): Readonly<Record<string, unknown>> | undefined {
  const { tools, deny } = agent;
  if (tools === "all" && deny.length === 0) return undefined;
  const result: [string, unknown][] = tools === "all" ? [] : [["*", "deny"]];
  for (const [key, classes] of permissionKeys) {
    const written = ruleOf(agent, classes);
    if (written === undefined) continue;
    result.push([key, key === "read" && written === "allow" && tools !== "all" ? protectedRead : written]);
  }
  const serverKeys = (list: readonly PortableTool[]): readonly string[] =>
    list.flatMap((each) =>
      each.class === "mcp" && each.server !== undefined ? [keyOfServer(each.server, each.tool)] : [],
    );
  const denied = serverKeys(deny);
  const allowed = tools === "all" ? [] : serverKeys(tools).filter((key) => !denied.includes(key));
  // The last rule that matches wins, so denials come last.
  for (const key of allowed) result.push([key, "allow"]);
  for (const key of denied) result.push([key, "deny"]);
  return Object.fromEntries(result);
}

function keyOfServer(server: string, tool: string | undefined): string {
  return tool === undefined && server.endsWith("*") ? server : `${server}_${tool ?? "*"}`;
}

/** Where reading is opened by a rule, files with secrets would be open too, which opencode asks about by itself. */
const protectedRead = { "*": "allow", "*.env": "deny", "*.env/*": "deny", "*.env.*": "deny" };

function ruleOf(agent: PortableAgent, classes: readonly ToolClass[]): unknown {
  const [first = "other"] = classes;
  // `edit` is one key for creating and changing: what one of the two must not do, neither may.
  const kinds = first === "create" ? (["create", "change"] as const) : [first];
  const levels = kinds.map((kind) => hasClass(agent, kind));
  const isListed = agent.tools !== "all";
  if (levels.includes("no")) return isListed ? undefined : "deny";
  const denials = kinds
    .flatMap((kind) => patternsOf(agent.deny, kind))
    .map((each) => deniedWords(first, each));
  // A denial that cannot be expressed takes the whole tool.
  if (denials.includes(undefined)) return isListed ? undefined : "deny";
  const denied = [...new Set(denials.flatMap((each) => each ?? []))];
  const allowed =
    agent.tools === "all"
      ? undefined
      : sharedPatterns(agent.tools, kinds)
          ?.flatMap((pattern) => allowedWords(first, pattern))
          .filter((pattern) => !denied.includes(pattern));
  if (allowed?.length === 0) return undefined;
  const whole = asks.has(first) ? "ask" : "allow";
  if (allowed === undefined && denied.length === 0) return isListed ? whole : undefined;
  const rules: [string, string][] = [
    ["*", allowed === undefined ? whole : "deny"],
    ...(allowed ?? []).map((pattern): [string, string] => [pattern, "allow"]),
    ...denied.map((pattern): [string, string] => [pattern, "deny"]),
  ];
  return Object.fromEntries(rules);
}

/** What says in opencode what a pattern of a tool denies, or more; undefined where nothing does. */
function deniedWords(kind: ToolClass, pattern: string): readonly string[] | undefined {
  if (pathClasses.has(kind)) return deniedThere(pattern);
  if (kind === "shell") return [commandWord(pattern)];
  if (kind === "subagent") return namesIn(pattern);
  if (kind === "skill") return [pattern.replace(/(?:\s|:).*$/s, "")];
  const host = /^domain:([^*]+)$/.exec(pattern)?.[1];
  if (kind === "fetch") return host === undefined ? undefined : [pattern, `*${host.trim()}*`];
  return undefined;
}

/** What says in opencode what a pattern of a tool allows, or less. */
function allowedWords(kind: ToolClass, pattern: string): readonly string[] {
  if (pathClasses.has(kind)) {
    const there = allowedThere(pattern);
    return there === undefined ? [] : [there];
  }
  if (kind === "shell") return /[?\\]/.test(pattern) ? [] : [commandWord(pattern)];
  if (kind === "subagent") return namesIn(pattern);
  return kind === "skill" && !/[\s:*]/.test(pattern) ? [pattern] : [];
}

const pathClasses: ReadonlySet<ToolClass> = new Set(["read", "create", "change", "list"]);

function commandWord(pattern: string): string {
  return pattern.replace(/:\*$/, " *");
}

function namesIn(pattern: string): readonly string[] {
  return pattern.split(",").map((name) => name.trim());
}

/** Whole tools that change something: a person is asked, as in the session the agent comes from. */
const asks: ReadonlySet<ToolClass> = new Set(["create", "shell"]);

function patternsOf(tools: readonly PortableTool[], kind: ToolClass): readonly string[] {
  return tools.flatMap((tool) => (tool.class === kind && tool.pattern !== undefined ? [tool.pattern] : []));
}

/** Patterns that hold for each of the classes; undefined where all of them are whole. */
function sharedPatterns(
  tools: readonly PortableTool[],
  kinds: readonly ToolClass[],
): readonly string[] | undefined {
  const limited = kinds.filter(
    (kind) => !tools.some((tool) => tool.class === kind && tool.pattern === undefined),
  );
  if (limited.length === 0) return undefined;
  const [first = [], ...others] = limited.map((kind) => patternsOf(tools, kind));
  return first.filter((pattern) => others.every((list) => list.includes(pattern)));
}

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
 * Everything is allowed unless a rule restricts it, and the last rule that matches wins. Here a denial always wins, so
 * what a later rule opens again inside a denial stays denied. `ofAll` are the settings that hold for every agent.
 */
export function readPermission(
  taker: ForeignFields,
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
      "A rule for every tool denies some calls; which calls of MCP servers it means cannot be expressed here, and none is allowed.",
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
function denied(key: string, pattern: string, taker: ForeignFields): readonly (string | undefined)[] {
  // A sign for one character is none here.
  if (key === "bash" || key === "task") return [pattern.replaceAll("?", "*")];
  if (key === "skill" && !/[*?\s]/.test(pattern)) return [pattern, `${pattern} *`];
  if (key === "webfetch") return [pattern];
  taker.loses(
    "pattern-dropped",
    `Which calls ${quote(pattern)} of \`permission.${key}\` denies cannot be expressed here; none is allowed.`,
    "permission",
  );
  return [undefined];
}

/** The pattern that allows here no more than one allows there, where there is one. */
function allowed(key: string, pattern: string, taker: ForeignFields): readonly string[] {
  if (paths.has(key)) return [allowedHere(pattern)];
  const isSaid =
    key === "bash" || key === "task"
      ? !pattern.includes("?")
      : key === "webfetch" || (key === "skill" && !/[*?\s]/.test(pattern));
  if (isSaid) return [pattern];
  taker.loses(
    "pattern-dropped",
    `Which calls ${quote(pattern)} of \`permission.${key}\` allows cannot be expressed here; they are not allowed.`,
    "permission",
  );
  return [];
}

/** What opencode asks about or keeps inside the project, and what the session decides here. */
function reportUnkept(rules: readonly Rule[], taker: ForeignFields): void {
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
  return classes.map((kind) => ({ class: kind, raw, pattern }));
}

interface Settled {
  base: "allow" | "deny";
  allows: string[];
  denies: string[];
}

/** Without a key: what holds for tools that no rule names. */
function settle(rules: readonly Rule[], key: string | undefined, taker: ForeignFields): Settled {
  const state: Settled = { base: "allow", allows: [], denies: [] };
  for (const rule of rules) {
    if (rule.key !== "*" && (key === undefined || !matchesKey(rule.key, key))) continue;
    const { pattern } = rule;
    const isDeny = rule.action === "deny";
    if (pattern === "*") Object.assign(state, { base: isDeny ? "deny" : "allow", allows: [], denies: [] });
    else if (isDeny) state.denies.push(pattern);
    else {
      if (state.base === "deny") state.allows.push(pattern);
      if (state.denies.length > 0)
        taker.loses(
          "pattern-dropped",
          `\`permission.${rule.key}\` allows ${quote(pattern)} again inside what it denies; here it stays denied.`,
          "permission",
        );
    }
  }
  return state;
}

/** A star matches any characters and a question mark one; nothing else is a sign there. */
function matchesKey(pattern: string, key: string): boolean {
  return matchesName(pattern.replace(/[\\[\]]/g, "\\$&"), key);
}

/**
 * Rules that name tools of servers, or of plugins, one by one. Which calls of such a tool a pattern means cannot be expressed here: a
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
    if (!isAllowed || isPartDenied) deny.push(...(split.length === 0 ? serversOf(key) : split));
    else allow.push(...split);
  }
  return { allow, deny };
}

/** Servers that a key without an underscore means: those whose names begin as it does, or any. */
function serversOf(key: string): readonly PortableTool[] {
  const server = /^[a-z0-9.-]+\*$/i.test(key) ? key : undefined;
  // A sign may match any server, and so may a name that is too long to be one.
  return /[*?_]/.test(key) ? [{ class: "mcp", server, raw: key }] : [];
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

/** A denial under a key that is unknown to opencode was meant to restrict; what such a key allows is not known. */
function withKnownKey(rule: Rule, taker: ForeignFields): Rule {
  const { key, action } = rule;
  const isKnown = (name: string) => permissionKeys.some(([known]) => known === name);
  // No tool has a name of several words: a command is where a tool should be.
  if (action === "deny" && /\S\s/.test(key.trim())) {
    taker.loses(
      "deny-dropped",
      `opencode has no key ${quote(key)} and ignores it; here it denies that command, as under \`bash\`.`,
      taker.has("permission") ? "permission" : "tools",
    );
    return { key: "bash", pattern: key.trim(), action };
  }
  if (isKnown(key) || withoutTool.has(key) || key.includes("*") || key.includes("?")) return rule;
  const lower = key.toLowerCase();
  const meant = otherKeys.get(lower) ?? lower;
  if (action === "deny" && isKnown(meant)) {
    taker.loses(
      "deny-dropped",
      `opencode has no key ${quote(key)} and ignores it; here it is read as \`${meant}\`.`,
      taker.has("permission") ? "permission" : "tools",
    );
    return { ...rule, key: meant };
  }
  if (!key.includes("_"))
    taker.report(
      "note",
      "unknown-tool",
      `opencode: Retinue has no tool for ${quote(key, 80)}.`,
      "permission",
    );
  return rule;
}

/** The list of the next version: the last rule that matches wins here too. A mapping is a misspelt `permission`. */
function readRuleList(value: unknown, taker: ForeignFields): readonly Rule[] | undefined {
  if (!Array.isArray(value)) {
    if (value !== undefined)
      taker.loses(
        "deny-dropped",
        "opencode ignores `permissions` that is not a list; here it is read as `permission`.",
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
      return taker.fails("permissions", "an entry is not a rule with `permission`, `resource` and `effect`");
    rules.push({ key, pattern: calls, action });
  }
  return rules;
}

function readRules(
  value: unknown,
  name: "permission" | "permissions",
  taker: ForeignFields,
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
  for (const [key, actions] of Object.entries(value)) {
    const patterns = isRecord(actions) ? Object.entries(actions) : [["*", actions] as const];
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
function oldTools(value: unknown, taker: ForeignFields): readonly Rule[] {
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
