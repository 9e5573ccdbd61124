import { portableMode } from "./common-fields.ts";
import type { ForeignFields } from "./field-reader.ts";
import type { PortableAgent } from "./portable-agent.ts";
import { readOwnEntry, withOtherWords } from "./tool-words.ts";

type Restriction = "tools" | "disallowedTools" | "permissionMode";

/**
 * Fields of Claude Code that limit an agent and that this product does not read. Their author meant them, so they
 * hold here; what the product itself makes of the file is kept beside.
 */
export function holdRestrictions(
  agent: PortableAgent,
  taker: ForeignFields,
  { product, keys }: { readonly product: string; readonly keys: readonly Restriction[] },
): PortableAgent {
  const entriesOf = (key: Restriction) => (keys.includes(key) ? taker.entries(key) : undefined);
  const listed = entriesOf("tools");
  const denied = entriesOf("disallowedTools");
  const mode = keys.includes("permissionMode") ? narrowMode(taker) : undefined;
  if (listed !== undefined)
    taker.loses(
      "tools-not-expressible",
      `${product} ignores \`tools\` and gives the agent everything; here the list applies.`,
      "tools",
    );
  if (denied !== undefined)
    taker.loses(
      "deny-dropped",
      `${product} ignores \`disallowedTools\`; here it applies.`,
      "disallowedTools",
    );
  if (mode !== undefined)
    taker.loses("mode-dropped", `${product} ignores \`permissionMode\`; here it applies.`, "permissionMode");
  if (listed === undefined && denied === undefined && mode === undefined) return agent;
  const { tools, deny } = agent;
  const read = (entries: readonly string[]) => entries.map(readOwnEntry).flatMap(withOtherWords);
  return {
    ...agent,
    tools: listed === undefined || listed.includes("*") ? tools : read(listed),
    deny: [...deny, ...read(denied ?? [])],
    mode: mode ?? agent.mode,
    there: { tools, deny, mode: agent.mode },
  };
}

/** Only a mode that takes something away; one that would open something was never given. */
function narrowMode(taker: ForeignFields): PortableAgent["mode"] {
  const value = taker.peek("permissionMode");
  if (value !== "plan" && value !== "dontAsk") return undefined;
  taker.take("permissionMode");
  return portableMode(value);
}
