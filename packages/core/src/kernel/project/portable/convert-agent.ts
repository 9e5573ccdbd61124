import { isDeepStrictEqual } from "node:util";
import { agentFormats } from "@retinue/config/formats/agent-formats.ts";
import { definitionOf } from "@retinue/config/formats/definition-of.ts";
import { type FormatId, formatFacts } from "@retinue/config/formats/format-facts.ts";
import type { LossCode, PortableAgent, ReadAgent } from "@retinue/config/formats/portable-agent.ts";
import {
  type AgentRights,
  findWidenings,
  type RightsRow,
  rightsOf,
  rightsTable,
  type Widening,
} from "../../../planning/agent-rights.ts";

export interface Loss {
  readonly code: LossCode;
  readonly message: string;
}

/** What became of one agent, with what it may do before and after. */
export interface Conversion {
  readonly name: string;
  readonly from: FormatId;
  readonly to: FormatId;
  readonly file?: string;
  /** Its file below the folder of the format. */
  readonly target: string;
  readonly text: string;
  readonly rights: readonly RightsRow[];
  readonly mode: { readonly before: AgentRights["mode"]; readonly after: AgentRights["mode"] };
  readonly widenings: readonly Widening[];
  readonly losses: readonly Loss[];
  /** What was written is no agent for the target: why. */
  readonly unreadable?: string;
}

/**
 * Writes an agent in another format, reads the text as that product would, and compares: what no longer exists is a
 * loss, and what was not there before is a right that was not given.
 */
export function convertAgent(
  { agent: given, placeOf }: ReadAgent,
  to: FormatId,
  { allowWider = false, text }: { readonly allowWider?: boolean; readonly text?: string } = {},
): Conversion {
  // Most products need a description; here such an agent has this one.
  const agent =
    given.description === "" && given.origin.format !== to
      ? { ...given, description: `The agent ${given.id}.` }
      : given;
  const format = agentFormats[to];
  const target = format.fileName(agent);
  const isSame = agent.origin.format === to && text !== undefined;
  const written = isSame ? text : format.write(agent);
  const reading = isSame ? undefined : agentFormats[to].read(written, { file: target, relative: target });
  const again = isSame ? agent : reading?.agents[0]?.agent;
  const refusal = reading?.diagnostics.find(({ severity }) => severity === "error");
  const { before, after } = bothRights({ agent, placeOf }, again);
  const widenings = isSame ? [] : findWidenings(before, after);
  const losses = isSame
    ? []
    : [...lossesOf(agent, again, { before, after, widenings }), ...sizeLosses(agent, to)];
  const note = allowWider && widenings.length > 0 ? noteOf(agent, widenings) : undefined;
  return {
    name: agent.id,
    from: agent.origin.format,
    to,
    file: agent.origin.file,
    target,
    text: note === undefined ? written : format.write(agent, note),
    rights: rightsTable(before, after),
    mode: { before: before.mode, after: after.mode },
    widenings,
    losses,
    ...(again === undefined ? { unreadable: refusal?.message ?? "it holds no agent" } : {}),
  };
}

/** What its own product would do with the file: what that ignores is no restriction. */
function asReadBack(agent: PortableAgent): PortableAgent {
  return { ...agent, ...agent.there };
}

const nowhere = (): undefined => undefined;
const nothing = { tools: [] };

function bothRights(
  source: ReadAgent,
  again: PortableAgent | undefined,
): { readonly before: AgentRights; readonly after: AgentRights } {
  const first = definitionOf(source, { scope: "user" }).definition ?? nothing;
  const second =
    again === undefined
      ? nothing
      : (definitionOf({ agent: asReadBack(again), placeOf: nowhere }, { scope: "user" }).definition ??
        nothing);
  return { before: rightsOf(first, [second]), after: rightsOf(second, [first]) };
}

/** Rights of two agents that are written already, each as its own product gives them. */
export function compareAgents(
  one: ReadAgent,
  other: ReadAgent,
): Pick<Conversion, "rights" | "mode" | "widenings" | "losses"> {
  const theirs = asReadBack(other.agent);
  const { before, after } = bothRights({ ...one, agent: asReadBack(one.agent) }, theirs);
  const widenings = findWidenings(before, after);
  return {
    rights: rightsTable(before, after),
    mode: { before: before.mode, after: after.mode },
    widenings,
    losses: lossesOf(one.agent, other.agent, { before, after, widenings }),
  };
}

interface Compared {
  readonly before: AgentRights;
  readonly after: AgentRights;
  readonly widenings: readonly Widening[];
}

function lossesOf(
  agent: PortableAgent,
  again: PortableAgent | undefined,
  compared: Compared,
): readonly Loss[] {
  const { widenings } = compared;
  const losses: Loss[] = [];
  const lose = (code: LossCode, message: string): void => {
    losses.push({ code, message });
  };
  if (widenings.length > 0)
    lose(
      "rights-widened",
      `The agent could do more than before: ${widenings.map(({ text }) => text).join("; ")}.`,
    );
  if (again === undefined)
    return [...losses, { code: "field-dropped", message: "The converted file cannot be read back." }];
  losses.push(...toolLosses(agent, again, compared));
  const mode = asReadBack(again).mode;
  if ((agent.mode ?? "ask") !== (mode ?? "ask"))
    lose(
      "mode-dropped",
      `The mode ${agent.mode ?? "of the session"} becomes ${mode ?? "that of the session"}.`,
    );
  if (agent.hooks !== undefined && !isDeepStrictEqual(agent.hooks, again.hooks))
    lose("hooks-dropped", "Hooks of the agent are lost.");
  const limits = Object.entries(agent.limits).filter(
    ([key, value]) => value !== undefined && again.limits[key as keyof PortableAgent["limits"]] !== value,
  );
  if (limits.length > 0)
    lose("limits-dropped", `Limits are lost: ${limits.map(([key, value]) => `${key} ${value}`).join(", ")}.`);
  if (agent.mcp !== undefined && !isDeepStrictEqual(agent.mcp, again.mcp))
    lose("mcp-dropped", `Servers are lost: ${agent.mcp.map(({ name }) => name).join(", ")}.`);
  if (agent.model !== undefined && agent.model.value !== again.model?.value)
    lose(
      "model-dropped",
      `The model ${agent.model.value} has no known name there; the parent's model is used.`,
    );
  if (agent.memory !== undefined && agent.memory !== again.memory)
    lose("memory-dropped", `The memory of scope ${agent.memory} is lost.`);
  if (agent.isolation !== undefined && agent.isolation !== again.isolation)
    lose("isolation-dropped", `The isolation ${agent.isolation} is lost.`);
  if (agent.id !== again.id) lose("name-changed", `The name ${agent.id} becomes ${again.id}.`);
  if (agent.description !== again.description) lose("description-cut", "The description is cut.");
  if (agent.prompt !== again.prompt) lose("field-dropped", "The prompt is changed.");
  const others = [
    ...(["effort", "background", "color", "displayName"] as const).filter(
      (key) => agent[key] !== undefined && agent[key] !== again[key],
    ),
    ...(agent.skills !== undefined &&
    agent.skills.length > 0 &&
    !isDeepStrictEqual(agent.skills, again.skills)
      ? ["skills"]
      : []),
    ...Object.keys(agent.rest).filter((key) => !isDeepStrictEqual(agent.rest[key], again.rest[key])),
  ];
  for (const key of others) lose("field-dropped", `\`${key}\` is lost.`);
  return losses;
}

function toolLosses(
  agent: PortableAgent,
  again: PortableAgent,
  { before, after, widenings }: Compared,
): readonly Loss[] {
  const losses: Loss[] = [];
  const rows = rightsTable(before, after);
  const wider = widenings.filter(({ class: kind }) => kind !== "mode" && kind !== "hooks");
  const there = asReadBack(again);
  if (
    wider.length > 0 &&
    there.tools === "all" &&
    (agent.tools !== "all" || there.deny.length < agent.deny.length)
  )
    losses.push({ code: "tools-not-expressible", message: "The target has no list of tools." });
  const changed = rows.filter((row) => row.before !== row.after && row.class !== "todo");
  if (wider.length > 0 && there.tools !== "all")
    losses.push({
      code: "tools-coarser",
      message: `The target can only grant these tools together: ${[...new Set(wider.map(({ class: kind }) => kind))].join(", ")}.`,
    });
  else if (wider.length === 0 && changed.length > 0)
    losses.push({
      code: "tools-coarser",
      message: `The agent can do less than before: ${changed.map(({ class: kind }) => kind).join(", ")}.`,
    });
  const patterns = (tools: PortableAgent["tools"]) =>
    tools === "all" ? [] : tools.flatMap(({ pattern }) => pattern ?? []);
  const lostPatterns = [...new Set([...patterns(agent.tools), ...patterns(agent.deny)])].filter(
    (pattern) => ![...patterns(there.tools), ...patterns(there.deny)].includes(pattern),
  );
  if (lostPatterns.length > 0)
    losses.push({ code: "pattern-dropped", message: `Patterns are lost: ${lostPatterns.join(", ")}.` });
  const gone = agent.deny.filter(
    (tool) =>
      !there.deny.some(
        (other) =>
          other.class === tool.class &&
          other.pattern === tool.pattern &&
          other.server === tool.server &&
          other.tool === tool.tool,
      ),
  );
  const isStillDenied = gone.every(
    (tool) => tool.class !== "other" && rows.find((row) => row.class === tool.class)?.after === "none",
  );
  if (gone.length > 0 && !isStillDenied)
    losses.push({
      code: "deny-dropped",
      message: `Denials are lost: ${gone.map(({ raw }) => raw).join(", ")}.`,
    });
  const unknown = (agent.tools === "all" ? [] : agent.tools).filter((tool) => tool.class === "other");
  const lostWords = unknown.filter(
    ({ raw }) => there.tools === "all" || !there.tools.some((tool) => tool.raw === raw),
  );
  if (lostWords.length > 0)
    losses.push({
      code: "tools-not-expressible",
      message: `The target has no equivalent for ${lostWords.map(({ raw }) => raw).join(", ")}.`,
    });
  return losses;
}

function sizeLosses({ prompt }: PortableAgent, to: FormatId): readonly Loss[] {
  const { promptAtMost } = agentFormats[to];
  if (promptAtMost === undefined || prompt.length <= promptAtMost) return [];
  return [
    {
      code: "prompt-too-long",
      message: `The prompt has ${prompt.length} characters; ${formatFacts[to].title} takes ${promptAtMost}.`,
    },
  ];
}

function noteOf({ origin }: PortableAgent, widenings: readonly Widening[]): string {
  const what = widenings.map(({ text }) => text.replace(/[\r\n]+/g, " ")).join("; ");
  return `rights-widened: this agent can do more than the ${formatFacts[origin.format].title} file it was made from: ${what}`;
}
