import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLockGroup, hasLiveOwner, type OwnerLock, takeOwnerLock } from "./owner-lock.ts";
import { thisProcess } from "./process-identity.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "owner-"));
  file = join(root, "a.jsonl");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const leaveLock = (owner: unknown) => writeFile(`${file}.lock`, JSON.stringify(owner));
const lockModule = JSON.stringify(new URL("./owner-lock.ts", import.meta.url).href);

describe("[TRN-2] a file has one owner at a time", () => {
  it("a second taker is refused and reported who holds the lock", () => {
    const first = takeOwnerLock(file);
    expect(takeOwnerLock(file)).toMatchObject({ type: "held", by: { pid: process.pid } });
    expect(hasLiveOwner(file)).toBe(true);
    if (first.type === "taken") first.lock.release();
    expect(hasLiveOwner(file)).toBe(false);
    expect(takeOwnerLock(file).type).toBe("taken");
  });

  it("a lock that cannot be read counts as held, so that no list fails for it", async () => {
    await mkdir(`${file}.lock`);
    expect(hasLiveOwner(file)).toBe(true);
    expect(() => takeOwnerLock(file)).toThrow("Could not read");
  });

  it("releasing leaves nothing behind, and only removes the own lock", async () => {
    const first = takeOwnerLock(file);
    await leaveLock({ ...thisProcess(), token: "another" });
    if (first.type === "taken") first.lock.release();
    expect(await readdir(root)).toEqual(["a.jsonl.lock"]);
  });

  it("a process that was killed loses its lock", async () => {
    const script = `const { takeOwnerLock } = await import(${lockModule});
      console.log(takeOwnerLock(${JSON.stringify(file)}).type); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [said] = await once(child.stdout, "data");
    expect(String(said).trim()).toBe("taken");
    expect(takeOwnerLock(file)).toMatchObject({ type: "held", by: { pid: child.pid } });
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(takeOwnerLock(file).type).toBe("taken");
    expect(await readdir(root)).toEqual(["a.jsonl.lock"]);
  });

  it.runIf(process.platform === "linux")(
    "a later process with the same number is not the owner",
    async () => {
      const [boot = ""] = thisProcess().started.split("/");
      await leaveLock({ ...thisProcess(), started: `${boot}/1`, token: "x" });
      expect(takeOwnerLock(file)).toMatchObject({ type: "taken", lock: { takenFrom: "gone" } });
    },
  );

  it("of many who find a dead owner exactly one takes over", async () => {
    await leaveLock({ ...thisProcess(), pid: 2 ** 22 + 7, token: "x" });
    const script = `const { takeOwnerLock } = await import(${lockModule});
      console.log(takeOwnerLock(${JSON.stringify(file)}).type); process.stdin.resume();`;
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const answers = await Promise.all(
      children.map(async ({ stdout }) => String((await once(stdout, "data"))[0]).trim()),
    );
    expect(answers.filter((answer) => answer === "taken")).toHaveLength(1);
    for (const child of children) child.stdin.end();
    await Promise.all(children.map((child) => once(child, "exit")));
  });
});

describe("where the owner cannot be looked up, time decides", () => {
  const now = 1_800_000_000_000;
  const age = async (path: string, ms: number) => utimes(path, (now - ms) / 1000, (now - ms) / 1000);

  it("the lock of another machine holds while lock or file are fresh", async () => {
    await writeFile(file, "");
    await leaveLock({ pid: 1, machine: "elsewhere", started: "", token: "x" });
    await age(`${file}.lock`, 60 * 60_000);
    await age(file, 60_000);
    expect(takeOwnerLock(file, { now: () => now }).type).toBe("held");
    await age(file, 3 * 60_000);
    expect(takeOwnerLock(file, { now: () => now }).type).toBe("taken");
  });

  it.each([
    "",
    "{",
    "[]",
    '{"pid":"1"}',
    '{"pid":-1,"machine":"","started":""}',
  ])("a lock with the text %j holds only while it may still be being written", async (text) => {
    await writeFile(`${file}.lock`, text);
    await age(`${file}.lock`, 1000);
    expect(takeOwnerLock(file, { now: () => now }).type).toBe("held");
    await age(`${file}.lock`, 11_000);
    expect(takeOwnerLock(file, { now: () => now }).type).toBe("taken");
    expect(JSON.parse(await readFile(`${file}.lock`, "utf8"))).toMatchObject({ pid: process.pid });
  });
});

it("the lock does not keep a process from ending", async () => {
  const script = `const { takeOwnerLock } = await import(${lockModule}); takeOwnerLock(${JSON.stringify(file)});`;
  await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  expect(hasLiveOwner(file)).toBe(false);
});

describe("[TRN-2] locks that one process takes together", () => {
  const take = (name: string, options: Parameters<typeof takeOwnerLock>[1]): OwnerLock => {
    const answer = takeOwnerLock(join(root, name), options);
    if (answer.type === "held") throw new Error(`${name} is held`);
    return answer.lock;
  };
  const inode = async (name: string) => (await stat(join(root, `${name}.lock`))).ino;

  it("are names of one file, and each is held and released for itself", async () => {
    const group = createLockGroup();
    const [a, b] = [take("a", { group }), take("b", { group })];
    expect(await inode("a")).toBe(await inode("b"));
    expect(takeOwnerLock(join(root, "a"), { group })).toMatchObject({
      type: "held",
      by: { pid: process.pid },
    });
    a.release();
    expect([hasLiveOwner(join(root, "a")), hasLiveOwner(join(root, "b")), b.isHeld()]).toEqual([
      false,
      true,
      true,
    ]);
    const c = take("c", { group });
    expect(await inode("c")).toBe(await inode("b"));
    for (const lock of [b, c]) lock.release();
    expect(await readdir(root)).toEqual([]);
    take("d", { group }).release();
  });

  it("one that another process takes over is lost alone, and gives its name to no other", async () => {
    const group = createLockGroup();
    const [a, b] = [take("a", { group }), take("b", { group })];
    const other = take("a", { takeOver: true });
    expect([a.isHeld(), b.isHeld(), other.isHeld()]).toEqual([false, true, true]);
    const c = take("c", { group });
    expect(await inode("c")).toBe(await inode("b"));
    a.release();
    expect(other.isHeld()).toBe(true);
    for (const lock of [b, c, other]) lock.release();
    expect(await readdir(root)).toEqual([]);
  });

  it("are not left to others as idle", () => {
    const group = createLockGroup();
    const [a, b] = [take("a", { group }), take("b", { group })];
    a.setIdle(true);
    expect(takeOwnerLock(join(root, "b"), { takeOver: "idle" }).type).toBe("held");
    for (const lock of [a, b]) lock.release();
  });

  it("of a process that was killed are taken over one by one", async () => {
    const script = `const { createLockGroup, takeOwnerLock } = await import(${lockModule});
      const group = createLockGroup();
      for (const name of ["a", "b"]) takeOwnerLock(${JSON.stringify(root)} + "/" + name, { group });
      console.log("taken"); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    expect(hasLiveOwner(join(root, "b"))).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    const group = createLockGroup();
    const [a, b] = [take("a", { group }), take("b", { group })];
    expect([a.takenFrom, b.takenFrom, a.isHeld(), b.isHeld()]).toEqual(["gone", "gone", true, true]);
    for (const lock of [a, b]) lock.release();
    expect(await readdir(root)).toEqual([]);
  });
});
