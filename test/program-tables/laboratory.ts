import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { announce, announceEnd, type Deeds, readTrace, tracing } from "./read-trace.ts";

/** What one command printed, both streams together, how it ended, and what it did, where that was traced. */
export interface Outcome extends Deeds {
  readonly output: string;
  readonly code: number;
}

export interface Laboratory {
  readonly work: string;
  readonly home: string;
  /** Whether the system lets us trace what programs do. */
  readonly traces: boolean;
  /** Runs commands in bash, in the folder, one after the other; `traced` also shows what each one did. */
  readonly run: (commands: readonly string[], options?: { readonly traced?: boolean }) => Promise<Outcome[]>;
  /** Everything in the folder, the home directory and that for temporary files, with what would change if it did. */
  readonly look: () => Promise<ReadonlyMap<string, string>>;
  readonly close: () => Promise<void>;
}

export interface LaboratoryOptions {
  /** Run in bash before anything else. */
  readonly setup: string;
  /** Names that lead to programs which the system has under another one. */
  readonly links?: Readonly<Record<string, string>>;
  /** Every command finds the folder as it was at first. */
  readonly resets?: boolean;
}

/** Opens folders of their own to run real programs in, with an environment that says nothing else. */
export async function openLaboratory({
  setup,
  links = {},
  resets = false,
}: LaboratoryOptions): Promise<Laboratory> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "program-tables-")));
  const [work, home, temporary, bin] = ["work", "home", "tmp", "bin"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [work, home, temporary, bin]) await mkdir(folder);
  for (const [name, target] of Object.entries(links)) {
    const path = await findProgram(target);
    if (path !== undefined && (await findProgram(name)) === undefined) await symlink(path, join(bin, name));
  }
  const env = {
    PATH: [bin, ...systemFolders].join(delimiter),
    HOME: home,
    TMPDIR: temporary,
    LC_ALL: "C.UTF-8",
    TERM: "dumb",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  const start = (program: string, args: readonly string[]) => runProgram(program, args, { cwd: work, env });
  await start("/bin/bash", ["--norc", "--noprofile", "-ec", setup]);
  const probe = join(root, "probe");
  const traces = await start("strace", [...tracing, "-o", probe, "true"]).then(
    () => true,
    () => false,
  );
  const pristine = join(root, "pristine");
  if (resets) await start("cp", ["-a", work, pristine]);
  const reset = resets ? `cd ${work} && rm -rf -- * .[!.]* && cp -a ${pristine}/. .\n` : "";
  let count = 0;
  const runShard = async (commands: readonly string[], traced: boolean): Promise<Outcome[]> => {
    count += 1;
    const script = join(root, `script-${count}`);
    const trace = traced ? join(root, `trace-${count}`) : undefined;
    await writeFile(script, driver(commands, reset));
    const bash = ["--norc", "--noprofile", script];
    const log = await (trace === undefined
      ? start("/bin/bash", bash)
      : start("strace", [...tracing, "-o", trace, "/bin/bash", ...bash]));
    const outputs = readLog(log, commands.length);
    const deeds = trace === undefined ? [] : readTrace(await readFile(trace, "latin1"));
    return outputs.map((outcome, at) => ({ ...outcome, ...(deeds[at] ?? { acts: [], touched: [] }) }));
  };
  return {
    work,
    home,
    traces,
    async run(commands, { traced = false } = {}) {
      const middle = Math.ceil(commands.length / 2);
      const shards = resets ? [commands] : [commands.slice(0, middle), commands.slice(middle)];
      return (await Promise.all(shards.map((shard) => runShard(shard, traced && traces)))).flat();
    },
    look: async () => new Map((await Promise.all([work, home, temporary].map(describe))).flat()),
    close: () => rm(root, { recursive: true, force: true }),
  };
}

const systemFolders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/opt/homebrew/bin"];

/** Where a program is, if it is on this machine. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of systemFolders) {
    const path = join(folder, name);
    if ((await lstat(path).catch(() => undefined)) !== undefined) return path;
  }
  return undefined;
}

function driver(commands: readonly string[], reset: string): string {
  const lines = commands.map(
    (command, at) =>
      `${reset}${announce(at)}; printf '${mark}'; { ${command}\n} </dev/null; printf '${mark}%d' "$?"; ${announceEnd}\n`,
  );
  return `exec 2>&1\n${lines.join("")}exit 0\n`;
}

/** Is around what a command printed. */
const mark = `|${randomUUID()}|`;

function readLog(log: string, count: number): Omit<Outcome, keyof Deeds>[] {
  const parts = log.split(mark).slice(1);
  if (parts.length !== 2 * count) throw new Error(`${count} commands were to run, not all did`);
  return Array.from({ length: count }, (_, at) => ({
    output: parts[2 * at] ?? "",
    code: Number(parts[2 * at + 1]),
  }));
}

async function describe(folder: string): Promise<(readonly [string, string])[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const below = await Promise.all(
    entries.map((entry) => (entry.isDirectory() ? describe(join(folder, entry.name)) : [])),
  );
  const own = await Promise.all(
    [folder, ...entries.map(({ name }) => join(folder, name))].map(async (path) => {
      const { mode, size, ino, mtimeNs, ctimeNs } = await lstat(path, { bigint: true });
      return [path, [mode, size, ino, mtimeNs, ctimeNs].join(" ")] as const;
    }),
  );
  return [...own, ...below.flat()];
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"], timeout: 110_000 });
    let output = "";
    let complaint = "";
    child.stdout.setEncoding("latin1").on("data", (text: string) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${program} ended with ${code}: ${complaint}`)),
    );
  });
}
