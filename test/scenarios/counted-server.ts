import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "vitest";
import { projectRoot } from "../project-files.ts";

const require = createRequire(import.meta.url);

/** Packages are written out, so that the one that looks for unused ones finds them. */
const programs = {
  small: () => join(projectRoot, "test/fixtures/mcp/small-server.mjs"),
  "server-everything": () => inPackage("@modelcontextprotocol/server-everything/package.json"),
  "server-filesystem": () => inPackage("@modelcontextprotocol/server-filesystem/package.json"),
  "server-memory": () => inPackage("@modelcontextprotocol/server-memory/package.json"),
} as const;

function inPackage(manifest: string): string {
  return join(require.resolve(manifest), "../dist/index.js");
}

/** A server that notes each of its starts: a small one, or one from npm, which takes ten times as long to start. */
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
  name: keyof typeof programs = "small",
  ...args: readonly string[]
): CountedServer {
  const record = join(folder, `starts-${randomUUID()}`);
  const program = programs[name]();
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
