import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markers } from "./shell-program.ts";

/** The arguments of one command that bash really started, its base name first. */
export type Started = readonly string[];

export interface Laboratory {
  readonly home: string;
  /** The folder programs start in; it holds the same files each time. */
  readonly work: string;
  /** Runs programs one after the other, each in a fresh folder, and returns what each one started. */
  readonly run: (programs: readonly string[]) => Promise<readonly (readonly Started[])[]>;
  readonly close: () => Promise<void>;
}

const tools = ["bash", "sh", "env", "timeout", "nice", "xargs", "find", "cat"];
/** Files that patterns can match; one of them looks like an option. */
const files = ["a.txt", "b.txt", "it's", "x y", "-n", ".hid", "sub/c.txt", "sub/d.md"];
export async function openLaboratory(): Promise<Laboratory> {
  const root = await mkdtemp(join(tmpdir(), "shell-fuzz-"));
  const toolbox = join(root, "tools");
  const bin = join(root, "bin");
  const work = join(root, "work");
  await mkdir(toolbox);
  await mkdir(bin);
  for (const tool of tools) await symlink(await locate(tool), join(toolbox, tool));
  for (const marker of markers) {
    const file = join(bin, marker);
    await writeFile(file, recorder(join(root, "log"), marker === "mf" ? 1 : 0));
    await chmod(file, 0o755);
  }
  await mkdir(join(root, "template", "sub"), { recursive: true });
  for (const file of files) await writeFile(join(root, "template", file), "text\n");
  await runBash(restore, [], root);
  return {
    home: work,
    work,
    run: async (programs) => {
      const log = join(root, "log");
      await rm(log, { force: true });
      await writeFile(join(root, "programs"), programs.map((program) => `${program}\0`).join(""));
      await runBash(driver, [`${bin}:${toolbox}`], root);
      const parts = (await readFile(log, "utf8").catch(() => "")).split("\u001d\0");
      return programs.map((_, at) => readRecords(parts[at] ?? ""));
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}

function readRecords(part: string): readonly Started[] {
  return part
    .split("\u001e\0")
    .filter((record) => record !== "")
    .map((record) => record.split("\0").slice(0, -1));
}

const restore = "rm -rf work && cp -r template work";

/** Each program gets a bash of its own, five seconds, and nothing but the markers and a few tools to find. */
const driver = `root=$PWD
while IFS= read -r -d '' program; do
  cd "$root" && ${restore} && cd work
  # What runs in the background holds descriptor 9, and is waited for.
  # An endless loop there ends when it has used up its processor time.
  (ulimit -t 3; exec env -i PATH="$1" HOME="$PWD" LC_ALL=C.UTF-8 /usr/bin/timeout -s KILL 5 /bin/bash --norc --noprofile -c "$program" 9>&1 </dev/null >/dev/null 2>&1) | cat
  [ "\${PIPESTATUS[0]}" = 137 ] && printf 'timeout\\0\\036\\0' >> "$root/log"
  printf '\\035\\0' >> "$root/log"
done < programs
cd "$root" && ${restore}`;

/** Writes its name and arguments, each closed by NUL, and a sign at the end: in one go, since commands run side by side. */
function recorder(log: string, code: number): string {
  return `#!/bin/sh\nprintf '%s\\0' "\${0##*/}" "$@" '\u001e' >> '${log}'\nexit ${code}\n`;
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

function runBash(script: string, parameters: readonly string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/bash", ["--norc", "--noprofile", "-c", script, "driver", ...parameters], {
      cwd,
      stdio: "ignore",
    });
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}
