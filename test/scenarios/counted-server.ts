import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "vitest";
import { projectRoot } from "../project-files.ts";

const require = createRequire(import.meta.url);

/** Written out, so that the one that looks for unused packages finds them. */
const manifests = {
  "server-everything": () => require.resolve("@modelcontextprotocol/server-everything/package.json"),
  "server-filesystem": () => require.resolve("@modelcontextprotocol/server-filesystem/package.json"),
  "server-memory": () => require.resolve("@modelcontextprotocol/server-memory/package.json"),
} as const;

/** A real server from npm that notes each of its starts. */
export interface CountedServer {
  readonly config: { readonly command: string; readonly args: readonly string[] };
  /** The process ids of all starts so far. */
  starts(): readonly number[];
  /** Those of them that still run. */
  left(): readonly number[];
  /** Waits until none of the processes it ever had is left. */
  gone(): Promise<void>;
}

export function countedServer(
  folder: string,
  name: keyof typeof manifests = "server-everything",
  ...args: readonly string[]
): CountedServer {
  const record = join(folder, `starts-${randomUUID()}`);
  const program = join(manifests[name](), "../dist/index.js");
  const wrapper = join(projectRoot, "test/fixtures/mcp/counted-server.mjs");
  const starts = () =>
    existsSync(record) ? readFileSync(record, "utf8").trim().split("\n").filter(Boolean).map(Number) : [];
  const left = () => starts().filter((pid) => isAlive(pid, record));
  return {
    config: { command: process.execPath, args: [wrapper, record, program, ...args] },
    starts,
    left,
    gone: () => expect.poll(left, { timeout: 20_000 }).toEqual([]),
  };
}

/** Numbers are given again, so the process must also hold the mark in its command line. */
function isAlive(pid: number, mark: string): boolean {
  try {
    process.kill(pid, 0);
    const isOurs = readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(mark);
    return isOurs && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Processes whose command line holds the text. */
export function processesWith(mark: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(mark) ? [`${pid} ${line}`] : [];
      } catch {
        return [];
      }
    });
}
