import type { Stats } from "node:fs";
import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Problem } from "../foundation/problem.ts";
import { withoutByteOrderMark } from "../foundation/source-text.ts";
import { findMemory, type MemoryRequest } from "./find-memory.ts";
import { beginningOf, type MemoryAbsence, type MemoryBeginning, memoryText } from "./memory.ts";
import { type MemoryPlace, memoryFile } from "./memory-place.ts";

export interface LoadedMemory {
  /** Absent when the agent has no memory. */
  readonly place?: MemoryPlace;
  /** For the system prompt. */
  readonly text?: string;
  readonly problems: readonly Problem[];
}

/** Finds an agent's memory and reads the beginning of its index. Changes nothing, never throws. */
export async function loadMemory(request: MemoryRequest): Promise<LoadedMemory> {
  const { place, problem } = await findMemory(request);
  if (place === undefined) return { problems: problem === undefined ? [] : [problem] };
  const found = await loadIndex(place);
  const isUnusable = typeof found === "object" && "because" in found;
  return {
    place,
    text: memoryText(place, found),
    problems: isUnusable ? [unreadable(place, found.because)] : [],
  };
}

/** More than is ever shown, so that the lines left out of a file of usual size can be counted. */
const mostRead = 256 * 1024;

async function loadIndex({ directory }: MemoryPlace): Promise<MemoryBeginning | MemoryAbsence> {
  try {
    const path = await realpath(join(directory, memoryFile));
    if (!path.startsWith(directory + sep)) return { because: "it is a link that leads out of the directory" };
    // Links were followed above; one that takes the file's place now is refused, and a pipe is not waited for.
    await using handle = await open(
      path,
      constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0),
    );
    const stats = await handle.stat();
    if (!stats.isFile()) return { because: "it is not a regular file" };
    if (!(await isStillThere(path, stats))) return { because: "it was replaced while it was read" };
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(mostRead), 0, mostRead, 0);
    const content = buffer.subarray(0, bytesRead);
    if (content.includes(0)) return { because: "it is not a text" };
    return beginningOf(withoutByteOrderMark(content.toString("utf8")), {
      totalBytes: Math.max(stats.size, bytesRead),
      isWhole: bytesRead < mostRead,
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return code === "ENOENT" ? "missing" : { because: `it cannot be read (${code})` };
  }
}

/** Whether what was opened is what the path still leads to without a link on the way. */
async function isStillThere(path: string, { ino, dev }: Stats): Promise<boolean> {
  const [real, now] = await Promise.all([realpath(path), stat(path)]);
  return real === path && now.ino === ino && now.dev === dev;
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
