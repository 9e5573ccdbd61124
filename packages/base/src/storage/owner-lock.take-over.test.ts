import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openAppendLog } from "./append-log.ts";
import { beat, hasLiveOwner, lookAtLock, startHeartbeat, takeOwnerLock, waitForOwner } from "./owner-lock.ts";
import { livenessOf, thisProcess } from "./process-identity.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "over-"));
  file = join(root, "a.jsonl");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const linux = process.platform === "linux";
const elsewhere = { pid: 7, machine: "elsewhere pid:[1]", started: "another-boot/1", expiresAfterMs: 20_000 };
const leaveLock = (owner: object) => writeFile(`${file}.lock`, JSON.stringify({ token: "x", ...owner }));
const silentFor = (ms: number) => {
  const then = (Date.now() - ms) / 1000;
  return utimes(`${file}.lock`, then, then);
};

describe("an owner that cannot be seen keeps its lock while it gives signs of life [TRN-4]", () => {
  it("its lock holds while it is fresh, and says for how long", async () => {
    await leaveLock(elsewhere);
    const answer = takeOwnerLock(file);
    expect(answer).toMatchObject({ type: "held", by: { pid: 7 } });
    expect(answer.type === "held" ? answer.expiresInMs : 0).toBeGreaterThan(15_000);
    expect(hasLiveOwner(file)).toBe(true);
  });

  it("silent for longer than it says itself, it loses the lock", async () => {
    await leaveLock(elsewhere);
    await silentFor(21_000);
    expect(hasLiveOwner(file)).toBe(false);
    expect(takeOwnerLock(file)).toMatchObject({ type: "taken", lock: { takenFrom: "expired" } });
  });

  it("a machine of the same name that was started at another time is another machine", async () => {
    await leaveLock({ ...thisProcess(), started: "another-boot/1", expiresAfterMs: 20_000 });
    expect(hasLiveOwner(file)).toBe(linux);
  });

  it("the owner renews its lock, and stops when another has it", async () => {
    await leaveLock(elsewhere);
    const text = await readFile(`${file}.lock`, "utf8");
    await silentFor(60_000);
    const heart = startHeartbeat(`${file}.lock`, () => text, 2);
    try {
      await vi.waitFor(async () =>
        expect(Date.now() - (await stat(`${file}.lock`)).mtimeMs).toBeLessThan(5_000),
      );
    } finally {
      heart.stop();
    }
    await leaveLock({ ...elsewhere, pid: 8, token: "another" });
    await silentFor(60_000);
    expect(beat(`${file}.lock`, text)).toBe("lost");
    expect(hasLiveOwner(file)).toBe(false);
  });

  it("who wants the file waits until it is free, and says so once", async () => {
    await leaveLock({ ...elsewhere, expiresAfterMs: 40 });
    const reported: unknown[] = [];
    await waitForOwner(file, { signal: AbortSignal.timeout(5_000), onWait: (wait) => reported.push(wait) });
    expect(reported).toMatchObject([{ by: { pid: 7 } }]);
    expect(takeOwnerLock(file).type).toBe("taken");
  });

  it("a sign of life ends the waiting, and the file stays with its owner", async () => {
    await leaveLock({ ...elsewhere, expiresAfterMs: 60_000 });
    const waiting = waitForOwner(file, { signal: AbortSignal.timeout(20_000) });
    const soon = Date.now() / 1000 + 1;
    await utimes(`${file}.lock`, soon, soon);
    await waiting;
    expect(lookAtLock(file)).toMatchObject({ type: "held" });
  });

  it("waiting ends with its signal", async () => {
    await leaveLock({ ...elsewhere, expiresAfterMs: 60_000 });
    await expect(waitForOwner(file, { signal: AbortSignal.timeout(10) })).rejects.toThrow(/timeout/);
  });
});

describe("what was taken over is closed to its former owner [TRN-2]", () => {
  it("the former owner's next write is refused, and nothing of both is lost or mixed", async () => {
    using old = openAppendLog(file);
    old.append(["one"]);
    using log = openAppendLog(file, { takeOver: true, expectLength: 4 });
    log.append(["two"]);
    expect(() => old.append(["three"])).toThrow(expect.objectContaining({ code: "file-taken-over" }));
    await expect(old.sync()).rejects.toThrow(expect.objectContaining({ code: "file-taken-over" }));
    log.append(["four"]);
    expect(await readFile(file, "utf8")).toBe("one\ntwo\nfour\n");
    old.close();
    expect(hasLiveOwner(file)).toBe(true);
  });

  it("a write that was under way when the file was taken over cannot reach the new owner's file", async () => {
    using old = openAppendLog(file);
    old.append(["one"]);
    const { ino } = await stat(file);
    using log = openAppendLog(file, { takeOver: true });
    expect((await stat(file)).ino).not.toBe(ino);
    log.append(["two"]);
    expect(await readFile(file, "utf8")).toBe("one\ntwo\n");
    expect((await readdir(root)).sort()).toEqual(["a.jsonl", "a.jsonl.lock"]);
  });

  it("unless asked to, no process takes a file from a living one", () => {
    using _old = openAppendLog(file);
    expect(() => openAppendLog(file)).toThrow(
      expect.objectContaining({ code: "file-in-use", advice: expect.stringContaining("--take-over") }),
    );
  });
});

describe.runIf(linux)("processes of other containers", () => {
  it("one that ended in another container of this machine is seen to be gone from the outside", async () => {
    const [boot = ""] = thisProcess().started.split("/");
    const gone = { pid: 1, machine: "container pid:[4026599999]", started: `${boot}/1` };
    const isOutside = thisProcess().machine.endsWith("pid:[4026531836]");
    expect(livenessOf(gone)).toBe(isOutside ? "gone" : "unknown");
  });

  it("one that runs in another container is found by its number there", async () => {
    const own = thisProcess();
    // As if this process had another name for the container it is in; the number and the start are its own.
    expect(livenessOf({ ...own, machine: `${hostname()} pid:[4026599999]` })).toBe("running");
  });

  it("of a process on another machine nothing is known", () => {
    expect(livenessOf(elsewhere)).toBe("unknown");
  });

  it("a frozen owner is still the owner", async () => {
    const module = JSON.stringify(new URL("./owner-lock.ts", import.meta.url).href);
    const script = `const { takeOwnerLock } = await import(${module});
      console.log(takeOwnerLock(${JSON.stringify(file)}).type); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await once(child.stdout, "data");
      child.kill("SIGSTOP");
      await silentFor(60_000);
      expect(takeOwnerLock(file)).toMatchObject({ type: "held", by: { pid: child.pid } });
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });
});
