// @io
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { findRealPath } from "@retinue/base/foundation/find-real-path.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import type { AgentDefinition } from "../agents/agent-definition.ts";
import { mayWiden } from "../agents/agent-source.ts";
import type { Paths } from "../settings/paths.ts";
import { loadDecidedBeginning } from "./find-instruction-files.ts";
import { type MemoryPlace, memoryDirectoryName, memoryFile } from "./memory-place.ts";
import { beginningOf, type MemoryAbsence, type MemoryBeginning, memoryText } from "./memory-text.ts";

export interface MemoryRequest {
  readonly definition: Pick<AgentDefinition, "name" | "memory" | "source">;
  readonly paths: Pick<Paths, "agentMemory" | "projectRoot">;
  /** Whether the person trusts the files of the project. */
  readonly trusted: boolean;
  /** As `autoMemoryEnabled` and CLAUDE_CODE_DISABLE_AUTO_MEMORY say. */
  readonly disabled?: boolean;
}

/** Neither: the agent has no memory, or it is switched off. */
interface FoundMemory {
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
  if (scope === "user" && !mayWiden(source, trusted)) return { diagnostic: untrusted(definition) };
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
    advice: "Make it an ordinary folder, or remove it; it is created when it is needed.",
  };
}

export interface LoadedMemory {
  /** Absent when the agent has no memory. */
  readonly place?: MemoryPlace;
  /** For the system prompt. */
  readonly text?: string;
  readonly diagnostics: readonly Diagnostic[];
}

export interface LoadMemoryRequest extends MemoryRequest {
  /** Whether rules let the index be read. */
  readonly mayLoad?: MayLoad;
}

/** Finds an agent's memory and reads the beginning of its index. Changes nothing, never throws. */
export async function loadMemory(request: LoadMemoryRequest): Promise<LoadedMemory> {
  const { place, diagnostic } = await findMemory(request);
  if (place === undefined) return { diagnostics: diagnostic === undefined ? [] : [diagnostic] };
  const found = await loadIndex(place, request.mayLoad);
  if (found === "denied")
    return { place, text: memoryText(place, { reason: deniedReason }), diagnostics: [denied(place)] };
  const isUnusable = typeof found === "object" && "reason" in found;
  return {
    place,
    text: memoryText(place, found),
    diagnostics: isUnusable ? [unreadable(place, found.reason)] : [],
  };
}

/** More than is ever shown, so that the lines left out of a file of usual size can be counted. */
const maxRead = 256 * 1024;

async function loadIndex(
  { directory }: MemoryPlace,
  mayLoad: MayLoad | undefined,
): Promise<MemoryBeginning | MemoryAbsence | "denied"> {
  try {
    const written = join(directory, memoryFile);
    const path = await realpath(written);
    if (!path.startsWith(directory + sep)) return { reason: "it is a link that leads out of the directory" };
    if (mayLoad !== undefined && !((await mayLoad(written)) && (await mayLoad(path)))) return "denied";
    const { stats, content } = await loadDecidedBeginning(path, maxRead);
    if (content === undefined) return { reason: "it is not a regular file" };
    if (content.includes(0)) return { reason: "it is not a string" };
    return beginningOf(withoutByteOrderMark(content.toString("utf8")), {
      totalBytes: Math.max(stats.size, content.length),
      isWhole: content.length < maxRead,
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "EREPLACED") return { reason: "it was replaced while it was read" };
    return code === "ENOENT" ? "missing" : { reason: `it cannot be read (${code})` };
  }
}

const deniedReason = "a rule forbids reading it";

function denied({ directory }: MemoryPlace): Diagnostic {
  const file = join(directory, memoryFile);
  return {
    severity: "warning",
    code: "memory-denied",
    message: `A rule forbids reading ${file}; it is not shown to the agent.`,
    advice: "Change the rule; `retinue permissions list` shows where it is.",
    file,
  };
}

function unreadable({ directory }: MemoryPlace, reason: string): Diagnostic {
  const file = join(directory, memoryFile);
  return {
    severity: "warning",
    code: "memory-unreadable",
    message: `${file} is not shown to the agent: ${reason}.`,
    advice: "Make it an ordinary text file, or remove it.",
    file,
  };
}
