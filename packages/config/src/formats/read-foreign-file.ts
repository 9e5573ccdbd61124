// @io
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import type { AgentScope } from "../agents/agent-source.ts";
import type { ParsedAgent } from "../agents/parse-agent-definition.ts";
import { agentFormats } from "./agent-formats.ts";
import { definitionOf } from "./definition-of.ts";
import type { FormatId } from "./format-facts.ts";
import type { PortableReading } from "./portable-agent.ts";
import { largestSource } from "./read-fenced.ts";

interface ForeignPlace {
  readonly scope: AgentScope;
  readonly path: string;
  readonly format?: FormatId | undefined;
  readonly within?: string | undefined;
}

/** The definitions in a file of another product, with what it says that means nothing here. */
export function readForeignFile(text: string, file: string, place: ForeignPlace): readonly ParsedAgent[] {
  const { agents, diagnostics } = readPortableFile(text, file, place);
  return [{ diagnostics }, ...agents.map((agent) => definitionOf(agent, place))];
}

/** The agents in a file, in the form between formats. */
export function readPortableFile(
  text: string,
  file: string,
  { path, format = "claude", within = dirname(file) }: Omit<ForeignPlace, "scope">,
): PortableReading {
  const below = relative(path, file).split(sep).join("/");
  const named = below === "" || below.startsWith("..") ? (file.split(sep).at(-1) ?? file) : below;
  return agentFormats[format].read(text, {
    file,
    relative: named,
    include: (name) => includedText(resolve(dirname(file), name), within),
  });
}

/** Only what lies within the folder itself, wherever links lead: a file must not bring somebody else's text to a model. */
function includedText(path: string, within: string): string | undefined {
  try {
    const real = realpathSync(path);
    const root = realpathSync(within);
    const isInside = real.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
    if (!isInside || statSync(real).size > largestSource) return undefined;
    return readFileSync(real, "utf8");
  } catch {
    return undefined;
  }
}
