import { type ChildProcess, execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Finished, type Place, runCommand, runInProcess } from "./run-command.ts";

const main = (step: ScriptedStep): Step => ({ match: "You are an engineer at a terminal", ...step });
const child = (task: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(task),
  ...step,
});
const start = (prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description: prompt.toLowerCase(), prompt, ...more },
});
const bash = (command: string, more: object = {}) => ({ name: "Bash", input: { command, ...more } });
/** Says that it runs, and ends when its folder is gone. */
const endless = (mark: string) => `touch ${mark}; while [ -e ${mark} ]; do sleep 0.05; done`;

interface Stage extends Place {
  readonly provider: FakeProvider;
  run(...arguments_: string[]): Promise<Finished>;
  /** Starts a session and does something to its process as soon as files are there. */
  runUntil(
    files: readonly string[],
    act: (process_: ChildProcess) => void,
    more?: readonly string[],
  ): Promise<Finished>;
}

async function createStage(steps: readonly Step[]): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    run: (...arguments_) => runInProcess(place, arguments_, { environment }),
    async runUntil(files, act, more = []) {
      const begun = Promise.withResolvers<ChildProcess>();
      const flags = ["--dangerously-skip-permissions", "--output-format", "stream-json"];
      let isOver = false;
      const ended = runCommand(place, ["-p", "Begin.", ...flags, ...more], {
        environment,
        watch: (_, process_) => begun.resolve(process_),
      }).finally(() => {
        isOver = true;
      });
      while (!files.every((file) => existsSync(join(place.cwd, file)))) {
        if (isOver) throw new Error(`It ended too early: ${(await ended).err}`);
        await wait(5);
      }
      act(await begun.promise);
      return ended;
    },
  };
}

const sessionOf = (stage: Stage) => [...stage.transcripts().keys()][0] ?? "";
const folderOf = (stage: Stage) =>
  join(stage.home, ".claude/projects", stage.cwd.replace(/[^A-Za-z0-9]/g, "-"), sessionOf(stage));

/** Living processes that were started in the stage's folder. */
function livingIn({ cwd }: Place): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/stat`, "latin1");
      const isZombie = status.slice(status.lastIndexOf(")") + 2).startsWith("Z");
      return (
        !isZombie && readFileSync(`/proc/${pid}/environ`, "latin1").includes(`CLAUDE_PROJECT_DIR=${cwd}\0`)
      );
    } catch {
      return false;
    }
  });
}

const isLinux = process.platform === "linux";

describe.skipIf(!isLinux)("[TRN-4, CLI-6] a session that is ended by a signal", () => {
  test.each([
    ["SIGINT", 130, []],
    ["SIGTERM", 143, ["--approvals", "wait"]],
    ["SIGHUP", 129, []],
  ] as const)("%s ends with %i, says what was stopped and how to continue, and its agents are resumed [CLI-8, TRN-3]", async (signal, code, kept) => {
    const resumeAll = (request: ModelRequest) => {
      const text = JSON.stringify(request.messages);
      const ids = [...text.matchAll(/agent (a[0-9a-f]{16}) \(general-purpose, \\\\?"(task-\w+)/gi)];
      return {
        calls: ids.map(([, id = "", task = ""]) =>
          start(`Continue with ${task}.`, { resume: id, run_in_background: false }),
        ),
      };
    };
    const stage = await createStage([
      main({
        calls: [
          start("TASK-ONE", { run_in_background: false }),
          start("TASK-TWO", { run_in_background: true }),
        ],
      }),
      child("TASK-ONE", { calls: [bash("echo one >> log"), bash(endless("first"))] }),
      child("TASK-TWO", { calls: [bash(endless("second"))] }),
      main({ respond: resumeAll }),
      child("TASK-ONE", { text: "One after all." }),
      child("TASK-TWO", { text: "Two after all." }),
      main({ text: "Good." }),
    ]);
    const stopped = await stage.runUntil(["first", "second"], (process_) => process_.kill(signal), kept);

    const children = readdirSync(join(folderOf(stage), "subagents")).filter((name) =>
      name.endsWith(".jsonl"),
    );
    const ids = children.map((name) => name.slice("agent-".length, -".jsonl".length)).sort();
    expect(ids).toHaveLength(2);
    expect(stopped).toMatchObject({ code });
    expect(stopped.err).toContain(`Stopped by ${signal}, with 2 agents that can be resumed:`);
    for (const id of ids) expect(stopped.err).toContain(`  ${id}  general-purpose  task-`);
    const again = ["retinue -p --resume", sessionOf(stage), ...kept, '"Continue."'].join(" ");
    expect(stopped.err).toContain(`Continue: ${again}\n`);
    expect(livingIn(stage)).toEqual([]);
    expect(readdirSync(join(folderOf(stage), "commands"))).toEqual([]);

    // The conversation itself shows which agents are stopped, also to readers of the file alone.
    const spoken = JSON.stringify(stage.transcripts().get(sessionOf(stage)));
    for (const id of ids) expect(spoken).toMatch(new RegExp(`${id}[^}]*(It is stopped|\\))`));
    expect(spoken).toContain("They are stopped, what they did is kept");
    const listed = JSON.parse((await stage.run("tasks", "--interrupted", "--json")).out);
    expect(listed.tasks.map(({ id }: { readonly id: string }) => id).sort()).toEqual(ids);
    expect(listed.sessions).toMatchObject([{ id: sessionOf(stage) }]);

    const skip = "--dangerously-skip-permissions";
    const { out } = await stage.run("-p", "Continue.", "--continue", skip, "--output-format", "json");
    expect(JSON.parse(out)).toMatchObject({ result: "Good.", interrupted_agents: 2 });
    expect(readdirSync(join(folderOf(stage), "subagents")).filter((name) => name.endsWith(".jsonl"))).toEqual(
      children,
    );
    expect(readFileSync(join(stage.cwd, "log"), "utf8")).toBe("one\n");
    expect((await stage.run("tasks", "--interrupted")).out).toBe("");
  });

  test("repeats that come immediately are one request; a later one ends it immediately, with its commands", async () => {
    const stage = await createStage([main({ calls: [bash(`trap '' TERM; ${endless("deaf")}`)] })]);
    const { code } = await stage.runUntil(["deaf"], (process_) => {
      process_.kill("SIGINT");
      process_.kill("SIGINT");
      setTimeout(() => process_.kill("SIGINT"), 600);
    });
    expect(code).toBe(130);
    await expect.poll(() => livingIn(stage), { timeout: 10_000 }).toEqual([]);
  });
});

describe.skipIf(!isLinux)("[TRN-4] commands of a session that is killed", () => {
  test("end immediately; one in the background is reported as ended when the session continues [TSK-1]", async () => {
    const stage = await createStage([
      main({ calls: [bash(`echo hello; ${endless("server")}`, { run_in_background: true })] }),
      main({ calls: [bash(endless("reached"))] }),
      main({
        respond: (request) => {
          const id = /as task (b[0-9a-f]+)/.exec(JSON.stringify(request.messages))?.[1] ?? "";
          return { calls: [{ name: "TaskOutput", input: { task_id: id } }] };
        },
      }),
      main({ text: "Good." }),
    ]);
    await stage.runUntil(["server", "reached"], (process_) => process_.kill("SIGKILL"));
    await expect.poll(() => livingIn(stage), { timeout: 10_000 }).toEqual([]);
    expect((await stage.run("-p", "Continue.", "--continue")).out).toBe("Good.\n");
    const [reported, answered] = stage.provider.requests
      .slice(-2)
      .map(({ request }) => JSON.stringify(request.messages));
    expect(reported).toMatch(/<task-id>b[0-9a-f]+<\/task-id>.*<status>stopped<\/status>.*no longer runs/);
    expect(answered).toMatch(
      /Task b[0-9a-f]+ \(shell\): stopped.*ended together with the agent.*Output:\\nhello/,
    );
    expect(answered).not.toContain("There is no task");
  });

  test.each([
    ["clean", (stage: Stage) => stage.run("clean"), /ended {2}process group \d+: .*touch reached/],
    ["resuming", (stage: Stage) => stage.run("-p", "Continue.", "--continue"), /Good\./],
  ] as const)("without a watchdog are ended by %s", async (_what, act, said) => {
    const stage = await createStage([main({ calls: [bash(endless("reached"))] }), main({ text: "Good." })]);
    await stage.runUntil(["reached"], (process_) => {
      const dogs = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(process_.pid)], {
        encoding: "utf8",
      });
      for (const line of dogs.split("\n"))
        if (line.includes("retinue-watchdog")) process.kill(Number.parseInt(line, 10), "SIGKILL");
      process_.kill("SIGKILL");
    });
    expect(livingIn(stage)).not.toEqual([]);
    expect((await act(stage)).out).toMatch(said);
    expect(livingIn(stage)).toEqual([]);
    expect(readdirSync(join(folderOf(stage), "commands"))).toEqual([]);
  });
});
