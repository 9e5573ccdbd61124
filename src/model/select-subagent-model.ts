import { type AliasTable, shippedAliases } from "./alias-table.ts";
import { type ModelReference, parseModelReference, resolveModelReference } from "./model-reference.ts";

/** A model that can be asked. Without a provider it is the one that serves by default. */
export interface ChosenModel {
  readonly id: string;
  readonly provider?: string;
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

export interface ModelMention {
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

export interface SubagentMentions extends SelectOptions {
  readonly call?: string | undefined;
  readonly definition?: string | undefined;
  /** CLAUDE_CODE_SUBAGENT_MODEL; leave it out for agents it does not speak for. */
  readonly variable?: string | undefined;
  /** CLAUDE_CODE_SUBAGENT_MODEL_FORCE: calls and definitions are not heard. */
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
  const last = { origin: "parent", written: writtenForm(parent), model: parent } as const;
  return select(all, last, mentions, parent);
}

export interface MainMentions extends SelectOptions {
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
  return { model, origin, written, overrode: overrode.filter((mention) => !isInherit(mention)), unclear };
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
    ...(resolved.provider === undefined ? {} : { provider: resolved.provider }),
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

function isInherit({ written }: ModelMention): boolean {
  return written.trim().toLowerCase() === "inherit";
}

function writtenForm({ id, provider }: ChosenModel): string {
  return provider === undefined ? id : `${provider}/${id}`;
}
