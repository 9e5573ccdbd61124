import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Finished, type Place, runCommand, runInProcess } from "./run-command.ts";

const session = "11111111-1111-4111-8111-111111111111";
const program = join(projectRoot, "bin/retinue.js");

async function provide(steps: readonly Step[]): Promise<Readonly<Record<string, string>>> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
}

/** Runs the command from a line of the shell; `$@` is the command. */
async function runIn(
  { cwd, home }: Place,
  line: string,
  arguments_: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const child = spawn("sh", ["-c", line, "sh", process.execPath, program, ...arguments_], {
    cwd,
    env: { HOME: home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code, out, err };
}

function projectFolder({ home, cwd }: Place): string {
  return join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
}

const hasStack = /\n\s+at |node:internal/;

describe.skipIf(process.platform === "win32")("[CLI-6] a place that is not there gives a sentence", () => {
  test("a working folder that was removed", async () => {
    const { code, err } = await runIn(createPlace(), 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', [
      "agents",
    ]);
    expect({ code, err }).toEqual({
      code: 1,
      err: "retinue: The folder Retinue was started in no longer exists.\nChange to an existing folder and run it again.\n",
    });
  });

  test.runIf(existsSync("/dev/full")).each([
    ["a list", ["agents", "list", "--json"]],
    ["a result", ["-p", "go", "--output-format", "json"]],
  ])("%s whose output cannot be written", async (_, arguments_) => {
    const { code, err } = await runIn(
      createPlace(),
      '"$@" > /dev/full',
      arguments_,
      await provide(["Done."]),
    );
    expect(code).toBe(1);
    expect(err).toContain("Could not write to stdout: the disk is full");
    expect(err).not.toMatch(hasStack);
  });

  test("a reader that leaves in the middle of a run hears how to continue", async () => {
    const place = createPlace();
    const steps = [
      { calls: [{ name: "Bash", input: { command: "while [ ! -e left ]; do sleep 0.05; done" } }] },
      "Done.",
    ];
    const line = '("$@"; echo "code $?" >&2) | (head -1; exec <&-; touch left)';
    const options = ["--output-format", "stream-json", "--dangerously-skip-permissions"];
    const { err } = await runIn(place, line, ["-p", "go", ...options], await provide(steps));
    expect(err).toMatch(
      /The output is no longer being read, so the run was stopped\. Resume it with `retinue -p --resume [0-9a-f-]{36}`/,
    );
    expect(err).toContain("code 0");
  });
});

describe.skipIf(process.platform === "win32")("[PRM-11] an untrusted folder is no one's home", () => {
  test.each(["", ".", "./", "home"])("with HOME %j its hooks do not run", async (home) => {
    const place = createPlace();
    const hook = { hooks: [{ type: "command", command: `touch '${join(place.cwd, "ran")}'` }] };
    for (const folder of ["", "home"])
      place.write(join(folder, ".claude/settings.json"), JSON.stringify({ hooks: { SessionStart: [hook] } }));
    const environment = { HOME: home, ...(await provide(["Done."])) };
    const run = home === "" || home === "home" ? runCommand : runInProcess;
    const { out } = await run(place, ["-p", "go", "--no-session-persistence"], { environment });
    expect(out).toBe("Done.\n");
    expect(existsSync(join(place.cwd, "ran"))).toBe(false);
  });
});

describe("[TRN-2] what a crash left of files", () => {
  test("lines of a transcript that are damaged or missing are reported with their number", async () => {
    const place = createPlace();
    const environment = await provide(["One.", "Two.", "Three."]);
    await runInProcess(place, ["-p", "first", "--session-id", session], { environment });
    await runInProcess(place, ["-p", "second", "--resume", session], { environment });
    const file = join(projectFolder(place), `${session}.jsonl`);
    const lines = readFileSync(file, "utf8").split("\n");
    const user = lines.findIndex((line) => line.includes('"second"'));
    lines[user] = (lines[user] ?? "").slice(0, 20);
    writeFileSync(file, lines.join("\n"));
    appendFileSync(file, '{"type":"user","uuid":"x');
    const { code, err } = await runInProcess(place, ["-p", "third", "--resume", session], { environment });
    expect(code).toBe(0);
    expect(err).toContain(
      `The transcript ${session} is damaged: 1 line cannot be read, the last line was cut off.`,
    );
  });

  test("a file that was half written beside the user's own goes, and nothing else", async () => {
    const place = createPlace();
    const notes = join(place.home, ".claude/retinue/temporary");
    mkdirSync(notes, { recursive: true });
    const note = (name: string, path: string, pid: number): void =>
      writeFileSync(join(notes, `${name}.json`), JSON.stringify({ ...thisProcess(), pid, path }));
    const left = join(place.cwd, ".a.txt.0123456789ab.tmp");
    const own = join(place.cwd, "notes.tmp");
    const busy = join(place.cwd, ".b.txt.0123456789ab.tmp");
    for (const file of [left, own, busy]) writeFileSync(file, "half");
    note("000000000001", left, 2 ** 22 + 7);
    note("000000000002", own, 2 ** 22 + 7);
    note("000000000003", busy, process.pid);
    const { out } = await runInProcess(place, ["clean"]);
    expect(out).toContain(".a.txt.0123456789ab.tmp (half written when its process died)");
    expect([left, own, busy].map((file) => existsSync(file))).toEqual([false, true, true]);
  });
});

describe("[TRN-4] a session that another process holds", () => {
  test("--take-over needs a session", async () => {
    const place = createPlace();
    const { code, err } = await runInProcess(place, ["-p", "go", "--take-over"]);
    expect(code).toBe(1);
    expect(err).toContain("--take-over needs a session.");
  });

  test("one on a machine that cannot be seen is taken over when it is reported to", async () => {
    const place = createPlace();
    const environment = await provide(["One.", "Two."]);
    await runInProcess(place, ["-p", "first", "--session-id", session], { environment });
    const lock = join(projectFolder(place), `${session}.jsonl.lock`);
    const owner = { pid: 7, machine: "elsewhere pid:[1]", started: "another-boot/1", expiresAfterMs: 60_000 };
    writeFileSync(lock, JSON.stringify({ ...owner, token: "x" }));
    const arguments_ = ["-p", "second", "--resume", session, "--take-over"];
    expect(await runInProcess(place, arguments_, { environment })).toMatchObject({ code: 0, out: "Two.\n" });
    expect(existsSync(lock)).toBe(false);
  });

  test("unless asked it waits for a sign of life, says so, and continues when there is none", async () => {
    const place = createPlace();
    const environment = await provide(["One.", "Two."]);
    await runInProcess(place, ["-p", "first", "--session-id", session], { environment });
    const lock = join(projectFolder(place), `${session}.jsonl.lock`);
    const owner = { pid: 7, machine: "elsewhere pid:[1]", started: "another-boot/1", expiresAfterMs: 1_500 };
    writeFileSync(lock, JSON.stringify({ ...owner, token: "x" }));
    const { code, out, err } = await runInProcess(place, ["-p", "second", "--resume", session], {
      environment,
    });
    expect({ code, out }).toEqual({ code: 0, out: "Two.\n" });
    expect(err).toContain("is held by process 7 on elsewhere, whose state cannot be checked from here.");
  });
});
