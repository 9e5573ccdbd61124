import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Finished, type Place, runCommand, runInProcess } from "./run-command.ts";

const meta =
  "export const meta = { name: 'many', description: 'Many agents', phases: [{ title: 'Work' }] }\n";

/** Parallel steps, then steps one after the other whose prompts hold results, then values for a schema. */
const script = `${meta}phase('Work')
const schema = { type: 'object', properties: { n: { type: 'string' } }, required: ['n'] }
const wide = await parallel(Array.from({ length: 70 }, (_, i) => () => agent('conv:w' + i + ' x', { label: 'w' + i })))
let last = ''
for (let i = 0; i < 10; i += 1) last = await agent('conv:d' + i + ' after ' + last, { label: 'd' + i })
const typed = await pipeline(Array.from({ length: 20 }, (_, i) => i), (i) => agent('conv:t' + i + ' x', { label: 't' + i, schema }))
return { wide, last, typed }
`;

const labelOf = (request: ModelRequest): string =>
  /conv:(\w+)/.exec(JSON.stringify(request.messages[0]))?.[1] ?? "?";

type Answered = string | StepAnswer | Promise<string | StepAnswer>;

async function stage(answer: (label: string) => Answered = (label) => `R-${label}`) {
  const counts = new Map<string, number>();
  const listeners = new Set<(total: number) => void>();
  let total = 0;
  const provider: FakeProvider = await startFakeProvider({
    keepsRequests: false,
    respond(request) {
      const label = labelOf(request);
      counts.set(label, (counts.get(label) ?? 0) + 1);
      total += 1;
      for (const listener of listeners) listener(total);
      if (label.startsWith("t")) return { calls: [{ name: "StructuredOutput", input: { n: label } }] };
      return answer(label);
    },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_LOCAL_MODELS: "0" };
  const run = (...words: string[]): Promise<Finished> => runInProcess(place, words, { environment });
  /** In a process of its own, which can be killed. */
  const start = (...words: string[]) => {
    let child: ChildProcess | undefined;
    const finished = runCommand(place, words, {
      environment,
      started: (process) => {
        child = process;
      },
    });
    return { finished, kill: () => void child?.kill("SIGKILL") };
  };
  return { place, counts, listeners, run, start };
}

/** The labels of the steps that the journal of the only run has as finished. */
function finishedLabels({ home }: Pick<Place, "home">): ReadonlySet<string> {
  const projects = join(home, ".claude/projects");
  if (!existsSync(projects)) return new Set();
  const [journal] = readdirSync(projects, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("journal.jsonl"),
  );
  if (journal === undefined) return new Set();
  const lines = readFileSync(join(projects, journal), "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"));
  const entries = lines.map((line) => JSON.parse(line) as Record<string, string>);
  const labels = new Map(
    entries.flatMap(({ type, key = "", label = "" }) => (type === "started" ? [[key, label]] : [])),
  );
  return new Set(entries.flatMap(({ type, key = "" }) => (type === "result" ? [labels.get(key) ?? ""] : [])));
}

/** `WORKFLOW_KILLS=200` tries more points. */
const kills = Number(process.env["WORKFLOW_KILLS"] ?? 4);

/** The same points for the same seed. */
function pointsFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe("a run of 100 agents", () => {
  test("killed with -9 at random points and resumed, it runs no finished agent again [WFL-3]", {
    timeout: 60_000 * Math.max(4, kills),
  }, async () => {
    const random = pointsFrom(Number(process.env["WORKFLOW_SEED"] ?? 7));
    let done = 0;
    while (done < kills) {
      const { place, counts, listeners, start } = await stage();
      place.write(".claude/workflows/many.js", script);
      place.write(".claude/settings.json", JSON.stringify({ workflows: { agents: 16 } }));
      let words = ["workflow", "run", "many", "--json"];
      const mustNot = new Map<string, number>();
      while (true) {
        const isLast = done >= kills || counts.size >= 100;
        const running = start(...words);
        const after =
          [...counts.values()].reduce((sum, count) => sum + count, 0) + 1 + Math.floor(random() * 40);
        const kill = (total: number): void => {
          if (!isLast && total >= after) running.kill();
        };
        listeners.add(kill);
        const ended = await running.finished;
        listeners.delete(kill);
        for (const label of finishedLabels(place))
          if (!mustNot.has(label)) mustNot.set(label, counts.get(label) ?? 0);
        const runId = !existsSync(join(place.home, ".claude/projects"))
          ? undefined
          : readdirSync(join(place.home, ".claude/projects"), {
              recursive: true,
              encoding: "utf8",
            }).flatMap((name) => /workflows\/(wf_[\w-]+)\.json$/.exec(name)?.[1] ?? [])[0];
        if (ended.code === 0) {
          const { result, totals } = JSON.parse(ended.out);
          expect(result).toEqual({
            wide: Array.from({ length: 70 }, (_, i) => `R-w${i}`),
            last: "R-d9",
            typed: Array.from({ length: 20 }, (_, i) => ({ n: `t${i}` })),
          });
          expect(totals).toMatchObject({ agents: 100, done: 100 });
          break;
        }
        expect(ended.code).toBe(null);
        done += 1;
        words = runId === undefined ? words : ["workflow", "resume", runId, "--json"];
      }
      // Whatever was finished at any of the kills was asked for no more.
      const again = [...mustNot].filter(([label, count]) => counts.get(label) !== count);
      expect(again).toEqual([]);
    }
  });
});

test("after a kill -9 show says what the journal has, and of two processes that resume the run one works on it [WFL-3, WFL-5]", {
  timeout: 180_000,
}, async () => {
  const gate = Promise.withResolvers<void>();
  const { place, counts, listeners, run, start } = await stage(async (label) => {
    if (label === "slow") await gate.promise;
    return `R-${label}`;
  });
  place.write(
    ".claude/workflows/gated.js",
    `${meta.replace("many", "gated")}return [await agent('conv:a x', { label: 'first' }), await agent('conv:slow x', { label: 'second' })]\n`,
  );
  const first = start("workflow", "run", "gated");
  listeners.add(() => counts.has("slow") && first.kill());
  expect((await first.finished).code).toBe(null);
  listeners.clear();
  const runId = /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec((await run("workflow", "list", "--runs")).out)?.[0] ?? "";
  const shown = await run("workflow", "show", runId);
  expect(shown.out).toMatch(/interrupted +1\/2 agents/);
  expect(shown.out).toMatch(/done +first[\s\S]*cut off +second/);
  const resumes = [1, 2].map(() => start("workflow", "resume", runId, "--json").finished);
  const loser = await Promise.race(resumes);
  expect([loser.code, loser.err]).toEqual([1, expect.stringContaining(runId)]);
  gate.resolve();
  const winner = (await Promise.all(resumes)).find((each) => each !== loser);
  expect(winner?.code, winner?.err).toBe(0);
  expect(JSON.parse(winner?.out ?? "")).toMatchObject({ result: ["R-a", "R-slow"] });
  expect(counts.get("a")).toBe(1);
});

describe("the command", () => {
  test("lists, plans, runs, shows and resumes without a model to start it [WFL-5]", async () => {
    const { place, counts, run } = await stage((label) =>
      label === "bad" && counts.get(label) === 1 ? { failure: "invalid-request" } : `R-${label}`,
    );
    place.write(
      ".claude/workflows/two.js",
      `${meta.replace("many", "two")}const a = await agent('conv:a x', { label: 'first' })\nconst b = await agent('conv:bad x', { label: 'second' })\nif (b === null) throw new Error('no b')\nreturn [args, a, b]\n`,
    );
    place.write(".claude/workflows/broken.js", "return 1\n");
    const list = await run("workflow", "list");
    expect(list.out).toContain("two  .claude/workflows/two.js");
    expect(list.out).toContain("broken.js:1:1: error");
    expect((await run("agents", "check")).out).toContain("broken.js:1:1: error");
    const plan = await run("workflow", "plan", "two");
    expect([plan.code, plan.out]).toEqual([0, expect.stringContaining("phase Work")]);
    expect(plan.out).toMatch(/2 agents, together likely[\s\S]*no phase +2 agents/);
    const json = JSON.parse((await run("workflow", "plan", "two", "--json")).out);
    expect(json.bill).toMatchObject({ isOpen: false, quote: { agents: 2 }, phases: [{}, { agents: 2 }] });
    const first = await run("workflow", "run", "two", "--args", '{"n":1}');
    expect([first.code, first.out]).toEqual([1, ""]);
    expect(first.err).toContain("Error: no b (");
    expect(first.err).toMatch(/two-wf_[\w-]+\.js:4\)/);
    const runId = /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec(first.err)?.[0] ?? "";
    expect((await run("workflow", "list", "--runs")).out).toMatch(
      new RegExp(`^${runId}  failed .* 1/2 agents`),
    );
    expect((await run("workflow", "show", runId)).out).toContain("failed   second");
    const second = await run("workflow", "resume", runId);
    expect([second.code, JSON.parse(second.out)]).toEqual([0, [{ n: 1 }, "R-a", "R-bad"]]);
    expect(second.err).toContain("✓ first (taken from the journal)");
    expect((await run("workflow", "show", runId)).out).toContain("taken    first");
    expect(Object.fromEntries(counts)).toEqual({ a: 1, bad: 2 });
    const third = await run(
      "workflow",
      "resume",
      runId,
      "--fresh",
      "first",
      "--output-format",
      "stream-json",
    );
    const types = third.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).type);
    expect([types[0], types.at(-1)]).toEqual(["started", "ended"]);
    expect(Object.fromEntries(counts)).toEqual({ a: 2, bad: 2 });
  });

  test("a script file is planned as it is run, and a step that fails at once is shown once [WFL-5]", async () => {
    const { place, run } = await stage();
    place.write(
      "job.js",
      `${meta}phase('Work')\nreturn await parallel([() => agent('conv:a x', { label: 'a' }), () => agent('b', { label: 'b', isolation: 'remote' })])\n`,
    );
    const plan = await run("workflow", "plan", "job.js");
    expect([plan.code, plan.out]).toEqual([
      0,
      expect.stringMatching(/^many: Many agents\n {2}from job\.js\n[\s\S]*2 agents, together likely/),
    ]);
    const ran = await run("workflow", "run", "job.js");
    expect(ran.code).toBe(0);
    expect(ran.err.match(/✗ b /g)).toHaveLength(1);
  });

  test("a label that no step has is reported, and so is a saved script that has changed since [WFL-3, WFL-5]", async () => {
    const { place, run, counts } = await stage();
    place.write(".claude/workflows/many.js", `${meta}return await agent('conv:a x', { label: 'first' })\n`);
    const ran = await run("workflow", "run", "many");
    const runId = /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec(ran.err)?.[0] ?? "";
    const unknown = await run("workflow", "resume", runId, "--fresh", "frist");
    expect(unknown.err).toContain('No step has the label "frist", so none was run again.');
    expect((await run("workflow", "resume", runId)).err).not.toContain("differs");
    place.write(".claude/workflows/many.js", `${meta}return await agent('conv:b x', { label: 'first' })\n`);
    const resumed = await run("workflow", "resume", runId);
    expect(resumed.err).toContain(
      "The run continues with its own script; .claude/workflows/many.js differs from it.",
    );
    expect(Object.fromEntries(counts)).toEqual({ a: 1 });
  });

  test("a resume has the model and effort of its run, and another mode only where it is named [WFL-3, WFL-5]", async () => {
    const { place, run, counts } = await stage();
    place.write(".claude/workflows/many.js", `${meta}return await agent('conv:a x', { label: 'first' })\n`);
    const flags = ["--model", "claude-opus-4-1", "--effort", "low", "--permission-mode", "acceptEdits"];
    const ran = await run("workflow", "run", "many", ...flags);
    const runId = /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec(ran.err)?.[0] ?? "";
    place.write(
      ".claude/workflows/many.js",
      `${meta}await agent('conv:a x', { label: 'first' })\nthrow new Error('no')\n`,
    );
    const failed = await run("workflow", "run", "many", ...flags);
    expect(failed.err).toMatch(/`retinue workflow resume wf_\S+ --permission-mode acceptEdits` continues it/);
    counts.set("a", 1);
    const refused = await run("workflow", "resume", runId);
    expect([refused.code, refused.err]).toEqual([
      2,
      expect.stringMatching(
        /was started in the permission mode acceptEdits\.[\s\S]*--permission-mode default if/,
      ),
    ]);
    const resumed = await run("workflow", "resume", runId, "--permission-mode", "acceptEdits");
    expect(resumed.err).toContain("✓ first (taken from the journal)");
    expect(Object.fromEntries(counts)).toEqual({ a: 1 });
    await run("workflow", "resume", runId, "--permission-mode", "default");
    expect(Object.fromEntries(counts)).toEqual({ a: 2 });
    expect((await run("workflow", "show", runId)).out).toContain("(its rights changed)");
  });

  test("what is no file that could be a script is not read [WFL-2, WFL-5]", async () => {
    const { place, run } = await stage();
    place.write(
      "job.js",
      `${meta}const t = (scriptPath) => workflow({ scriptPath }).catch((error) => error.message)\nreturn [await t('/dev/zero'), await t('.'), await t('big.js')]\n`,
    );
    place.write("big.js", "/".repeat(3_000_000));
    const { out } = await run("workflow", "run", "job.js");
    expect(JSON.parse(out)).toEqual([
      "The script /dev/zero is not a regular file.",
      expect.stringMatching(/ is not a regular file\.$/),
      expect.stringContaining("has 3000000 bytes; the maximum is 524288 characters."),
    ]);
  });

  test.each([
    [["workflow", "run", "nothing"], 2, 'Workflow "nothing" not found. Available: '],
    [["workflow", "run", "x", "--args", "{n"], 2, "--args is not JSON."],
    [["workflow", "show", "wf_none"], 1, "There is no workflow run"],
    [["workflow", "plan", "nothing"], 2, 'Workflow "nothing" not found. Available: '],
  ])("%j is refused with %i [WFL-5]", async (words, code, text) => {
    const { run } = await stage();
    const ended = await run(...words);
    expect([ended.code, ended.err]).toEqual([code, expect.stringContaining(text)]);
    expect(ended.err).not.toContain("    at ");
  });

  test("a run is stopped from another process [WFL-5]", async () => {
    const { place, counts, listeners, run } = await stage((label) =>
      label === "slow" ? { text: "late", delayMs: 60_000 } : "R",
    );
    place.write(
      ".claude/workflows/slow.js",
      `${meta.replace("many", "slow")}return [await agent('conv:a x'), await agent('conv:slow x')]\n`,
    );
    const isWorking = Promise.withResolvers<void>();
    listeners.add(() => counts.has("slow") && isWorking.resolve());
    const running = run("workflow", "run", "slow");
    await isWorking.promise;
    const list = await run("workflow", "list", "--runs");
    const runId = /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec(list.out)?.[0] ?? "";
    expect(list.out).toContain("running");
    expect((await run("workflow", "resume", runId)).err).toContain("still runs");
    expect((await run("workflow", "stop", runId)).out).toContain("was stopped");
    const ended = await running;
    expect([ended.code, ended.err]).toEqual([1, expect.stringContaining("killed: 1 of 2 agents done")]);
  });
});
