import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openTreeElsewhere } from "@retinue/core/kernel/live/tree-elsewhere.ts";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import { createSessionRecords } from "@retinue/hosts/terminal/session/session-records.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, runCommand, runInProcess } from "./run-command.ts";

interface Listed {
  readonly pid?: number;
  readonly id: string;
  readonly cwd: string;
  readonly kind: string;
  readonly startedAt: number;
  readonly sessionId: string;
  readonly name: string;
  readonly status: string;
  readonly state: string;
}

/** A trusted folder whose provider answers as the test says. */
async function openPlace(respond: StepFunction) {
  const provider = await startFakeProvider({ respond });
  onTestFinished(() => provider.close());
  const place = createPlace();
  await runInProcess(place, ["trust", "--yes"], {});
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "key",
    ANTHROPIC_MODEL: "claude-sonnet-4-5",
  };
  const run = (...words: readonly string[]) => runInProcess(place, words, { environment });
  const list = async (): Promise<readonly Listed[]> =>
    JSON.parse((await run("agents", "--json", "--all")).out);
  const one = async (id: string) => (await list()).find((session) => session.id === id);
  const start = async (...words: readonly string[]): Promise<string> => {
    const { code, out, err } = await runCommand(place, ["--bg", ...words], { environment });
    expect({ code }, err).toEqual({ code: 0 });
    expect(out).toMatch(/^[0-9a-f]{8}\n$/);
    const id = out.trim();
    onTestFinished(async () => {
      const pid = (await one(id))?.pid;
      if (pid !== undefined) process.kill(pid, "SIGKILL");
    });
    return id;
  };
  const reaches = (id: string, state: string): Promise<void> =>
    becomes(async () => (await one(id))?.state === state);
  return { provider, place, environment, run, one, start, reaches };
}

/** Answers are held back until the test lets them go. */
function createDoor() {
  const opened = Promise.withResolvers<void>();
  return { open: opened.resolve, wait: () => opened.promise };
}

/** What of the command line the records of sessions look at. */
function hostOf({ cwd, home }: Place): CliHost {
  return { cwd, home, environment: { HOME: home }, platform: process.platform } as unknown as CliHost;
}

const lastOf = (provider: FakeProvider): string =>
  JSON.stringify(provider.requests.at(-1)?.request.messages.at(-1));

describe("sessions in the background [CLI-3]", () => {
  test("--bg returns at once; the session runs in a process session of its own, is listed, read, and removed", async () => {
    const door = createDoor();
    const { place, run, one, start, reaches } = await openPlace(async () => {
      await door.wait();
      return "All is counted.";
    });
    const id = await start("Count to three.", "--name", "counter");
    await reaches(id, "working");
    const session = await one(id);
    expect(session).toMatchObject({ cwd: place.cwd, kind: "background", name: "counter", status: "busy" });
    expect(session?.sessionId.startsWith(id)).toBe(true);
    expect(session?.startedAt).toBeGreaterThan(Date.now() - 120_000);
    if (process.platform === "linux") {
      // Its own session, and no terminal: fields 6 and 7.
      const fields = readFileSync(`/proc/${session?.pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      expect([fields[3], fields[4]]).toEqual([String(session?.pid), "0"]);
    }
    expect((await run("rm", "counter")).err).toContain(`retinue stop ${id}`);
    door.open();
    await reaches(id, "completed");
    expect(await one(id)).not.toHaveProperty("pid");
    expect(JSON.parse((await run("agents", "--json")).out)).toEqual([]);
    const { out: logs } = await run("logs", id);
    expect(logs).toContain("> Count to three.");
    expect(logs).toContain("All is counted.");
    expect((await run("logs", "-f", "counter")).out).toBe(logs);
    expect((await run("rm", id)).code).toBe(0);
    expect(await one(id)).toBeUndefined();
  });

  test("what is written to it reaches it between its turns, and stop ends it with what it has", async () => {
    const doors = [createDoor(), createDoor()];
    const { provider, place, run, start, reaches, one } = await openPlace(async (request) => {
      const turn = request.messages.filter(({ role }) => role === "assistant").length;
      await doors[turn]?.wait();
      return turn === 0 ? { calls: [{ name: "Glob", input: { pattern: "*" } }] } : "Understood.";
    });
    const id = await start("Look.");
    await becomes(() => provider.requests.length === 1);
    const sessionId = (await one(id))?.sessionId ?? "";
    const { transcripts } = createSessionRecords(hostOf(place));
    using tree = await openTreeElsewhere({
      transcripts,
      sessionId,
      by: { user: "ada", through: "terminal" },
    });
    await tree.submit("main", { type: "prompt", content: "Look twice." });
    doors[0]?.open();
    await becomes(() => provider.requests.length === 2);
    expect(lastOf(provider)).toContain("Look twice.");
    const { out } = await run("stop", id);
    expect(out).toContain(`${id} is stopped. \`retinue attach ${id}\` continues it.`);
    await reaches(id, "stopped");
    expect((await run("stop", id)).out).toContain("is not running");
  });

  test("a crash is seen as one, and the session is continued", async () => {
    const door = createDoor();
    const { provider, run, one, start, reaches } = await openPlace(async (request) => {
      const isContinued = JSON.stringify(request.messages.at(-1)).includes("Go on.");
      if (!isContinued) await door.wait();
      return isContinued ? "Continued." : "Too late.";
    });
    const id = await start("Work.");
    await becomes(() => provider.requests.length === 1);
    const session = await one(id);
    process.kill(session?.pid ?? 0, "SIGKILL");
    await reaches(id, "interrupted");
    expect((await run("logs", id)).err).toContain(`${id} is interrupted`);
    const { code, out } = await run("-p", "--resume", session?.sessionId ?? "", "Go on.");
    expect({ code, out }).toEqual({ code: 0, out: "Continued.\n" });
    await reaches(id, "completed");
    door.open();
  });

  test("a call that nobody can be asked about waits in the inbox", async () => {
    const { run, place, start, reaches } = await openPlace((request) =>
      request.messages.some(({ role }) => role === "assistant")
        ? "Written."
        : { calls: [{ name: "Write", input: { file_path: "new.txt", content: "new" } }] },
    );
    const id = await start("Write a file.");
    await reaches(id, "waiting");
    const [, question = ""] = /"id": "([^"]+)"/.exec((await run("approvals", "--json")).out) ?? [];
    expect((await run("approve", question)).code).toBe(0);
    await reaches(id, "completed");
    expect(readFileSync(join(place.cwd, "new.txt"), "utf8")).toBe("new");
  });

  test("rm removes the worktree of a session, unless something in it would be lost", async () => {
    const { run, place, start, reaches } = await openPlace(() => "Done.");
    const git = (...words: readonly string[]) => execFileSync("git", words, { cwd: place.cwd });
    git("init", "-q");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first");
    const clean = await start("Look.", "--worktree", "clean");
    const changed = await start("Look.", "--worktree", "changed");
    await Promise.all([reaches(clean, "completed"), reaches(changed, "completed")]);
    const folder = (name: string): string => join(place.cwd, ".claude/worktrees", name);
    expect(existsSync(folder("clean"))).toBe(true);
    writeFileSync(join(folder("changed"), "work.txt"), "work");
    expect((await run("rm", clean)).code).toBe(0);
    expect(existsSync(folder("clean"))).toBe(false);
    expect((await run("rm", changed)).err).toContain("was kept");
    expect(existsSync(join(folder("changed"), "work.txt"))).toBe(true);
  });

  test("a session is started once, and none takes the place of another whose id begins alike", async () => {
    const door = createDoor();
    const { place, environment, run, one, start, reaches } = await openPlace(async () => {
      await door.wait();
      return "Done.";
    });
    const sessionId = "11111111-1111-4111-8111-111111111111";
    const words = ["--bg", "Look.", "--session-id", sessionId];
    const twice = await Promise.all([1, 2].map(() => runCommand(place, words, { environment })));
    onTestFinished(async () => {
      const pid = (await one("11111111"))?.pid;
      if (pid !== undefined) process.kill(pid, "SIGKILL");
    });
    expect(twice.map(({ code }) => code).toSorted()).toEqual([0, 1]);
    expect(twice.map(({ err }) => err).join("")).toContain("11111111 is already running.");
    const other = "11111111-2222-4111-8111-111111111111";
    const refused = await run("--bg", "Look.", "--session-id", other);
    expect(refused).toMatchObject({ code: 1, out: "", err: expect.stringContaining("retinue rm 11111111") });
    await reaches("11111111", "working");
    expect(await one("11111111")).toMatchObject({ sessionId, kind: "background" });
    door.open();
    await reaches("11111111", "completed");
    await start("Look.", "--name", "another");
  });

  test("a name means the session that runs, an id is an id, and what is not clear is listed", async () => {
    const door = createDoor();
    const { run, start, reaches } = await openPlace(async ({ messages }) => {
      if (JSON.stringify(messages[0]).includes("Wait.")) await door.wait();
      return "Done.";
    });
    const first = await start("Look.", "--name", "deps");
    await reaches(first, "completed");
    expect((await run("logs", "deps")).out).toContain("> Look.");
    const second = await start("Wait.", "--name", "deps");
    await reaches(second, "working");
    expect((await run("rm", "deps")).err).toContain(`${second} still runs`);
    // Named like the beginning of the id of another.
    const third = await start("Look.", "--name", first.slice(0, 4));
    await reaches(third, "completed");
    expect((await run("rm", first.slice(0, 4))).err).toContain(`${third} (${first.slice(0, 4)}, completed)`);
    door.open();
    await reaches(second, "completed");
    const unclear = await run("stop", "deps");
    expect(unclear.err).toContain(`${first} (deps, completed)`);
    expect((await run("rm", first)).code).toBe(0);
    expect((await run("rm", "deps")).out).toContain(`${second} is removed`);
  });

  test("what the process of a failed session wrote is shown line by line, without what a terminal would act on", async () => {
    const { place, run, start, reaches } = await openPlace(() => ({ failure: "unauthorized" }));
    const id = await start("Look.");
    await reaches(id, "failed");
    const file = join(place.home, ".claude/background", `${id}.log`);
    writeFileSync(file, "one\ntwo\u001b[2J\n");
    expect((await run("logs", id)).err).toBe(`${id} is failed. Its last output:\none\ntwo\ufffd[2J\n`);
    writeFileSync(file, "");
    expect((await run("logs", id)).err).toBe(`${id} is failed.\n`);
  });

  test("one that cannot begin is an error with its reason, and leaves nothing behind", async () => {
    const { place, environment, run } = await openPlace(() => "Done.");
    for (const [words, why] of [
      [["--agent", "nobody"], "nobody"],
      [["--model", "a b"], "contains spaces"],
    ] as const) {
      let ended: Awaited<ReturnType<typeof runCommand>> | undefined;
      let sessionId = "";
      // On a machine that is too busy to start it in time, another time.
      await becomes(async () => {
        sessionId = randomUUID();
        ended = await runCommand(place, ["--bg", "Look.", "--session-id", sessionId, ...words], {
          environment,
        });
        return ended.code === 1;
      });
      expect(ended).toMatchObject({ out: "", err: expect.stringContaining(why) });
      expect(ended?.err).toMatch(/^retinue: The session could not start\. /);
      expect((await run("agents", "--json", "--all")).out).not.toContain(sessionId);
      const left = readdirSync(join(place.home, ".claude/background"));
      expect(
        left.filter((name) => name.startsWith(sessionId.slice(0, 8)) && !name.endsWith(".lock")),
      ).toEqual([]);
    }
  });

  test("what cannot be done is said before anything is started", async () => {
    const place = createPlace();
    const refusal = async (...words: readonly string[]) => {
      const { code, err } = await runInProcess(place, words, {});
      expect(code).not.toBe(0);
      return err;
    };
    expect(await refusal("--bg", "Look.")).toContain("needs a trusted folder");
    expect(await refusal("--bg")).toContain("No prompt was given");
    expect(await refusal("--bg", "Look.", "--fork-session")).toContain("--bg cannot continue a copy");
    expect(await refusal("--bg", "Look.", "--no-session-persistence")).toContain("needs a transcript");
    expect(await refusal("--bg", "Look.", "--trust", "--resume", "none")).toContain('no session "none"');
    expect(await refusal("attach", "none")).toContain('no session "none" in the background');
    expect(await refusal("rm", "none")).toContain('no session "none" in the background');
    expect(JSON.parse((await runInProcess(place, ["agents", "--json", "--all"], {})).out)).toEqual([]);
  });
});
