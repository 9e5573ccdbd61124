import { nearestName } from "../foundation/nearest-name.ts";
import { type AliasTable, shippedAliases } from "./alias-table.ts";

/** What a `model` field names, before anything is looked up. */
export type ModelReference =
  | { readonly type: "inherit" }
  | { readonly type: "alias"; readonly alias: string; readonly suffix?: string }
  /** `nearest` is an alias the text is a letter or two away from. */
  | { readonly type: "id"; readonly id: string; readonly nearest?: string }
  | { readonly type: "provider"; readonly provider: string; readonly model: string }
  | { readonly type: "unclear"; readonly why: string; readonly nearest?: string };

/** The model to ask. Without a provider it is the one that serves by default. */
export type ResolvedModel =
  | { readonly type: "inherit" }
  | { readonly type: "model"; readonly id: string; readonly provider?: string }
  | { readonly type: "unclear"; readonly why: string; readonly nearest?: string };

/** Reads a `model` field. A text that could be an id is one: which ids exist, only the provider knows. */
export function parseModelReference(text: string, aliases: AliasTable = shippedAliases): ModelReference {
  const written = text.trim();
  if (written.toLowerCase() === "inherit") return { type: "inherit" };
  // Never an id of a provider: what is said to it must not leave the machine.
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

export interface ResolveOptions {
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
    if (target === undefined || seen.has(current.alias)) return deadEnd(current.alias, target === undefined);
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
  return { type: "alias", alias: name, ...(suffix === undefined ? {} : { suffix }) };
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

function deadEnd(alias: string, isMissing: boolean): ResolvedModel {
  const why = isMissing
    ? `there is no model alias "${alias}"`
    : `the model alias "${alias}" leads back to itself; let it name a model id`;
  return { type: "unclear", why };
}

function withSuffix(id: string, suffix: string): string {
  return suffix === "" || id.endsWith(suffix) ? id : `${id}${suffix}`;
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
