import { realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Problem } from "../foundation/problem.ts";
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
  readonly problems: readonly Problem[];
}

export interface LoadMemoryRequest extends MemoryRequest {
  /** Whether rules let the index be read. */
  readonly mayLoad?: MayLoad;
}

/** Finds an agent's memory and reads the beginning of its index. Changes nothing, never throws. */
export async function loadMemory(request: LoadMemoryRequest): Promise<LoadedMemory> {
  const { place, problem } = await findMemory(request);
  if (place === undefined) return { problems: problem === undefined ? [] : [problem] };
  const found = await loadIndex(place, request.mayLoad);
  if (found === "denied")
    return { place, text: memoryText(place, { because: deniedBecause }), problems: [denied(place)] };
  const isUnusable = typeof found === "object" && "because" in found;
  return {
    place,
    text: memoryText(place, found),
    problems: isUnusable ? [unreadable(place, found.because)] : [],
  };
}

/** More than is ever shown, so that the lines left out of a file of usual size can be counted. */
const mostRead = 256 * 1024;

async function loadIndex(
  { directory }: MemoryPlace,
  mayLoad: MayLoad | undefined,
): Promise<MemoryBeginning | MemoryAbsence | "denied"> {
  try {
    const written = join(directory, memoryFile);
    const path = await realpath(written);
    if (!path.startsWith(directory + sep)) return { because: "it is a link that leads out of the directory" };
    if (mayLoad !== undefined && !((await mayLoad(written)) && (await mayLoad(path)))) return "denied";
    const { stats, content } = await loadDecidedBeginning(path, mostRead);
    if (content === undefined) return { because: "it is not a regular file" };
    if (content.includes(0)) return { because: "it is not a text" };
    return beginningOf(withoutByteOrderMark(content.toString("utf8")), {
      totalBytes: Math.max(stats.size, content.length),
      isWhole: content.length < mostRead,
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "EREPLACED") return { because: "it was replaced while it was read" };
    return code === "ENOENT" ? "missing" : { because: `it cannot be read (${code})` };
  }
}

const deniedBecause = "a rule forbids to read it";

function denied({ directory }: MemoryPlace): Problem {
  const file = join(directory, memoryFile);
  return {
    severity: "warning",
    code: "memory-denied",
    message: `A rule forbids to read ${file}; it is not shown to the agent.`,
    advice: "Change the rule; `retinue permissions list` shows where it stands.",
    file,
  };
}

function unreadable({ directory }: MemoryPlace, because: string): Problem {
  const file = join(directory, memoryFile);
  return {
    severity: "warning",
    code: "memory-unreadable",
    message: `${file} is not shown to the agent: ${because}.`,
    advice: "Make it an ordinary text file, or remove it.",
    file,
  };
}
