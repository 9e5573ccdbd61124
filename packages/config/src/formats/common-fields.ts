import { isDeepStrictEqual } from "node:util";
import { hasErrors } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import { refuseAgentName } from "../agents/refuse-agent-name.ts";
import { mcpServerPart } from "../mcp/mcp-tool-name.ts";
import type { ForeignFields } from "./field-reader.ts";
import { type FormatId, formatFacts } from "./format-facts.ts";
import type {
  PortableAgent,
  PortableMode,
  PortableModel,
  PortableReading,
  PortableTool,
  ToolClass,
} from "./portable-agent.ts";
import type { SourceFields, SourceRefusal } from "./read-fenced.ts";
import { plainClasses, type ToolWords } from "./tool-words.ts";

/** An agent without anything but what each format must fill in. */
export function emptyAgent(
  format: FormatId,
  file: string | undefined,
): Omit<PortableAgent, "id" | "description" | "prompt"> {
  return { tools: "all", deny: [], limits: {}, origin: { file, format }, rest: {} };
}

/** What a reader made of one agent; an error among its problems leaves the agent out. */
export function oneAgent(
  agent: PortableAgent,
  {
    fields,
    taker,
    places,
  }: {
    readonly fields: Pick<SourceFields, "locate" | "diagnostics">;
    readonly taker: ForeignFields;
    /** The key in the file of a field whose name differs from ours. */
    readonly places: Readonly<Record<string, string>>;
  },
): PortableReading {
  const diagnostics = [...fields.diagnostics, ...taker.diagnostics];
  if (hasErrors(diagnostics)) return { agents: [], diagnostics };
  const placeOf = ([key, ...deeper]: readonly (string | number)[]) =>
    fields.locate([
      Object.hasOwn(places, String(key)) ? (places[String(key)] ?? "") : (key ?? ""),
      ...deeper,
    ]);
  return { agents: [{ agent, placeOf }], diagnostics };
}

/**
 * Of an agent with a list of tools, the servers whose tools are in it: there a server brings none into the list, while a definition
 * here would get all of them.
 */
export function withListedServers(agent: PortableAgent, taker: ForeignFields, key: string): PortableAgent {
  const { tools, mcp } = agent;
  if (tools === "all" || mcp === undefined) return agent;
  const isListed = (name: string): boolean =>
    tools.some(
      ({ class: kind, server = "*" }) =>
        kind === "mcp" && (matchesPattern(server, name) || mcpServerPart(server) === mcpServerPart(name)),
    );
  const listed = mcp.filter(({ name }) => isListed(name));
  for (const { name } of mcp)
    if (!isListed(name))
      taker.loses(
        "mcp-dropped",
        `The list of tools contains no tool of the server ${quote(name)}, so the server was left out.`,
        key,
      );
  return { ...agent, mcp: listed.length === 0 ? undefined : listed };
}

export function refusedReading({ refused }: SourceRefusal): PortableReading {
  return { agents: [], diagnostics: refused };
}

export function baseName(relative: string, ending: RegExp): string {
  return (relative.split("/").at(-1) ?? relative).replace(ending, "");
}

/** Lower-case letters, digits and hyphens, which every product takes. */
export function slug(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^[-_]+|[-_]+$/g, "");
  return plain === "" ? "agent" : plain;
}

/** The name of an agent here: as it is written where that can be used, and a plain form of it else. */
export function usableName(name: string): string {
  return refuseAgentName(name) === undefined ? name : slug(name);
}

/** The name of its file, without an ending: one part of a path, whatever the agent is called. */
export function fileStem({ id }: PortableAgent): string {
  return id.includes("/") ? slug(id) : usableName(id);
}

export function needsText(taker: ForeignFields, key: string, format: FormatId): string {
  const text = taker.text(key);
  if (text === undefined)
    taker.report(
      "error",
      key === "description" ? "no-description" : "no-name",
      `${formatFacts[format].title} needs \`${key}\`, which is missing; the agent is not loaded.`,
      key,
    );
  return text ?? "";
}

const tierWords: ReadonlySet<string> = new Set([
  "sonnet",
  "opus",
  "haiku",
  "fable",
  "fast",
  "flash",
  "pro",
  "auto",
]);

/** `inherit` and nothing mean the parent's. */
export function modelOf(text: string | undefined, words: FormatId): PortableModel | undefined {
  if (text === undefined || text.toLowerCase() === "inherit") return undefined;
  return { type: tierWords.has(text.toLowerCase()) ? "tier" : "exact", value: text, words };
}

/** The name of a model where the format knows it; never a guess. */
export function modelWord(agent: PortableAgent, format: FormatId, accepts?: RegExp): string | undefined {
  const { model } = agent;
  if (model === undefined) return undefined;
  if (formatFacts[model.words].source === formatFacts[format].source) return model.value;
  return model.type === "exact" && accepts?.test(model.value) === true ? model.value : undefined;
}

const modes: readonly (readonly [PermissionMode, PortableMode])[] = [
  ["default", "ask"],
  ["acceptEdits", "edit"],
  ["plan", "plan"],
  ["bypassPermissions", "full"],
  ["dontAsk", "refuse"],
  ["auto", "auto"],
];

export function portableMode(mode: PermissionMode | undefined): PortableMode | undefined {
  if (mode === "delegate") return "ask";
  return modes.find(([ours]) => ours === mode)?.[1];
}

export function permissionMode(mode: PortableMode | undefined): PermissionMode | undefined {
  return modes.find(([, portable]) => portable === mode)?.[0];
}

/** Fields that only its own product understands go back into a file of that product. */
export function restOf(agent: PortableAgent, format: FormatId): (readonly [string, unknown])[] {
  return formatFacts[agent.origin.format].source === formatFacts[format].source
    ? Object.entries(agent.rest)
    : [];
}

/** Whether a class is there at all, and whole. */
export function hasClass(agent: PortableAgent, kind: ToolClass): "no" | "part" | "whole" {
  const isDenied = agent.deny.some(
    (tool) => tool.class === kind && tool.pattern === undefined && tool.server === undefined,
  );
  if (isDenied) return "no";
  const isPartDenied = agent.deny.some((tool) => tool.class === kind);
  if (agent.tools === "all") return isPartDenied ? "part" : "whole";
  const own = agent.tools.filter((tool) => tool.class === kind);
  if (own.length === 0) return "no";
  return isPartDenied || own.every((tool) => tool.pattern !== undefined) ? "part" : "whole";
}

/**
 * The words of a product that only has a list of what is allowed. What is denied is left out of the list; part of a tool
 * that the product cannot divide becomes the whole tool, which the comparison of rights then finds.
 */
export function allowedWords(
  agent: PortableAgent,
  format: FormatId,
  words: ToolWords,
): readonly string[] | undefined {
  if (agent.tools === "all" && agent.deny.length === 0) return undefined;
  const every: readonly PortableTool[] = [
    ...plainClasses.map((kind): PortableTool => ({ class: kind, raw: kind })),
    { class: "mcp", raw: "mcp__*" },
  ];
  const listed = [...(agent.tools === "all" ? every : agent.tools), ...toolsOfServers(agent)];
  const kept = listed.filter((tool) => !isTakenAway(tool, agent.deny));
  const isSame = formatFacts[agent.origin.format].source === formatFacts[format].source;
  const isWhole = (raw: string): boolean =>
    words
      .read(raw)
      .every((meant) =>
        kept.some((tool) => tool.raw === raw && isDeepStrictEqual(tool, { ...tool, ...meant })),
      );
  // What was read in the words of this product can be finer than the word that is written for others.
  const wordOf = (tool: PortableTool) =>
    isSame && agent.tools !== "all" && isWhole(tool.raw) ? tool.raw : words.write(tool);
  return [...new Set(kept.flatMap((tool) => wordOf(tool) ?? []))];
}

/** Servers of the agent that its list does not name: here they bring their tools along, elsewhere the list has to. */
export function toolsOfServers({ tools, mcp = [] }: PortableAgent): readonly PortableTool[] {
  const isNamed = (name: string): boolean =>
    tools !== "all" && tools.some((tool) => tool.class === "mcp" && tool.server === name);
  return mcp.flatMap((server): readonly PortableTool[] => {
    const { name } = server;
    if (isNamed(name)) return [];
    const whole: PortableTool = { class: "mcp", server: name, raw: name };
    if (server.type === "inline") return [whole];
    if (tools === "all") return [];
    return server.tools?.map((tool) => ({ ...whole, tool, raw: tool })) ?? [whole];
  });
}

/** A denial of some calls or tools leaves the rest there. A server of which something is denied is left out whole. */
function isTakenAway(tool: PortableTool, deny: readonly PortableTool[]): boolean {
  return deny.some((denied) => {
    if (denied.class !== tool.class) return false;
    if (tool.class !== "mcp") return denied.pattern === undefined;
    return denied.server === undefined || tool.server === undefined || denied.server === tool.server;
  });
}
