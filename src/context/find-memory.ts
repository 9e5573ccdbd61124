import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { Paths } from "../settings/paths.ts";
import { findRealPath } from "../tools/find-real-path.ts";
import { type MemoryPlace, memoryDirectoryName } from "./memory-place.ts";

export interface MemoryRequest {
  readonly definition: Pick<AgentDefinition, "name" | "memory" | "source">;
  readonly paths: Pick<Paths, "agentMemory" | "projectRoot">;
  /** Whether the person trusts the files of the project. */
  readonly trusted: boolean;
  /** As `autoMemoryEnabled` and CLAUDE_CODE_DISABLE_AUTO_MEMORY say. */
  readonly disabled?: boolean;
}

/** Neither: the agent has no memory, or it is switched off. */
export interface FoundMemory {
  readonly place?: MemoryPlace;
  readonly diagnostic?: Diagnostic;
}

/** Finds an agent's memory directory, which need not exist yet. Changes nothing, never throws. */
export async function findMemory({
  definition,
  paths,
  trusted,
  disabled,
}: MemoryRequest): Promise<FoundMemory> {
  const { memory: scope, source } = definition;
  if (scope === undefined || disabled === true) return {};
  // What it writes there is read in every other project.
  if (scope === "user" && source.scope === "project" && !trusted) return { diagnostic: untrusted(definition) };
  const written = join(paths.agentMemory[scope], memoryDirectoryName(definition));
  try {
    const root = scope === "user" ? await findRealPath(dirname(written)) : await rootIn(paths, scope);
    const directory = join(root, basename(written));
    const real = await findRealPath(directory);
    if (real !== directory) return { diagnostic: unusable(directory, `a link leads from it to ${real}`) };
    const stats = await lstat(directory).catch(() => undefined);
    if (stats !== undefined && !stats.isDirectory())
      return { diagnostic: unusable(directory, "it is not a folder") };
    return { place: { scope, directory } };
  } catch (error) {
    return { diagnostic: unusable(written, error instanceof Error ? error.message : String(error)) };
  }
}

/** A repository can hold links, so below its root none is followed; a person's own may lie behind some. */
async function rootIn(
  { projectRoot, agentMemory }: MemoryRequest["paths"],
  scope: "project" | "local",
): Promise<string> {
  return join(await realpath(projectRoot), ".claude", basename(agentMemory[scope]));
}

function untrusted({ name }: MemoryRequest["definition"]): Diagnostic {
  return {
    severity: "warning",
    code: "memory-untrusted",
    message: `The agent ${JSON.stringify(name)} of this project asks for memory that all projects share, and the folder is not trusted; it has no memory.`,
    advice: "Trust the folder, or write `memory: project` or `memory: local`.",
  };
}

function unusable(directory: string, reason: string): Diagnostic {
  return {
    severity: "warning",
    code: "memory-unusable",
    message: `The memory directory ${directory} cannot be used: ${reason}. The agent has no memory.`,
    advice: "Make it an ordinary folder, or remove it: it is made when it is needed.",
  };
}
