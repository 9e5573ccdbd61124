import { realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { withoutByteOrderMark } from "../foundation/source-text.ts";
import type { MayLoad } from "../permissions/gather-read-rights.ts";
import { findMemory, type MemoryRequest } from "./find-memory.ts";
import { loadDecidedBeginning } from "./load-beginning.ts";
import { beginningOf, type MemoryAbsence, type MemoryBeginning, memoryText } from "./memory.ts";
import { type MemoryPlace, memoryFile } from "./memory-place.ts";

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
  const isUnusable = typeof found === "object" && "because" in found;
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
    if (content.includes(0)) return { reason: "it is not a text" };
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

const deniedReason = "a rule forbids to read it";

function denied({ directory }: MemoryPlace): Diagnostic {
  const file = join(directory, memoryFile);
  return {
    severity: "warning",
    code: "memory-denied",
    message: `A rule forbids to read ${file}; it is not shown to the agent.`,
    advice: "Change the rule; `retinue permissions list` shows where it stands.",
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
