import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { projectRoot } from "../project-files.ts";
import { findMarked, markVariable } from "./marked-processes.ts";
import { growth, type RunningProgram, startProgram } from "./start-program.ts";
import type { TortureProvider } from "./torture-provider.ts";
import { exitCodes, type StormSignal, stormSignals } from "./tortured-storm.ts";

export interface WorktreeTorture {
  readonly provider: TortureProvider;
  readonly random: () => number;
  readonly kills: number;
  readonly say: (text: string) => void;
}

/** What is left of worktrees after `retinue clean`. */
export interface LeftWorktrees {
  readonly folders: readonly string[];
  readonly branches: readonly string[];
  /** Git's own records of worktrees, and what was written beside them. */
  readonly records: readonly string[];
  /** Whether git itself can still make one. */
  readonly canAdd: boolean;
  /** A foreign worktree, which must stay. */
  readonly isOthersKept: boolean;
}

/** A main agent starts 25 children with worktrees and is killed while they are made; then everything is cleaned up. */
export async function torturedWorktrees(torture: WorktreeTorture): Promise<LeftWorktrees> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-worktrees-")));
  const place = createPlace(root);
  try {
    await killAll(place, torture);
    const clean = execFileSync(process.execPath, [join(projectRoot, "bin/retinue.js"), "clean"], {
      cwd: place.project,
      env: { PATH: process.env["PATH"], HOME: place.home },
      encoding: "utf8",
    });
    torture.say(`  ${clean.trim().split("\n").at(-1)}`);
    return look(place);
  } finally {
    for (const { pid } of findMarked(place.mark)) kill(pid);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function killAll(place: Place, { provider, random, kills, say }: WorktreeTorture): Promise<void> {
  let session: string | undefined;
  for (let count = 0; count <= kills; count += 1) {
    const isResumed = session !== undefined && random() < 0.5;
    const id: string = isResumed && session !== undefined ? session : randomUUID();
    const program = startProgram(place, [isResumed ? "--resume" : "--session-id", id], provider.url, {
      environment: { [markVariable]: place.mark },
    });
    const sent = count < kills ? await killDuring(place, program, random) : undefined;
    const { code, signal, output } = await program.ended;
    const isExpected = code === 0 || signal === sent || (sent !== undefined && code === exitCodes[sent]);
    if (!isExpected) throw new Error(`The program ended with ${code}: ${output}`);
    session = isStarted(place, id) ? id : undefined;
  }
  say(`  killed ${kills} times`);
}

/** Somewhere in the making of a worktree, mostly by SIGKILL; every other time git is killed together with the program. */
async function killDuring(place: Place, program: RunningProgram, random: () => number): Promise<StormSignal> {
  const { process: child, ended } = program;
  const over = new AbortController();
  void ended.then(() => over.abort());
  const size = (): number => entriesOf(place).reduce((sum, names) => sum + names.length, 0);
  const moment = growth(size, Math.floor(random() * 20), over.signal).then(() => wait(random() * 25));
  await Promise.race([moment, ended]);
  const signal = random() < 0.7 ? "SIGKILL" : (stormSignals[Math.floor(random() * 4)] ?? "SIGKILL");
  const takesGit = signal === "SIGKILL" && random() < 0.5;
  child.kill(signal);
  if (takesGit) for (const { pid } of findMarked(place.mark)) kill(pid);
  return signal;
}

interface Place {
  readonly home: string;
  readonly project: string;
  readonly mark: string;
}

function createPlace(root: string): Place {
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  const limits = { agents: 25, overflow: "queue" };
  writeFileSync(join(home, ".claude/settings.json"), JSON.stringify({ limits }));
  git(project, "init", "-q", "-b", "main");
  for (let index = 0; index < 150; index += 1)
    writeFileSync(join(project, `file${index}.txt`), `${"line\n".repeat(400)}${index}\n`);
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "one");
  git(project, "worktree", "add", "-q", "-b", "theirs", "../theirs");
  writeFileSync(join(project, "file0.txt"), "changed and not committed\n");
  return { home, project, mark: randomUUID() };
}

function look({ project }: Place): LeftWorktrees {
  const folder = join(project, ".claude/worktrees");
  const branches = git(project, "for-each-ref", "--format=%(refname)", "refs/heads/retinue")
    .split("\n")
    .filter((name) => name !== "");
  return {
    folders: namesIn(folder),
    branches,
    records: [
      ...namesIn(join(project, ".git/worktrees")).filter((name) => name !== "theirs"),
      ...namesIn(join(project, ".git")).filter((name) => name.startsWith("retinue")),
    ],
    canAdd: canAdd(project),
    isOthersKept: existsSync(join(project, "../theirs/file1.txt")),
  };
}

function canAdd(project: string): boolean {
  try {
    git(project, "worktree", "add", "-q", "-b", "last", "../last");
    return true;
  } catch {
    return false;
  }
}

function isStarted({ home }: Place, id: string): boolean {
  const projects = join(home, ".claude/projects");
  return namesIn(projects).some((name) => existsSync(join(projects, name, `${id}.jsonl`)));
}

function entriesOf({ project }: Place): readonly (readonly string[])[] {
  return [".claude/worktrees", ".git/worktrees", ".git/refs/heads/retinue"].map((name) =>
    namesIn(join(project, name)),
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Folders come and go while it is looked at them.
    return [];
  }
}

function git(directory: string, ...words: readonly string[]): string {
  const identity = [
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  return execFileSync("git", [...identity, ...words], { cwd: directory, encoding: "utf8", stdio: "pipe" });
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
