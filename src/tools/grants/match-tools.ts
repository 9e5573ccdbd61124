import { matchesPattern } from "../../foundation/match-pattern.ts";
import { nearestName } from "../../foundation/nearest-name.ts";
import type { ToolEffect } from "../../foundation/tool-table.ts";
import { type McpIdentity, mcpServerPart, mcpToolPattern } from "../../permissions/mcp-identity.ts";
import type { Tool } from "../tool.ts";
import { knownToolNames, resolveToolName, type ToolNameMeaning } from "./resolve-tool-name.ts";

/** A tool that a run could be given, before its definition narrows it. */
export interface AvailableTool {
  readonly name: string;
  readonly effect: ToolEffect;
  readonly origin: "builtin" | "mcp" | "program";
  readonly server?: string;
  /** It works on child agents, so only those who can start some have it. */
  readonly needsChildren?: true;
  /** It belongs to a team: a lead has it, and members get it with their membership. */
  readonly forTeams?: true;
  /** The pair as rules know it; its tool is whole where the name had to be shortened. */
  readonly mcp?: McpIdentity;
}

export function availableTool({ name, effect, origin, mcp }: Tool): AvailableTool {
  if (mcp === undefined) return { name, effect, origin };
  return { name, effect, origin, server: mcp.serverName, mcp: { server: mcp.server, tool: mcp.tool } };
}

export interface ToolMatch {
  readonly tools: readonly AvailableTool[];
  readonly meaning: ToolNameMeaning;
}

/** The available tools that a name from a file means: the literal name first, then today's name for an old one. */
export function matchTools(name: string, available: readonly AvailableTool[]): ToolMatch {
  const literal = available.filter((tool) => tool.name === name);
  if (literal.length > 0) return { tools: literal, meaning: { type: "known", name } };
  const meaning = resolveToolName(name);
  if (meaning.type === "mcp") return { tools: available.filter((tool) => isMcpMatch(name, tool)), meaning };
  if (name.includes("*")) return matchToolPattern(name, available);
  if (meaning.type === "known" || meaning.type === "renamed") {
    return { tools: available.filter((tool) => tool.name === meaning.name), meaning };
  }
  return matchLetterCase(name, available, meaning);
}

function matchToolPattern(name: string, available: readonly AvailableTool[]): ToolMatch {
  const exact = available.filter((tool) => matchesPattern(name, tool.name));
  const lower = name.toLowerCase();
  const tools =
    exact.length > 0 ? exact : available.filter((tool) => matchesPattern(lower, tool.name.toLowerCase()));
  return { tools, meaning: tools.length > 0 || name === "*" ? { type: "known", name } : { type: "unknown" } };
}

function matchLetterCase(
  name: string,
  available: readonly AvailableTool[],
  meaning: ToolNameMeaning,
): ToolMatch {
  const lower = name.toLowerCase();
  const tools = available.filter((tool) => tool.name.toLowerCase() === lower);
  const first = tools[0];
  if (first !== undefined) {
    return { tools, meaning: { type: "renamed", name: first.name, reason: "letter-case" } };
  }
  if (meaning.type !== "unknown") return { tools: [], meaning };
  const nearest = nearestName(name, [...available.map((tool) => tool.name), ...knownToolNames()]);
  return { tools: [], meaning: { type: "unknown", ...(nearest === undefined ? {} : { nearest }) } };
}

/** `mcp__server` and `mcp__server__*` mean the whole server; stars may also mean a part of a name. */
function isMcpMatch(entry: string, tool: AvailableTool): boolean {
  if (tool.origin !== "mcp") return false;
  if (matchesPattern(entry, tool.name) || namesPair(entry, tool)) return true;
  // Where the server is known, the name of another that begins alike is not taken for it.
  if (tool.server === undefined || entry.includes("*")) {
    if (matchesPattern(`${entry}__*`, tool.name)) return true;
  }
  return tool.server !== undefined && serverEntries(tool.server).includes(entry);
}

/** Servers are named freely, tools are not: what a tool name cannot hold becomes an underscore. */
function serverEntries(server: string): readonly string[] {
  const spelled = `mcp__${mcpServerPart(server)}`;
  return [spelled, `${spelled}__*`, `mcp__${server}`, `mcp__${server}__*`];
}

/** One tool of one server, as they are configured or as names spell them. */
function namesPair(entry: string, { mcp }: AvailableTool): boolean {
  const rest = entry.slice("mcp__".length);
  const end = rest.indexOf("__");
  if (mcp === undefined || end === -1 || mcpServerPart(rest.slice(0, end)) !== mcp.server) return false;
  return matchesPattern(mcpToolPattern(rest.slice(end + 2)), mcp.tool);
}
