import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import {
  createPlace,
  type Finished,
  type Place,
  readJsonLines,
  runCommand,
  runInProcess,
} from "./run-command.ts";

const session = "11111111-1111-4111-8111-111111111111";

async function provide(steps: readonly Step[]): Promise<Readonly<Record<string, string>>> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
}

/** A process that can make no file longer than so many kilobytes, which to it is a disk that is full. */
async function runOnFullDisk(
  { cwd, home }: Place,
  arguments_: readonly string[],
  { kilobytes, environment }: { kilobytes: number; environment: Readonly<Record<string, string>> },
): Promise<Finished> {
  const limited = `trap '' XFSZ; ulimit -f ${kilobytes}; exec "$@"`;
  const words = [process.execPath, join(projectRoot, "bin/retinue.js"), ...arguments_];
  const child = spawn("bash", ["-c", limited, "bash", ...words], {
    cwd,
    env: { HOME: home, PATH: process.env["PATH"], NODE_DISABLE_COMPILE_CACHE: "1", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { out, err, code };
}

function projectFolder({ home, cwd }: Place): string {
  return join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
}

describe.skipIf(process.platform === "win32")("[TRN-2] a disk that takes no more", () => {
  test("ends the run with the file and the reason, and leaves only whole lines", async () => {
    const place = createPlace();
    const environment = await provide([
      { text: "Short.", calls: [{ name: "Bash", input: { command: "true" } }] },
      { text: "long ".repeat(20_000) },
    ]);
    const { code, err, out } = await runOnFullDisk(
      place,
      ["-p", "go", "--session-id", session, "--dangerously-skip-permissions"],
      { kilobytes: 48, environment },
    );
    expect(code).toBe(1);
    expect(`${out}${err}`).toContain(`${session}.jsonl`);
    expect(`${out}${err}`).not.toMatch(/\n\s+at /);
    const lines = readFileSync(join(projectFolder(place), `${session}.jsonl`), "utf8");
    expect(lines.endsWith("\n")).toBe(true);
    expect(readJsonLines(lines).length).toBeGreaterThan(1);
  });

  test("where JSON is printed, the result is printed too, with the reason and what it took", async () => {
    const place = createPlace();
    const environment = await provide([
      { text: "Short.", calls: [{ name: "Bash", input: { command: "true" } }] },
      { text: "long ".repeat(20_000) },
    ]);
    const { code, out } = await runOnFullDisk(
      place,
      ["-p", "go", "--output-format", "json", "--dangerously-skip-permissions"],
      { kilobytes: 48, environment },
    );
    expect(code).toBe(1);
    const [result] = readJsonLines(out);
    expect(result).toMatchObject({
      type: "result",
      is_error: true,
      num_turns: 2,
      terminal_reason: "model_error",
    });
    expect(JSON.stringify(result?.["errors"])).toContain("exceed the allowed size");
  });

  test("a disk that takes nothing at all gives a result too", async () => {
    const place = createPlace();
    const environment = await provide([]);
    const { code, out, err } = await runOnFullDisk(place, ["-p", "go", "--output-format", "stream-json"], {
      kilobytes: 0,
      environment,
    });
    expect(code).toBe(1);
    expect(readJsonLines(out)).toMatchObject([{ type: "result", is_error: true, num_turns: 0 }]);
    expect(err).toContain("Could not write");
  });

  test("the session continues once there is room again, with the lost call answered as interrupted", async () => {
    const place = createPlace();
    const environment = await provide([
      { calls: [{ name: "Bash", input: { command: "head -c 20000 /dev/zero | tr '\\0' x" } }] },
      { calls: [{ name: "Bash", input: { command: "head -c 29000 /dev/zero | tr '\\0' y" } }] },
      {
        match: ({ messages }: ModelRequest) => JSON.stringify(messages.at(-1)).includes("try again"),
        text: "Back.",
      },
    ]);
    const full = await runOnFullDisk(
      place,
      ["-p", "go", "--session-id", session, "--dangerously-skip-permissions"],
      { kilobytes: 48, environment },
    );
    expect(full).toMatchObject({ code: 1 });
    const { code, out } = await runInProcess(place, ["-p", "try again", "--resume", session], {
      environment,
    });
    expect({ code, out }).toEqual({ code: 0, out: "Back.\n" });
    const lines = readFileSync(join(projectFolder(place), `${session}.jsonl`), "utf8");
    expect(lines).toContain("Interrupted: the session ended before a result of this call was recorded.");
  });

  test("a child whose transcript takes no more fails by itself, and its parent gets the reason", async () => {
    const place = createPlace();
    const environment = await provide([
      { match: "You are an engineer at a terminal", calls: [agentCall("fill")] },
      {
        match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes("fill it"),
        calls: [{ name: "Bash", input: { command: "head -c 29000 /dev/zero | tr '\\0' z" } }],
        times: 3,
      },
      {
        match: (request: ModelRequest) =>
          JSON.stringify(request.messages).includes("exceed the allowed size"),
        text: "It failed.",
      },
    ]);
    const { code, out } = await runOnFullDisk(place, ["-p", "go", "--dangerously-skip-permissions"], {
      kilobytes: 96,
      environment,
    });
    expect({ code, out }).toEqual({ code: 0, out: "It failed.\n" });
  });
});

function agentCall(description: string) {
  return { name: "Agent", input: { description, prompt: "fill it" } };
}

describe("a place that cannot be used", () => {
  test("[CLI-6] a folder for transcripts that cannot be made is reported in one sentence, before anything is asked", async () => {
    const place = createPlace();
    writeFileSync(join(place.home, "file"), "");
    const environment = await provide([]);
    const { code, err } = await runInProcess(place, ["-p", "go"], {
      environment: { ...environment, CLAUDE_CONFIG_DIR: join(place.home, "file", "below") },
    });
    expect(code).toBe(1);
    expect(err).toContain(join(place.home, "file"));
    expect(err).toContain("Move it out of the way.");
  });

  test("[TRN-2] a transcript that is a folder is no session, and nothing in it is touched", async () => {
    const place = createPlace();
    mkdirSync(join(projectFolder(place), `${session}.jsonl`), { recursive: true });
    const environment = await provide([]);
    const { code, err } = await runInProcess(place, ["-p", "go", "--session-id", session], { environment });
    expect(code).toBe(1);
    expect(err).toContain(`${session}.jsonl`);
    expect(readdirSync(join(projectFolder(place), `${session}.jsonl`))).toEqual([]);
  });

  test("[TRN-3] of two processes on one session the second is refused, and says who has it", async () => {
    const place = createPlace();
    const environment = await provide(["One."]);
    await runInProcess(place, ["-p", "go", "--session-id", session], { environment });
    const file = join(projectFolder(place), `${session}.jsonl`);
    const before = readFileSync(file, "utf8");
    const lock = takeOwnerLock(file);
    const { code, err } = await runCommand(place, ["-p", "more", "--resume", session], { environment });
    if (lock.type === "taken") lock.lock.release();
    expect(code).toBe(1);
    expect(err).toContain(String(process.pid));
    expect(readFileSync(file, "utf8")).toBe(before);
  });
});

/** Closes a folder to the user who runs this test: nothing in it can be made or removed. False where that is not possible. */
function closeFolder(folder: string): boolean {
  const isRoot = process.getuid?.() === 0;
  const close = isRoot ? ["chattr", "+i", folder] : ["chmod", "555", folder];
  const open = isRoot ? ["chattr", "-i", folder] : ["chmod", "755", folder];
  const run = ([file = "", ...words]: readonly string[]) =>
    spawnSync(file, words, { stdio: "ignore" }).status === 0;
  onTestFinished(() => void run(open));
  return run(close);
}

describe.skipIf(process.platform !== "linux")(
  "[TRN-2, CLI-6] a folder of transcripts that is closed during a run",
  () => {
    test("does not make a failure of a run that succeeded: status, exit code and output say the same", async () => {
      const place = createPlace();
      const closed = Promise.withResolvers<boolean>();
      const environment = await provide([
        {
          respond() {
            closed.resolve(closeFolder(projectFolder(place)));
            return "Done.";
          },
        },
      ]);
      const words = ["-p", "go", "--session-id", session, "--output-format", "json"];
      const { code, out, err } = await runCommand(place, words, { environment });
      await closed.promise;
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(JSON.parse(out)).toMatchObject({ subtype: "success", is_error: false, result: "Done." });
    });
  },
);
