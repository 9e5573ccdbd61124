import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProcess } from "../../foundation/run-process.ts";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { Invocation } from "./sandbox.ts";
import { createReadOnlySandbox, processViews, readOnlyInvocation } from "./sandbox-runtime.ts";
import { socketFilter } from "./socket-filter.ts";

const start = await createReadOnlySandbox().start();
const skipped = start.type === "ready" ? "" : ` (skipped: ${start.why})`;

describe("where commands that only read cannot be kept from writing [PRM-9]", () => {
  it.each([
    ["there is no bwrap", { platform: "linux", find: async () => undefined }, "bwrap is not installed"],
    [
      "bwrap does not work",
      { platform: "linux", find: findSystemProgram.bind(null, "false") },
      "does not work here",
    ],
    ["the system has no such thing", { platform: "darwin" }, "there is none for darwin"],
  ])("because %s, it says so", async (_, options, words) => {
    const found = await createReadOnlySandbox(options).start();
    expect(found).toMatchObject({ type: "unavailable", why: expect.stringContaining(words) });
  });
});

describe.skipIf(start.type !== "ready")(`a command that only reads${skipped} [PRM-9]`, () => {
  let root: string;
  let work: string;
  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), "read-only-")));
    work = join(root, "work");
    await mkdir(work);
    await writeFile(join(work, "a.txt"), "a text\n");
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  async function run(command: string, { wrap = wrapHere, directory = work } = {}) {
    return runProcess({
      ...wrap({ file: "/bin/bash", arguments: ["--norc", "-c", command] }, directory),
      directory,
      environment: { PATH: process.env["PATH"] ?? "", HOME: root },
      reportsBack: true,
      signal: new AbortController().signal,
      timeLimitMs: 20_000,
    });
  }
  function wrapHere(invocation: Invocation, directory: string): Invocation {
    if (start.type !== "ready") throw new Error(start.why);
    return start.wrap(invocation, { directory, workingDirectories: [directory] });
  }

  it("reads as ever, with its own exit code and report", async () => {
    const result = await run(
      "cat a.txt; pwd >&3; cat <<< here; cat <(echo there); echo x > /dev/null; exit 7",
    );
    expect(result).toMatchObject({ output: "a text\nhere\nthere\n", exitCode: 7, report: `${work}\n` });
  });

  it("changes no file, wherever it is, and has its own place for temporary ones", async () => {
    const places = [work, root, "/tmp", "/var/tmp", "/proc/sys/vm", "/proc/self", "/sys/kernel", "/run"];
    const made = await run(
      `for f in ${places.join(" ")}; do (echo x > $f/made-by-a-reader) 2>/dev/null && echo $f; done; echo more >> a.txt; rm a.txt; echo ok > $TMPDIR/x && cat $TMPDIR/x`,
    );
    expect(made.stdout).toBe("ok\n");
    expect(await readFile(join(work, "a.txt"), "utf8")).toBe("a text\n");
    const limit = await readFile("/proc/sys/vm/swappiness", "utf8");
    await run(
      `echo ${Number(limit) + 1} > /proc/sys/vm/swappiness; mount -o remount,rw /; echo x > ${root}/b`,
    );
    expect(await readFile("/proc/sys/vm/swappiness", "utf8")).toBe(limit);
    expect(existsSync(join(root, "b"))).toBe(false);
  });

  it("reaches no port, no socket with a path, and no other process", async () => {
    const socket = join(root, "daemon.sock");
    const accepted: unknown[] = [];
    const servers = [
      createServer((one) => accepted.push(one)),
      createServer((one) => accepted.push(one)),
    ] as const;
    await new Promise<void>((done) => servers[0].listen(socket, done));
    await new Promise<void>((done) => servers[1].listen(0, "127.0.0.1", done));
    const address = servers[1].address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const connect = `require("net").connect(process.argv[1]).on("connect", () => console.log("in")).on("error", (e) => console.log(e.code))`;
    const node = `'${process.execPath}' -e '${connect}'`;
    const said = await run(`${node} '${socket}'; ${node} ${port}; kill -0 ${process.pid} || echo nobody`);
    for (const server of servers) await new Promise((done) => server.close(done));
    expect(said.stdout).toBe("EPERM\nECONNREFUSED\nnobody\n");
    expect(accepted).toEqual([]);
  });

  it("sees the state of git, which is not refreshed by it", async () => {
    const git = (...words: string[]) =>
      execFileSync("git", words, { cwd: work, env: { ...process.env, HOME: root } });
    git("init", "-q");
    git("add", ".");
    await writeFile(join(work, "a.txt"), "a text\n");
    const before = await readFile(join(work, ".git/index"));
    const { output, exitCode } = await run("git status --short; git diff --stat");
    expect({ output, exitCode }).toEqual({ output: "A  a.txt\n", exitCode: 0 });
    expect((await readFile(join(work, ".git/index"))).equals(before)).toBe(true);
  });

  it.skipIf(!existsSync("/dev/shm"))("finds its folder where that is among the devices", async () => {
    const folder = await mkdtemp("/dev/shm/read-only-");
    await writeFile(join(folder, "x"), "there\n");
    const { output } = await run("cat x; echo y > y", { directory: folder });
    await rm(folder, { recursive: true });
    expect(output).toMatch(/^there\n.*Read-only file system\n$/);
  });

  it.each(processViews)("is kept apart also with the %s view of processes", async (view) => {
    const filter = socketFilter(process.arch);
    const program = (await findSystemProgram("bwrap")) ?? "";
    const facts = { program, view, isRoot: process.getuid?.() === 0, ...(filter && { filter }) };
    const { stdout } = await run(
      `cat a.txt; echo x > made || echo no; readlink /proc/${process.pid}/root || echo hidden; cat <(echo there)`,
      {
        wrap: (invocation, directory) =>
          readOnlyInvocation(invocation, facts, { directory, workingDirectories: [] }),
      },
    );
    expect(stdout).toBe("a text\nno\nhidden\nthere\n");
  });
});
