import { spawn } from "node:child_process";
import { link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markers } from "./shell-program.ts";

/** A command that bash really started: the marker and its number. */
export type Started = string;

export interface Laboratory {
  /** Runs a program in an empty directory of its own, with nothing but the markers and a few tools to find. */
  readonly run: (program: string) => Promise<readonly Started[]>;
  readonly close: () => Promise<void>;
}

const tools = ["bash", "sh", "env", "timeout", "nice", "xargs", "find", "cat"];
const limitMs = 5_000;

export async function openLaboratory(): Promise<Laboratory> {
  const root = await mkdtemp(join(tmpdir(), "shell-fuzz-"));
  const toolbox = join(root, "tools");
  await mkdir(toolbox);
  for (const tool of tools) await symlink(await locate(tool), join(toolbox, tool));
  for (const [name, code] of [
    ["good", 0],
    ["bad", 1],
  ] as const) {
    const script = `#!/bin/sh\nprintf '%s %s\\000' "\${0##*/}" "$1" >> "\${0%/*}/../log"\nexit ${code}\n`;
    await writeFile(join(root, name), script, { mode: 0o755 });
  }
  let count = 0;
  return {
    run: async (program) => {
      count += 1;
      const place = join(root, String(count));
      await mkdir(join(place, "bin"), { recursive: true });
      await mkdir(join(place, "work"));
      for (const marker of markers)
        await link(join(root, marker === "mf" ? "bad" : "good"), join(place, "bin", marker));
      await runBash(program, join(place, "work"), `${join(place, "bin")}:${toolbox}`);
      const log = await readFile(join(place, "log"), "utf8").catch(() => "");
      await rm(place, { recursive: true, force: true });
      return [...new Set(log.split("\0").filter((record) => record !== ""))];
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}

async function locate(tool: string): Promise<string> {
  for (const folder of ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"]) {
    const path = join(folder, tool);
    const found = await readFile(path).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  throw new Error(`${tool} was not found; the shell fuzz needs the usual tools in /usr/bin or /bin`);
}

/** The whole group ends with the program or at the limit. */
function runBash(program: string, cwd: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/bash", ["--norc", "--noprofile", "-c", program], {
      cwd,
      env: { PATH: path, HOME: cwd, LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child.stdout.resume();
    child.stderr.resume();
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The group is gone already.
      }
    };
    const timer = setTimeout(end, limitMs);
    child.once("error", reject);
    child.once("close", () => {
      clearTimeout(timer);
      end();
      resolve();
    });
  });
}
