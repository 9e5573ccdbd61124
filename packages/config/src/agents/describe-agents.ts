import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { escapeLines } from "@retinue/base/foundation/escape-control-tags.ts";
import type { AgentDefinition } from "./agent-definition.ts";

export interface DescribeAgentsOptions {
  /** For the whole text. Names and tools are never cut, so many agents can still pass it. */
  readonly maxCharacters?: number | undefined;
}

export interface AgentsDescription {
  /** One line per agent, in the order given. */
  readonly text: string;
  /** The agents whose description was cut to keep to `maxCharacters`. */
  readonly shortened: readonly string[];
}

interface Line {
  readonly name: string;
  readonly description: string;
  readonly ending: string;
}

const note = "(Long descriptions are shortened here; a shortened one ends in …)";

/** The text that shows a model which agents there are and when to use which. */
export function describeAgents(
  agents: readonly AgentDefinition[],
  options: DescribeAgentsOptions = {},
): AgentsDescription {
  checkArgument("The first argument of describeAgents()", checks.listOf(checks.thing, "agents"), agents);
  checkArgument("The options of describeAgents()", checks.shape({ maxCharacters: checks.amount }), options);
  const lines = withPlainTexts(agents).map(lineOf);
  const text = lines.map(printLine).join("\n");
  const { maxCharacters = Number.POSITIVE_INFINITY } = options;
  if (text.length <= maxCharacters) return { text, shortened: [] };

  const bare = lines.map((line) => printLine({ ...line, description: "" })).join("\n");
  const limit = commonLimit(
    lines.map((line) => line.description.length),
    maxCharacters - bare.length - note.length - 1,
  );
  const cut = lines.map((line) => ({ ...line, description: shorten(line.description, limit) }));
  const shortened = lines.filter((line) => line.description.length > limit).map((line) => line.name);
  if (shortened.length === 0) return { text, shortened };
  return { text: [...cut.map(printLine), note].join("\n"), shortened };
}

/** `All tools`, `All tools except …`, the list, or `None`. */
export function toolsPhrase({ tools, disallowedTools = [] }: ToolLists): string {
  const denied = escapeLines(disallowedTools);
  return phraseOf({ disallowedTools: denied, tools: tools === undefined ? undefined : escapeLines(tools) });
}

type ToolLists = Pick<AgentDefinition, "tools" | "disallowedTools">;

/** The same for lists whose entries can be shown. */
function phraseOf({ tools, disallowedTools = [] }: ToolLists): string {
  const denied = disallowedTools.filter((entry) => entry !== "");
  if (denied.includes("*")) return "None";
  const listed = tools?.filter((entry) => entry !== "");
  if (listed === undefined || listed.includes("*")) {
    return denied.length === 0 ? "All tools" : `All tools except ${denied.join(", ")}`;
  }
  const kept = listed.filter((entry) => !denied.includes(toolName(entry)) && !denied.includes(entry));
  if (kept.length === 0) return "None";
  const names = kept.map(toolName);
  const narrowed = denied.filter((entry) => entry.includes("(") && names.includes(toolName(entry)));
  return `${kept.join(", ")}${narrowed.length === 0 ? "" : ` except ${narrowed.join(", ")}`}`;
}

/** At most `limit` characters, cut between words where one is near, never inside a character. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  if (limit < 1) return "";
  const head = text.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/, "");
  const space = head.lastIndexOf(" ");
  const words = space > head.length * 0.7 ? head.slice(0, space) : head;
  return `${words.trimEnd()}…`;
}

/** What is shown of an agent, as it can be shown. */
interface PlainAgent extends ToolLists {
  readonly name: string;
  readonly description: string;
  readonly forkContext: boolean;
}

function withPlainTexts(agents: readonly AgentDefinition[]): readonly PlainAgent[] {
  const idOf = ({ source, name }: AgentDefinition): string => source.id ?? name;
  const texts = [
    ...new Set(
      agents.flatMap((agent) => [
        idOf(agent),
        agent.description,
        ...(agent.tools ?? []),
        ...(agent.disallowedTools ?? []),
      ]),
    ),
  ];
  const plain = escapeLines(texts);
  const byText = new Map(texts.map((text, at) => [text, plain[at] ?? ""]));
  const shown = (text: string): string => byText.get(text) ?? "";
  return agents.map((agent) => ({
    name: shown(idOf(agent)),
    description: shown(agent.description),
    forkContext: agent.forkContext === true,
    tools: agent.tools?.map(shown),
    disallowedTools: agent.disallowedTools?.map(shown),
  }));
}

function lineOf(agent: PlainAgent): Line {
  const sees = agent.forkContext ? "; sees the conversation so far" : "";
  return {
    name: agent.name,
    description: agent.description,
    ending: `(Tools: ${phraseOf(agent)}${sees})`,
  };
}

function printLine({ name, description, ending }: Line): string {
  return description === "" ? `- ${name}: ${ending}` : `- ${name}: ${description} ${ending}`;
}

function toolName(entry: string): string {
  const open = entry.indexOf("(");
  return open === -1 ? entry : entry.slice(0, open).trim();
}

/** The length to which the longest texts are cut, all to the same, so that the sum fits. */
function commonLimit(lengths: readonly number[], budget: number): number {
  const ascending = [...lengths].sort((a, b) => a - b);
  let left = budget;
  for (const [index, length] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index)) - 1;
    if (length > share) return Math.max(0, share);
    left -= length + 1;
  }
  return Number.POSITIVE_INFINITY;
}
