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

export interface AliasSources {
  /** The process environment, or the part of it that a caller wants heard. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Aliases from settings: a name and what it means. New names are allowed. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** The shipped table with what settings say laid over it, and what the environment says over that. */
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

/** An empty value says nothing, and neither does an alias that is said to be itself. */
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
