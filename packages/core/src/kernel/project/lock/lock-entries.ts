import { createHash } from "node:crypto";
import { canonicalJson } from "@retinue/base/foundation/canonical-json.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { HookRule } from "@retinue/config/hooks/hook-rule.ts";
import { isGuardEvent } from "@retinue/config/hooks/read-hooks.ts";
import type { LockEntry, LockedRights, LockKind } from "@retinue/config/lock/lock-file.ts";
import type { McpEntry } from "@retinue/config/settings/load-mcp-entries.ts";
import { restrictingSwitches } from "@retinue/config/settings/permission-settings.ts";
import { restrictingPlainKeys } from "@retinue/config/settings/plain-settings.ts";
import { mergeSettings, type SettingsLayer } from "@retinue/config/settings/settings-layer.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import { splitSkill } from "@retinue/config/skills/skill-pieces.ts";
import { parseToolEntry, resolveToolName } from "@retinue/config/tools/tool-entry.ts";
import type { SavedWorkflow } from "@retinue/config/workflows/list-workflow-files.ts";
import { workflowMeaning } from "@retinue/config/workflows/workflow-meaning.ts";
import { hookText, transportText } from "../waiting-parts.ts";

/** Where a part was found, with the text of its file and what it runs. */
export interface PartSource {
  /** As the lock names it. */
  readonly file: string;
  readonly text: string;
  readonly programs?: Readonly<Record<string, string>>;
  /** Those of them that can be run as they are, where the system reports it. */
  readonly executable?: readonly string[] | undefined;
}

export function hashOf(content: string | Uint8Array): string {
  return `sha256-${createHash("sha256").update(content).digest("hex")}`;
}

export function agentEntry(definition: AgentDefinition, from: PartSource): LockEntry {
  const { source: _source, written: _written, behaviour: _behaviour, ...fields } = definition;
  const { name, tools, disallowedTools = [], hooks = [], limits, verify, maxTurns, timeout } = definition;
  const prompt = plainText(definition.prompt);
  const not = sorted(disallowedTools.map(plainEntry));
  const counted = { ...limits, turns: maxTurns, timeout };
  const rights: LockedRights = {
    tools: tools === undefined ? "all" : sorted(tools.map(plainEntry)),
    ...listed("not", not),
    mode: definition.permissionMode ?? "inherit",
    ...listed("mcpServers", definition.mcpServers ?? []),
    ...(definition.memory === undefined ? {} : { memory: definition.memory }),
    ...sentences({
      may: [
        ...hooks.map(hookSentence),
        ...(verify?.checks ?? []).map((check) => `runs the check ${canonicalJson(check)}`),
        ...Object.entries(definition.env ?? {}).map(([key, value]) => `sets ${key} to ${value}`),
        ...(definition.cwd === undefined ? [] : [`starts in ${definition.cwd}`]),
        ...runnerSentences(definition.runner),
      ],
      mayNot: [
        ...guardSentences(hooks),
        ...(definition.isolation === undefined ? [] : [`works in isolation: ${definition.isolation}`]),
      ],
    }),
    ...limitsOf(counted),
    ...programsOf(from),
  };
  const meaning = {
    ...fields,
    description: plainWords(definition.description),
    prompt,
    tools: rights.tools,
    disallowedTools: not,
    skills: definition.skills === undefined ? undefined : sorted(definition.skills),
  };
  return entry("agent", definition.source.id ?? name, from, { meaning, rights, prompt });
}

export function skillEntry(skill: Skill, from: PartSource): LockEntry {
  const { source, body, ...fields } = skill;
  const { hooks = [], allowedTools = [], disallowedTools = [] } = skill;
  const prompt = plainText(body);
  const commands = splitSkill(prompt).flatMap((piece) => (piece.type === "command" ? [piece.command] : []));
  const rights: LockedRights = {
    ...sentences({
      may: [
        ...allowedTools.map((rule) => `allows ${plainEntry(rule)}`),
        ...commands.map((command) => `runs the command ${command}`),
        ...hooks.map(hookSentence),
        ...(skill.context === "fork" ? [`starts the agent ${skill.agent ?? "general-purpose"}`] : []),
      ],
      mayNot: [
        ...disallowedTools.map((rule) => `denies ${plainEntry(rule)}`),
        ...guardSentences(hooks),
        ...(skill.disableModelInvocation ? ["can only be called by users"] : []),
        ...(skill.userInvocable ? [] : ["can only be called by the model"]),
      ],
    }),
    ...programsOf(from),
  };
  const meaning = {
    ...fields,
    kind: source.kind,
    description: plainWords(skill.description),
    whenToUse: skill.whenToUse === undefined ? undefined : plainWords(skill.whenToUse),
    allowedTools: sorted(allowedTools.map(plainEntry)),
    disallowedTools: sorted(disallowedTools.map(plainEntry)),
    body: prompt,
  };
  return entry("skill", skill.name, from, { meaning, rights, prompt });
}

/** The hooks of one file, an entry for each event. */
export function hookEntries(hooks: readonly HookRule[], from: PartSource): readonly LockEntry[] {
  return [...Map.groupBy(hooks, ({ event }) => event)].map(([event, rules]) =>
    entry("hook", event, from, {
      meaning: rules,
      rights: {
        ...sentences({ may: rules.map(hookSentence), mayNot: guardSentences(rules) }),
        ...programsOf(from),
      },
    }),
  );
}

export function serverEntry({ config }: McpEntry, from: PartSource): LockEntry {
  const { transport, written, name } = config;
  const text = transport === undefined ? undefined : transportText(transport);
  const how = transport?.type === "stdio" ? "starts" : "connects to";
  // How it is told apart from other servers is its name; what a type is called says nothing when it can be seen.
  const rights: LockedRights = {
    ...sentences({
      may: [text === undefined ? `is ${canonicalJson(written)}` : `${how} ${text}`],
      mayNot: [],
    }),
    ...programsOf(from),
  };
  return entry("mcp-server", name, from, { meaning: written, rights });
}

export function workflowEntry({ name, text, meta }: SavedWorkflow, from: PartSource): LockEntry {
  const meaning = workflowMeaning(text);
  const caps = (meta.phases ?? []).flatMap(({ title, maxAgents, maxBudgetUsd, maxTokens }) =>
    Object.entries({ agents: maxAgents, usd: maxBudgetUsd, tokens: maxTokens }).map(
      ([key, value]) => [`${title}: ${key}`, value] as const,
    ),
  );
  const rights: LockedRights = {
    ...sentences({ may: meaning?.starts ?? [], mayNot: [] }),
    ...limitsOf(Object.fromEntries(caps)),
  };
  return entry("workflow", name, from, { meaning: meaning?.tree ?? text, rights });
}

/** What a settings file of the project says besides hooks and servers, which are parts of their own. */
export function settingEntry(layer: SettingsLayer, from: PartSource): LockEntry | undefined {
  const { permissions, env, plain, extra } = layer.settings;
  const isPart = (key: string): boolean => key.startsWith("hooks.") || key === "mcpServers";
  const held = mergeSettings([layer], { trusted: false }).heldBack.filter(({ key }) => !isPart(key));
  const rules = (["deny", "ask"] as const).flatMap((list) =>
    permissions[list].map(({ text }) => `${list === "deny" ? "denies" : "asks about"} ${plainEntry(text)}`),
  );
  const switches = Object.entries(permissions.switches).filter(
    ([key, value]) => restrictingSwitches.has(key) && (value === true || value === "disable"),
  );
  const narrowing = Object.entries(plain).filter(([key]) => restrictingPlainKeys.has(key));
  const rights: LockedRights = {
    ...sentences({
      may: held.map(({ key, value }) => settingSentence(key, value)),
      mayNot: [
        ...rules,
        ...switches.map(([key, value]) => settingSentence(`permissions.${key}`, value)),
        ...narrowing.flatMap(([key, value]) => narrowingSentences(key, value)),
        ...(permissions.defaultMode === "plan" ? ["starts in plan mode"] : []),
      ],
    }),
    ...programsOf(from),
  };
  const meaning = {
    permissions: {
      ...permissions,
      allow: sorted(permissions.allow.map(({ text }) => plainEntry(text))),
      ask: sorted(permissions.ask.map(({ text }) => plainEntry(text))),
      deny: sorted(permissions.deny.map(({ text }) => plainEntry(text))),
      invalidRules: undefined,
    },
    env: Object.fromEntries(env),
    plain: { ...plain, mcpServers: undefined },
    extra: Object.fromEntries([...extra].filter(([key]) => key !== "$schema")),
  };
  const { permissions: own, ...others } = meaning;
  const isEmpty = canonicalJson({ ...own, unknownKeys: [] }) === emptyPermissions;
  if (isEmpty && Object.values(others).every((part) => canonicalJson(part) === "{}")) return undefined;
  return entry("setting", "settings", from, { meaning, rights });
}

const emptyPermissions = canonicalJson({
  allow: [],
  ask: [],
  deny: [],
  additionalDirectories: [],
  switches: {},
  unknownKeys: [],
});

/** `sandbox` has many switches: each counts by itself. */
function narrowingSentences(key: string, value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.map((each) => settingSentence(key, each));
  if (!isRecord(value)) return [settingSentence(key, value)];
  return Object.entries(value).flatMap(([inner, each]) => narrowingSentences(`${key}.${inner}`, each));
}

function settingSentence(key: string, value: unknown): string {
  const name = key === "permissions.allow" ? "allows" : `sets ${key} to`;
  const text = typeof value === "string" ? value : canonicalJson(value);
  return `${name} ${key === "permissions.allow" ? plainEntry(text) : text}`;
}

function hookSentence({ event, matcher, handler }: HookRule): string {
  return `runs at ${event}${matcher === undefined ? "" : ` (${matcher})`}: ${hookText(handler)}`;
}

/** Another vendor's program decides about its own tools. */
function runnerSentences(runner: AgentDefinition["runner"]): readonly string[] {
  if (runner === undefined) return [];
  const { command, env = [], unguarded } = runner;
  return [
    `is run by ${command.map(shellWord).join(" ")}`,
    ...env.map((name) => `gives its runner the variable ${name}`),
    ...(unguarded === true ? ["has a runner that starts although rules cannot be enforced on it"] : []),
  ];
}

/** Hooks that may refuse something are missed when they are gone. */
function guardSentences(hooks: readonly HookRule[]): readonly string[] {
  return hooks
    .filter(({ event }) => isGuardEvent(event))
    .map(({ event, matcher, handler }) => `is guarded at ${event} (${matcher ?? "*"}): ${hookText(handler)}`);
}

/** An entry of a list of tools under the name that the tool has now. */
function plainEntry(text: string): string {
  const parsed = parseToolEntry(text);
  if (parsed.type === "malformed") return text.trim();
  const meaning = resolveToolName(parsed.name);
  const name = meaning.type === "known" || meaning.type === "renamed" ? meaning.name : parsed.name;
  return parsed.type === "scoped" ? `${name}(${parsed.specifier})` : name;
}

/** Line endings, spaces at the ends of lines and empty lines around a text say nothing to a model. */
function plainText(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[ \t]+$/gm, "")
    .trim();
}

function plainWords(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

function listed(key: "not" | "mcpServers", values: readonly unknown[]): Partial<LockedRights> {
  return values.length === 0 ? {} : { [key]: values };
}

function sentences({
  may,
  mayNot,
}: Required<Pick<LockedRights, "may" | "mayNot">>): Pick<LockedRights, "may" | "mayNot"> {
  return {
    ...(may.length === 0 ? {} : { may: sorted(may) }),
    ...(mayNot.length === 0 ? {} : { mayNot: sorted(mayNot) }),
  };
}

function limitsOf(values: Readonly<Record<string, unknown>>): Pick<LockedRights, "limits"> {
  const numbers = Object.entries(values).filter(
    (pair): pair is [string, number] => typeof pair[1] === "number",
  );
  return numbers.length === 0 ? {} : { limits: Object.fromEntries(numbers.sort()) };
}

function programsOf({
  programs = {},
  executable,
}: PartSource): Pick<LockedRights, "programs" | "executable"> {
  const entries = Object.entries(programs);
  if (entries.length === 0) return {};
  return {
    programs: Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))),
    ...(executable === undefined ? {} : { executable }),
  };
}

function entry(
  kind: LockKind,
  name: string,
  { file, text }: PartSource,
  {
    meaning,
    rights,
    prompt,
  }: { readonly meaning: unknown; readonly rights: LockedRights; readonly prompt?: string },
): LockEntry {
  // What a file runs is part of what it means.
  const whole = rights.programs === undefined ? meaning : [meaning, rights.programs];
  return {
    kind,
    name,
    file,
    text: hashOf(text),
    meaning: hashOf(canonicalJson(whole)),
    ...(prompt === undefined ? {} : { prompt: hashOf(prompt) }),
    rights,
  };
}
