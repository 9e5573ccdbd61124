import { invalid } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { toolEffects } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentInput } from "@retinue/config/agents/define-agent.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { type FiredEvent, firedHookEvents } from "@retinue/config/hooks/hook-input.ts";
import type { MergedSettings, SettingsSource } from "@retinue/config/settings/settings-layer.ts";
import { withEarlierNames } from "@retinue/gate/approver.ts";
import { repetitions } from "../../conversation/interrupted-agent.ts";
import type { HookFunction } from "../../hooks/run-handler.ts";
import type { LanguageModel } from "../../models/language-model.ts";
import type { Model } from "../../models/model.ts";
import type { ChildLimits } from "../../tasks/task-manager.ts";
import type { SessionPlace } from "../runtime-source.ts";
import { isModelObject } from "./check-options.ts";
import {
  type ModelInput,
  type RuntimeOptions,
  type RuntimeSetup,
  type SessionDefaults,
  type SessionOptions,
  type SessionSetup,
  sessionDefaults,
} from "./runtime-options.ts";

/** A tool as a program gives it, before it is brought into the shape of ours. */
export interface GivenTool {
  readonly name: string;
  readonly tool: Readonly<Record<string, unknown>>;
}

/** What is specified about tools: which built-in ones exist, and those of the program. */
export interface GivenTools {
  /** Absent: nothing is specified about them. */
  readonly names?: readonly string[] | "all";
  readonly objects: readonly GivenTool[];
}

export interface NormalizedRuntime {
  readonly setup: RuntimeSetup;
  readonly tools: GivenTools;
  readonly model: Model | LanguageModel | undefined;
  /** What sessions get that say nothing themselves. */
  readonly session: Pick<SessionSetup, "model" | "tools"> & SessionDefaults;
  readonly childLimits: Partial<ChildLimits>;
}

/** Takes options that were checked, and brings the shapes of other libraries into ours. */
export function normalizeRuntimeOptions(options: RuntimeOptions): NormalizedRuntime {
  const {
    store: _store,
    agents,
    tools,
    model,
    env,
    hooks,
    onWarning,
    concurrency,
    overflow,
    transcripts,
    settings,
    ...others
  } = options;
  const given = readTools(tools);
  const isDefault = (key: string): boolean => sessionDefaults.some((name) => name === key);
  const entries = Object.entries(others).filter(([, value]) => value !== undefined);
  // Which keys there are is what tells the two apart.
  const defaults = Object.fromEntries(entries.filter(([key]) => isDefault(key))) as SessionDefaults;
  const same = Object.fromEntries(entries.filter(([key]) => !isDefault(key))) as Omit<
    typeof others,
    keyof SessionDefaults
  >;
  return {
    setup: {
      ...same,
      ...(env === undefined ? {} : { environment: env }),
      ...(agents === undefined ? {} : { agents: readAgents(agents) }),
      ...(hooks === undefined ? {} : { hooks: readHooks(hooks) }),
      ...(onWarning === undefined ? {} : { notice: onWarning }),
      // Where they are asked for, the environment may still switch them off.
      ...(transcripts === true ? {} : { transcripts: transcripts ?? false }),
      ...(options.settingSources === undefined ? { restrictionsOnly: true } : {}),
      ...settingsOf(settings),
    },
    tools: given,
    model: typeof model === "string" ? undefined : model,
    session: {
      ...defaults,
      ...(typeof model === "string" ? { model } : {}),
      ...(given.names === undefined || given.names === "all" ? {} : { tools: given.names }),
    },
    childLimits: {
      maxRunning: concurrency,
      overflow,
    },
  };
}

function settingsOf(settings: RuntimeOptions["settings"]): Pick<RuntimeSetup, "settings" | "ownSettings"> {
  if (settings === undefined) return {};
  return typeof settings === "string"
    ? { settings }
    : { settings: JSON.stringify(settings), ownSettings: true };
}

export interface NormalizedSession<Output> {
  readonly setup: SessionSetup<Output>;
  readonly tools: readonly GivenTool[];
  /** What the session itself says; a name goes before a model of the runtime. */
  readonly model: ModelInput | undefined;
  readonly place: SessionPlace;
  /** Functions of the program for this session. */
  readonly functions: Pick<SessionOptions, "canUseTool" | "approver"> & {
    readonly hooks?: readonly HookFunction[];
  };
}

/** The options of a session, with the runtime's where it says nothing. */
export function normalizeSessionOptions<Output>(
  options: SessionOptions<Output>,
  usual: NormalizedRuntime["session"],
): NormalizedSession<Output> {
  const { model, tools, cwd, env, trusted, canUseTool, approver, hooks, ...same } = options;
  const { names, objects } = readTools(tools);
  const { model: defaultModel, tools: defaultTools, ...defaults } = usual;
  const chosen = model ?? defaultModel;
  const name = typeof chosen === "string" ? chosen : undefined;
  const listed = names === "all" ? undefined : (names ?? defaultTools);
  const given = Object.entries(same).filter(([, value]) => value !== undefined);
  return {
    place: { cwd, env, trusted },
    functions: {
      canUseTool,
      approver: approver === undefined ? undefined : withEarlierNames(approver),
      hooks: hooks === undefined ? undefined : readHooks(hooks),
    },
    setup: {
      ...defaults,
      ...(Object.fromEntries(given) as typeof same),
      ...(name === undefined ? {} : { model: name }),
      ...(listed === undefined ? {} : { tools: listed }),
    },
    tools: objects,
    model,
  };
}

/**
 * A list of names and tools, or tools by name. It is the whole list: built-in tools that it does not name do not exist, and
 * `default` names them all.
 */
function readTools(given: unknown): GivenTools {
  if (given === undefined) return { objects: [] };
  if (!Array.isArray(given)) {
    if (!isRecord(given)) throw invalid("The option tools must be a list of tools and names, or an object.");
    return { names: [], objects: Object.entries(given).map(([name, tool]) => readTool(tool, name)) };
  }
  const names = given.filter((entry): entry is string => typeof entry === "string");
  const objects = given.filter((entry) => typeof entry !== "string").map((tool) => readTool(tool));
  return { names: names.includes("default") ? "all" : names, objects };
}

function readTool(tool: unknown, key?: string): GivenTool {
  if (!isRecord(tool))
    throw invalid(
      `A tool in the option tools must be an object with a name and a call, but is ${quote(tool)}.`,
    );
  const name = typeof tool["name"] === "string" ? tool["name"] : key;
  if (name === undefined || name === "") throw invalid("A tool in the option tools has no name.");
  if (!callNames.some((method) => typeof tool[method] === "function"))
    throw invalid(`The tool ${quote(name)} has no function call(input, context).`);
  checkWord(name, tool, { key: "effect", words: toolEffects });
  checkWord(name, tool, { key: "repeats", words: repetitions });
  return { name, tool };
}

/** A word that means nothing would be taken for the strictest, without a report why a call is refused. */
function checkWord(
  tool: string,
  fields: Readonly<Record<string, unknown>>,
  { key, words }: { readonly key: string; readonly words: readonly string[] },
): void {
  const word = fields[key];
  if (word === undefined || words.some((known) => known === word)) return;
  const nearest = typeof word === "string" ? nearestName(word, words) : undefined;
  const hint = nearest === undefined ? "" : ` Did you mean ${quote(nearest)}?`;
  throw invalid(
    `The ${key} of the tool ${quote(tool)} must be one of ${words.join(", ")}, but is ${quote(word)}.${hint}`,
  );
}

/** What a tool's function is called here, in the AI SDK and in the Agent SDK. */
export const callNames = ["call", "execute", "handler"] as const;

function readAgents(given: NonNullable<RuntimeOptions["agents"]>): readonly (AgentDefinition | AgentInput)[] {
  const list: readonly unknown[] = Array.isArray(given)
    ? given
    : Object.entries(given).map(([name, agent]) => (isRecord(agent) ? { ...agent, name } : agent));
  for (const agent of list) {
    if (!isRecord(agent))
      throw invalid(
        `An agent in the option agents must be an object with name, description and prompt, but is ${quote(agent)}.`,
      );
    if (typeof agent["name"] !== "string") throw invalid("An agent in the option agents has no name.");
  }
  // What else is in it is checked by defineAgent, which names the field.
  return list as readonly (AgentDefinition | AgentInput)[];
}

function readHooks(given: NonNullable<RuntimeOptions["hooks"]>): readonly HookFunction[] {
  if (isHookList(given)) {
    for (const hook of given) checkHook(hook);
    return given;
  }
  return Object.entries(given).flatMap(([event, entries]) => {
    checkEvent(event);
    return (Array.isArray(entries) ? entries : [entries]).flatMap((entry) => readMatcher(event, entry));
  });
}

function isHookList(given: NonNullable<RuntimeOptions["hooks"]>): given is readonly HookFunction[] {
  return Array.isArray(given);
}

function checkHook(hook: unknown): void {
  if (!isRecord(hook))
    throw invalid(`A hook in the option hooks must be an object with event and run, but is ${quote(hook)}.`);
  checkEvent(hook["event"]);
  checkHookKeys(hook["event"], hook, ["event", "matcher", "name", "timeoutMs", "run"]);
  if (typeof hook["run"] !== "function")
    throw invalid(`A hook for ${quote(hook["event"])} has no function run(input, options).`);
  if (hook["matcher"] !== undefined && typeof hook["matcher"] !== "string")
    throw invalid(
      `The matcher of a hook for ${quote(hook["event"])} must be a string, but is ${quote(hook["matcher"])}.`,
    );
}

/** A key that means nothing here would leave a guard without its matcher or its limit. */
function checkHookKeys(
  event: string,
  hook: Readonly<Record<string, unknown>>,
  known: readonly string[],
): void {
  const key = Object.keys(hook).find((name) => !known.includes(name));
  if (key === undefined) return;
  const nearest = nearestName(key, known);
  const hint = nearest === undefined ? `The fields are ${known.join(", ")}.` : `Did you mean ${nearest}?`;
  throw invalid(`A hook for ${event} has no field ${quote(key)}. ${hint}`);
}

function checkEvent(event: unknown): asserts event is FiredEvent {
  const fired: readonly string[] = firedHookEvents;
  if (typeof event === "string" && fired.includes(event)) return;
  const nearest = typeof event === "string" ? nearestName(event, fired) : undefined;
  const hint = nearest === undefined ? `The events are ${fired.join(", ")}.` : `Did you mean ${nearest}?`;
  throw invalid(`${quote(event)} is not an event that hooks can handle. ${hint}`);
}

/** One entry under an event: a function, or functions with a matcher. */
function readMatcher(event: FiredEvent, entry: unknown): readonly HookFunction[] {
  const { matcher, hooks, timeout } =
    typeof entry === "function" ? { hooks: [entry] } : asRecord(event, entry);
  if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== "function"))
    throw invalid(`The hooks for ${event} must be functions, or { matcher, hooks: [functions] }.`);
  const pattern = readPattern(event, matcher);
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0))
    throw invalid(
      `The timeout of a hook for ${event} must be a number of seconds, but is ${quote(timeout)}.`,
    );
  return hooks.map((hook) => ({
    event,
    matcher: pattern,
    ...(typeof timeout === "number" ? { timeoutMs: timeout * 1000 } : {}),
    run: (input, options) => hook(input, input["tool_use_id"], options),
  }));
}

/** A matcher as text; a regular expression is taken by its source, which is what a matcher is. */
function readPattern(event: string, matcher: unknown): string | undefined {
  if (matcher === undefined || typeof matcher === "string") return matcher;
  if (matcher instanceof RegExp && matcher.flags === "") return matcher.source;
  const what = matcher instanceof RegExp ? "a regular expression with flags" : quote(matcher);
  throw invalid(`The matcher of a hook for ${event} must be text such as "Bash|Write", but is ${what}.`);
}

function asRecord(event: string, entry: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(entry)) {
    checkHookKeys(event, entry, ["matcher", "hooks", "timeout"]);
    return entry;
  }
  throw invalid(`The hooks for ${event} must be functions, or { matcher, hooks: [functions] }.`);
}

/** Whether the program wrote the model itself; any other object is one of the AI SDK. */
export function isOwnModel(model: Model | LanguageModel): model is Model {
  if (!isModelObject(model)) return false;
  return typeof Reflect.get(model, "stream") === "function" && isRecord(Reflect.get(model, "facts"));
}

/**
 * What is left of settings files for a program that did not ask for them by `settingSources`: what restricts it. What
 * would run something, set a variable or allow more, in files of the person or the project, does nothing, and of plugins
 * only those that the program named; those of the organisation and the program's own `settings` count.
 */
export function restrictionsOnly(discovered: DiscoveredAgents): DiscoveredAgents {
  const settings = { ...discovered.settings, settings: restrictionsOf(discovered.settings.settings) };
  const plugins = discovered.plugins.filter(({ origin }) => origin === "directory");
  return { ...discovered, settings, plugins };
}

function restrictionsOf(settings: MergedSettings): MergedSettings {
  const { defaultMode, ...permissions } = settings.permissions;
  const { apiKeyHelper, ...plain } = settings.plain;
  const countsAt = (name: string): boolean => {
    const source = settings.sources.get(name);
    return source !== undefined && counts(source);
  };
  return {
    ...settings,
    env: new Map([...settings.env].filter(([name]) => countsAt(`env.${name}`))),
    plain: {
      ...withoutAutoAllow({ ...settings, plain }),
      ...(apiKeyHelper !== undefined && countsAt("apiKeyHelper") ? { apiKeyHelper } : {}),
    },
    hooks: settings.hooks.filter(({ source }) => counts(source)),
    // What a program did not ask for is not missing.
    heldBack: settings.heldBack.filter(({ key, source }) => !key.startsWith("hooks.") || counts(source)),
    permissions: {
      ...permissions,
      allow: permissions.allow.filter(({ source }) => counts(source)),
      additionalDirectories: permissions.additionalDirectories.filter(({ source }) => counts(source)),
      ...(defaultMode !== undefined && countsAt("permissions.defaultMode") ? { defaultMode } : {}),
    },
  };
}

/** A sandbox that a file asks for protects; that its commands need no rule would allow more. */
function withoutAutoAllow({ plain, sources }: MergedSettings): MergedSettings["plain"] {
  const source = sources.get("sandbox.autoAllowBashIfSandboxed");
  if (source === undefined || counts(source)) return plain;
  return { ...plain, sandbox: { ...plain.sandbox, autoAllowBashIfSandboxed: false } };
}

function counts({ scope }: SettingsSource): boolean {
  return scope !== "user" && scope !== "project" && scope !== "local";
}
