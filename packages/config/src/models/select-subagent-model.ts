import { type Check, checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";

/** A model that can be asked. Without a provider it is the one that serves by default. */
export interface ChosenModel {
  readonly id: string;
  readonly provider?: string | undefined;
}

/** Where a model was named. */
export type ModelOrigin =
  | "call"
  | "definition"
  | "subagent-variable"
  | "parent"
  | "flag"
  | "variable"
  | "settings"
  | "default";

interface ModelMention {
  readonly origin: ModelOrigin;
  readonly written: string;
}

export interface ModelSelection {
  readonly model: ChosenModel;
  readonly origin: ModelOrigin;
  /** The text that named it. */
  readonly written: string;
  /** What was named too and did not count. */
  readonly overrode: readonly ModelMention[];
  /** What was named first but cannot be understood. */
  readonly unclear: readonly (ModelMention & { readonly why: string; readonly nearest?: string })[];
}

interface SelectOptions {
  readonly aliases?: AliasTable;
  /** Whether the agent is in plan mode. */
  readonly isPlanning?: boolean;
}

interface SubagentMentions extends SelectOptions {
  readonly call?: string | undefined;
  readonly definition?: string | undefined;
  /** CLAUDE_CODE_SUBAGENT_MODEL; leave it out for agents it does not apply to. */
  readonly variable?: string | undefined;
  /** CLAUDE_CODE_SUBAGENT_MODEL_FORCE: calls and definitions are ignored. */
  readonly isForced?: boolean;
  readonly parent: ChosenModel;
}

/** Which model a child runs on: the call's, else the definition's unless it inherits, else the variable's, else the parent's. */
export function selectSubagentModel(mentions: SubagentMentions): ModelSelection {
  const { call, definition, variable, parent } = mentions;
  const own: readonly Mention[] = [
    { origin: "call", written: call, mayMeanParent: true },
    { origin: "definition", written: definition, mayMeanParent: true },
  ];
  const all: readonly Mention[] = [
    ...(mentions.isForced === true ? [] : own),
    { origin: "subagent-variable", written: variable },
  ];
  const last = {
    origin: "parent",
    written: parent.provider === undefined ? parent.id : `${parent.provider}/${parent.id}`,
    model: parent,
  } as const;
  return select(all, last, mentions, parent);
}

interface MainMentions extends SelectOptions {
  readonly flag?: string | undefined;
  /** The model of the definition the main agent runs as. */
  readonly definition?: string | undefined;
  /** ANTHROPIC_MODEL. */
  readonly variable?: string | undefined;
  readonly settings?: string | undefined;
}

/** Which model the main agent runs on: `--model`, else its definition's, ANTHROPIC_MODEL, settings, the alias `default`. */
export function selectMainModel(mentions: MainMentions): ModelSelection {
  const { flag, definition, variable, settings } = mentions;
  const aliases = mentions.aliases ?? shippedAliases;
  const usual = resolve("default", { ...mentions, aliases });
  const model = "id" in usual ? usual : { id: String(shippedAliases.get("sonnet")) };
  return select(
    [
      { origin: "flag", written: flag },
      { origin: "definition", written: definition },
      { origin: "variable", written: variable },
      { origin: "settings", written: settings },
    ],
    { origin: "default", written: "default", model },
    mentions,
  );
}

interface Mention {
  readonly origin: ModelOrigin;
  readonly written: string | undefined;
  /** Whether an alias of the parent's family means exactly the parent's model. */
  readonly mayMeanParent?: boolean;
}

interface LastResort extends ModelMention {
  readonly model: ChosenModel;
}

function select(
  mentions: readonly Mention[],
  last: LastResort,
  options: SelectOptions,
  parent?: ChosenModel,
): ModelSelection {
  const unclear: (ModelMention & { why: string; nearest?: string })[] = [];
  const overrode: ModelMention[] = [];
  let chosen: LastResort | undefined;
  for (const { origin, written, mayMeanParent } of mentions) {
    if (written === undefined || written.trim() === "") continue;
    if (chosen !== undefined) {
      overrode.push({ origin, written });
      continue;
    }
    const found = resolve(written, options, mayMeanParent === true ? parent : undefined);
    if ("id" in found) chosen = { origin, written, model: found };
    else if (found.type === "unclear") unclear.push({ origin, written, ...found.reason });
  }
  const { model, origin, written } = chosen ?? last;
  return {
    model,
    origin,
    written,
    overrode: overrode.filter((mention) => mention.written.trim().toLowerCase() !== "inherit"),
    unclear,
  };
}

type Resolution =
  | ChosenModel
  | { readonly type: "inherit" }
  | { readonly type: "unclear"; readonly reason: { readonly why: string; readonly nearest?: string } };

function resolve(written: string, options: SelectOptions, parent?: ChosenModel): Resolution {
  const aliases = options.aliases ?? shippedAliases;
  const reference = parseModelReference(written, aliases);
  const resolved = resolveModelReference(reference, { ...options, aliases });
  if (resolved.type === "inherit") return resolved;
  if (resolved.type === "unclear") {
    const nearest = resolved.nearest === undefined ? {} : { nearest: resolved.nearest };
    return { type: "unclear", reason: { why: resolved.why, ...nearest } };
  }
  const model = {
    id: resolved.id,
    provider: resolved.provider,
  };
  return (parent === undefined ? undefined : parentOfFamily(reference, model, parent)) ?? model;
}

/** `sonnet` below an agent that runs on claude-sonnet-4-6[1m] is that model, not the table's current one. */
function parentOfFamily(
  reference: ModelReference,
  model: ChosenModel,
  parent: ChosenModel,
): ChosenModel | undefined {
  if (reference.type !== "alias" || model.provider !== parent.provider) return undefined;
  const isFamily = (id: string): boolean =>
    id
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .includes(reference.alias);
  if (!isFamily(model.id) || !isFamily(parent.id)) return undefined;
  if (reference.suffix === undefined) return parent;
  return { ...parent, id: parent.id.replace(/\[[^[\]]*\]$/, "") + reference.suffix };
}

/** What a `model` field names, before anything is looked up. */
export type ModelReference =
  | { readonly type: "inherit" }
  | { readonly type: "alias"; readonly alias: string; readonly suffix?: string }
  /** `nearest` is an alias the text is a letter or two away from. */
  | { readonly type: "id"; readonly id: string; readonly nearest?: string }
  | { readonly type: "provider"; readonly provider: string; readonly model: string }
  | { readonly type: "unclear"; readonly why: string; readonly nearest?: string };

/** The model to ask. Without a provider it is the one that serves by default. */
type ResolvedModel =
  | { readonly type: "inherit" }
  | { readonly type: "model"; readonly id: string; readonly provider?: string }
  | { readonly type: "unclear"; readonly why: string; readonly nearest?: string };

const aliasMap: Check = (value) => (value instanceof Map ? undefined : "must be a Map of aliases");

/** Reads a `model` field. A text that could be an id is one: which ids exist, only the provider knows. */
export function parseModelReference(text: string, aliases: AliasTable = shippedAliases): ModelReference {
  checkArgument("The first argument of parseModelReference()", checks.text, text);
  checkArgument("The second argument of parseModelReference()", aliasMap, aliases);
  const written = text.trim();
  if (written.toLowerCase() === "inherit") return { type: "inherit" };
  // Never an id of a provider: what is sent to it must not leave the machine.
  if (written.toLowerCase() === "offline") return { type: "provider", provider: "offline", model: "offline" };
  const alias = readAlias(written, aliases);
  if (alias !== undefined) return alias;
  const why = whyUnclear(written);
  if (why !== undefined) return { type: "unclear", why, ...nearestFamily(written, aliases) };
  const slash = written.indexOf("/");
  if (slash === -1 || written.startsWith("arn:"))
    return { type: "id", id: written, ...nearMiss(written, aliases) };
  const provider = written.slice(0, slash);
  const model = written.slice(slash + 1);
  if (model === "" || !/^[A-Za-z][\w.-]*$/.test(provider)) {
    return { type: "unclear", why: `"${shorten(written)}" is not of the form provider/model` };
  }
  return { type: "provider", provider: provider.toLowerCase(), model };
}

interface ResolveOptions {
  readonly aliases?: AliasTable;
  /** Whether the agent is in plan mode; some aliases differ there. */
  readonly isPlanning?: boolean;
}

/** Follows aliases until a model is reached. A full id passes through unchanged. */
export function resolveModelReference(
  reference: ModelReference,
  options: ResolveOptions = {},
): ResolvedModel {
  const aliases = options.aliases ?? shippedAliases;
  const seen = new Set<string>();
  let current = reference;
  let suffix = "";
  while (current.type === "alias") {
    suffix ||= current.suffix ?? "";
    const target = aliases.get(current.alias);
    if (target === undefined || seen.has(current.alias)) {
      const isMissing = target === undefined;
      const why = isMissing
        ? `there is no model alias "${current.alias}"`
        : `the model alias "${current.alias}" refers to itself; make it name a model id`;
      return { type: "unclear", why };
    }
    seen.add(current.alias);
    const next = typeof target === "string" ? target : target[options.isPlanning ? "planning" : "otherwise"];
    current = parseModelReference(next, aliases);
  }
  switch (current.type) {
    case "id":
      return { type: "model", id: withSuffix(current.id, suffix) };
    case "provider":
      return { type: "model", id: withSuffix(current.model, suffix), provider: current.provider };
    default:
      return current;
  }
}

function readAlias(written: string, aliases: AliasTable): ModelReference | undefined {
  const [, name = "", suffix] = /^([^[\]]*)(\[[^[\]]*\])?$/.exec(written.toLowerCase()) ?? [];
  if (!aliases.has(name)) return undefined;
  return { type: "alias", alias: name, suffix };
}

function whyUnclear(written: string): string | undefined {
  const shown = `"${shorten(written)}"`;
  if (written === "") return "the text is empty";
  if (/[|,]/.test(written)) return `${shown} offers several models; name one`;
  if (/[{}<>$]/.test(written)) return `${shown} looks like a placeholder that was not filled in`;
  if (/\s/.test(written)) return `${shown} contains spaces, so it cannot be a model alias or id`;
  return undefined;
}

/** "Claude Sonnet 4" surely means one family; a text with two of them means nothing for sure. */
function nearestFamily(written: string, aliases: AliasTable): { nearest?: string } {
  const words = new Set(
    written
      .slice(0, 500)
      .toLowerCase()
      .split(/[^a-z0-9]+/),
  );
  const named = [...aliases.keys()].filter((alias) => words.has(alias));
  return named.length === 1 && named[0] !== undefined ? { nearest: named[0] } : {};
}

function nearMiss(written: string, aliases: AliasTable): { nearest?: string } {
  if (!/^[A-Za-z]+$/.test(written)) return {};
  const nearest = nearestName(written, [...aliases.keys(), "inherit"]);
  return nearest === undefined ? {} : { nearest };
}

function withSuffix(id: string, suffix: string): string {
  return suffix === "" || id.endsWith(suffix) ? id : `${id}${suffix}`;
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** What an alias means: a model id, another alias, or one of two by whether the agent is planning. */
export type AliasTarget = string | { readonly planning: string; readonly otherwise: string };

export type AliasTable = ReadonlyMap<string, AliasTarget>;

/** The table as shipped. Ids change with every model release: settings and environment override each line. */
export const shippedAliases: AliasTable = new Map<string, AliasTarget>([
  ["sonnet", "claude-sonnet-5"],
  ["opus", "claude-opus-5"],
  ["haiku", "claude-haiku-5-5"],
  ["fable", "claude-fable-5"],
  ["default", "sonnet"],
  ["best", "opus"],
  ["opusplan", { planning: "opus", otherwise: "sonnet" }],
]);

interface AliasSources {
  /** The process environment, or the part of it that a caller wants applied. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Aliases from settings: a name and what it means. New names are allowed. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** The shipped table with the entries of settings laid over it, and those of the environment over that. */
export function aliasTable({ environment = {}, settings = {} }: AliasSources = {}): AliasTable {
  const table = new Map(shippedAliases);
  for (const [name, target] of Object.entries(settings)) {
    override(table, name.trim().toLowerCase(), target);
  }
  for (const [variable, alias] of aliasVariables) {
    if (Object.hasOwn(environment, variable)) override(table, alias, environment[variable]);
  }
  return table;
}

/** An empty value means nothing, and neither does an alias that is defined as itself. */
function override(table: Map<string, AliasTarget>, alias: string, target: unknown): void {
  if (typeof target !== "string" || alias === "" || alias === "inherit") return;
  const text = target.trim();
  if (text !== "" && text.toLowerCase() !== alias) table.set(alias, text);
}

const aliasVariables: readonly (readonly [string, string])[] = [
  ["ANTHROPIC_DEFAULT_SONNET_MODEL", "sonnet"],
  ["ANTHROPIC_DEFAULT_OPUS_MODEL", "opus"],
  ["ANTHROPIC_DEFAULT_HAIKU_MODEL", "haiku"],
  ["ANTHROPIC_DEFAULT_FABLE_MODEL", "fable"],
  ["ANTHROPIC_DEFAULT_MODEL", "default"],
];

/** Which models settings let agents use; an absent list limits nothing. */
export interface ModelLimits {
  readonly available?: readonly string[];
  readonly denied?: readonly string[];
}

/** Why a model may not be used, or undefined. An entry is an id, an alias, `provider/model`, or one with stars. */
export function refuseModel(
  model: ChosenModel,
  { available, denied }: ModelLimits,
  aliases: AliasTable,
): string | undefined {
  const name = model.provider === undefined ? model.id : `${model.provider}/${model.id}`;
  const names = (entry: string): boolean => isNamed(model, entry.trim(), aliases);
  if (denied?.some(names)) return `Settings do not allow the model ${name} (deniedModels).`;
  if (available === undefined || available.some(names)) return undefined;
  return `Settings do not list the model ${name} (availableModels: ${available.join(", ")}).`;
}

function isNamed({ id, provider }: ChosenModel, entry: string, aliases: AliasTable): boolean {
  const own = [id, ...(provider === undefined ? [] : [`${provider}/${id}`])].map((name) =>
    name.toLowerCase(),
  );
  if (own.some((name) => matchesPattern(entry.toLowerCase(), name))) return true;
  const resolved = resolveModelReference(parseModelReference(entry, aliases), { aliases });
  return resolved.type === "model" && resolved.id === id && resolved.provider === provider;
}
