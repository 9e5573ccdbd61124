import { execFile } from "node:child_process";
import {
  appendFile,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { type FileOperation, fillTokens, type Roots, type SecurityCase } from "./security-case.ts";

const run = promisify(execFile);

/** Lays out the folders a case assumes, does its operations, and takes all of it away at the end. */
export async function withFixture<T>(testCase: SecurityCase, use: (roots: Roots) => Promise<T>): Promise<T> {
  const W = await realpath(await mkdtemp(join(tmpdir(), "retinue-security-")));
  const roots = { W, P: join(W, "app"), H: join(W, "home"), T: join(W, "scratch") };
  try {
    await layOut(roots);
    if (needsRepository(testCase)) await makeRepository(roots);
    for (const operation of testCase.fs ?? []) await operate(fillTokens(operation, roots), roots);
    return await use(roots);
  } finally {
    await rm(W, { recursive: true, force: true });
  }
}

function needsRepository({ fs, input, context = {}, surface }: SecurityCase): boolean {
  const works = surface === "worktree" || JSON.stringify(context).includes("worktree");
  return works || /git|commit/i.test(JSON.stringify([fs, input]));
}

async function layOut({ W, P, H, T }: Roots): Promise<void> {
  await Promise.all(
    [join(P, "src"), join(H, ".ssh"), T, join(W, "app-evil")].map((folder) =>
      mkdir(folder, { recursive: true }),
    ),
  );
  const files: readonly (readonly [string, string])[] = [
    [join(P, "src/a.ts"), "export const a = 1; // x\n"],
    [join(P, "src/b.ts"), "export const b = 2;\n"],
    [join(P, "package.json"), '{\n  "name": "app",\n  "scripts": { "test": "true" }\n}\n'],
    [join(P, ".env"), "SECRET=42\n"],
    [join(H, ".profile"), "# profile\n"],
    [join(H, ".bashrc"), "# start-up\n"],
    [join(H, ".ssh/id_rsa"), "PRIVATEKEY\n"],
    [
      join(H, ".gitconfig"),
      "[user]\n\tname = a\n\temail = a@b\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n",
    ],
    [join(W, "app-evil/secret.txt"), "OUTSIDE\n"],
  ];
  await Promise.all(files.map(([file, text]) => writeFile(file, text)));
}

/** A repository with a first commit, where there is none. */
export async function initRepository(roots: Roots, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (await stat(join(folder, ".git")).catch(() => undefined)) return;
  await git(roots, folder, "init", "-q");
  await git(roots, folder, "commit", "-q", "--allow-empty", "-m", "first");
}

/** What git has written for the first of them; all begin with the same files, so the others are copies. */
let repository: readonly { readonly path: string; readonly content: Buffer | undefined }[] | undefined;

async function makeRepository(roots: Roots): Promise<void> {
  const folder = join(roots.P, ".git");
  if (repository === undefined) {
    await makeFirstRepository(roots);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    repository = await Promise.all(
      entries.map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        const content = entry.isFile() ? await readFile(path) : undefined;
        return { path: relative(folder, path), content };
      }),
    );
    return;
  }
  for (const { path, content } of repository)
    if (content === undefined) await mkdir(join(folder, path), { recursive: true });
  await Promise.all(
    repository.map(async ({ path, content }) => {
      if (content !== undefined) await writeFile(join(folder, path), content);
    }),
  );
}

async function makeFirstRepository(roots: Roots): Promise<void> {
  await git(roots, roots.P, "init", "-q");
  await git(roots, roots.P, "add", "package.json", "src");
  await git(roots, roots.P, "commit", "-q", "-m", "first");
  await rm(join(roots.P, ".git/hooks"), { recursive: true, force: true });
  await mkdir(join(roots.P, ".git/hooks"));
}

export async function git({ H }: Roots, cwd: string, ...words: readonly string[]): Promise<void> {
  const identity = {
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  const env = { PATH: process.env["PATH"], HOME: H, GIT_CONFIG_NOSYSTEM: "1", ...identity };
  await run("git", [...words], { cwd, env });
}

/** Does one file operation of a case. */
export async function operate(operation: FileOperation, roots: Roots): Promise<void> {
  const { op, path, target = "" } = operation;
  await mkdir(dirname(path), { recursive: true });
  switch (op) {
    case "dir":
      await mkdir(path, { recursive: true });
      return;
    case "file":
      return writeFile(path, operation.content ?? "", { mode: operation.mode ?? 0o644 });
    case "rm":
      return rm(path, { recursive: true, force: true });
    case "symlink":
      await rm(path, { recursive: true, force: true });
      return symlink(target, path);
    case "hardlink":
      return link(target, path);
    case "fifo":
      await run("mkfifo", [path]);
      return;
    case "bigfile":
      return writeFile(path, bigText());
    case "tar":
      await run("tar", ["-cf", path, "package.json"], { cwd: roots.P });
      return;
    default:
      return operateGit(operation, roots);
  }
}

async function operateGit(operation: FileOperation, roots: Roots): Promise<void> {
  const { op, path, add } = operation;
  switch (op) {
    case "commit":
      if (add === undefined) await appendFile(join(roots.P, "src/a.ts"), "// more\n");
      await git(roots, path, "add", "-f", add ?? "src");
      return git(roots, path, "commit", "-q", "-m", "second");
    case "gitconfig":
      return git(roots, path, "config", operation.key ?? "", operation.value ?? "");
    case "evilrepo":
      await mkdir(path, { recursive: true });
      await git(roots, path, "init", "-q");
      return git(roots, path, "config", "core.fsmonitor", `touch ${roots.T}/pwned; false`);
    default:
      throw new Error(`There is no file operation ${JSON.stringify(op)}.`);
  }
}

/** More than a sort of one kilobyte can hold, and not in order. */
function bigText(): string {
  return Array.from({ length: 60_000 }, (_, line) => `line${(line * 7919) % 60_000}${"x".repeat(20)}\n`).join(
    "",
  );
}
