// @io
import { readFileSync, type Stats, statSync } from "node:fs";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { AgentDefinition, AgentScope } from "./agent-definition.ts";
import { findAgentFiles, unreadable } from "./find-agent-files.ts";
import {
  largestDefinition,
  type ParsedAgent,
  parseAgentDefinition,
  refuseLargeFile,
} from "./parse-agent-definition.ts";

/** A folder or file that holds agents of one scope. */
export interface AgentPlace {
  readonly scope: AgentScope;
  readonly path: string;
  readonly plugin?: string;
  /** The id of an agent in this place, where it is not its bare name. */
  readonly idOf?: (file: string, name: string) => string;
}

export interface LoadedAgents {
  /** In the order of the places, which is the order of precedence within a scope. */
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** Every file looked at, also those that define nothing. */
  readonly files: readonly string[];
}

export interface AgentFileLoader {
  load(places: readonly AgentPlace[]): Promise<LoadedAgents>;
}

interface CachedFile {
  readonly stamp: string;
  readonly parsed: ParsedAgent;
}

/** Let other work of the host continue while thousands of files are read. */
const filesPerSlice = 128;

/** Reads agent files and keeps what it parsed, so that the next load only reads what changed on disk. */
export function createAgentFileLoader(): AgentFileLoader {
  let cache = new Map<string, CachedFile>();
  return {
    async load(places) {
      const fresh = new Map<string, CachedFile>();
      const definitions: AgentDefinition[] = [];
      const diagnostics: Diagnostic[] = [];
      const files: string[] = [];
      for (const place of places) {
        const found = findAgentFiles(place.path);
        diagnostics.push(...found.diagnostics);
        for (const file of found.files) {
          if (files.length > 0 && files.length % filesPerSlice === 0) await nextTick();
          files.push(file);
          const { parsed } = readCached(file, place, cache, fresh);
          diagnostics.push(...parsed.diagnostics);
          if (parsed.definition !== undefined) definitions.push(withId(parsed.definition, file, place));
        }
      }
      cache = fresh;
      return { definitions, diagnostics, files };
    },
  };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function withId(definition: AgentDefinition, file: string, place: AgentPlace): AgentDefinition {
  if (place.idOf === undefined) return definition;
  return { ...definition, source: { ...definition.source, id: place.idOf(file, definition.name) } };
}

function readCached(
  file: string,
  place: AgentPlace,
  cache: ReadonlyMap<string, CachedFile>,
  fresh: Map<string, CachedFile>,
): CachedFile {
  const key = `${place.scope}\0${place.plugin ?? ""}\0${file}`;
  const stats = statsOf(file);
  const stamp = stats === undefined ? "gone" : `${stats.mtimeMs} ${stats.ctimeMs} ${stats.size} ${stats.ino}`;
  const known = cache.get(key);
  const entry = known?.stamp === stamp ? known : { stamp, parsed: parseFile(file, place, stats?.size ?? 0) };
  fresh.set(key, entry);
  return entry;
}

/** A file that vanished or may not be looked at is reported when it is read. */
function statsOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

function parseFile(file: string, place: AgentPlace, size: number): ParsedAgent {
  const { scope, plugin } = place;
  if (size > largestDefinition) return refuseLargeFile(file);
  try {
    const text = readFileSync(file, "utf8");
    return parseAgentDefinition(text, { file, scope, ...(plugin === undefined ? {} : { plugin }) });
  } catch (error) {
    return { diagnostics: [unreadable(file, error)] };
  }
}
