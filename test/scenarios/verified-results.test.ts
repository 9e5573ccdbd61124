import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VerifyInput } from "@retinue/config/settings/verify-checks.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";

const bash = (command: string): ScriptedStep => ({ calls: [{ name: "Bash", input: { command } }] });
const says = (text: string): ScriptedStep => ({ text });

interface Case {
  readonly steps: readonly ScriptedStep[];
  readonly verify: VerifyInput;
  readonly retries?: number;
  readonly isFlaky?: boolean;
}

const quiet = (run: string) => ({ run, retries: 0 });

/** True results: the work is done, and the named checks say so. */
const honest: readonly ((file: string, outside: string) => Case)[] = [
  (file) => ({ steps: [bash(`printf good > ${file}`), says("Done.")], verify: `grep -q good ${file}` }),
  (file) => ({
    steps: [bash(`printf bad > ${file}`), says("Done."), bash(`printf good > ${file}`), says("Fixed.")],
    verify: `grep -q good ${file}`,
    retries: 1,
  }),
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("Done.")],
    verify: [`test -f ${file}`, { run: `grep -c good ${file} > ${file}.log`, timeout: 20 }],
  }),
  (file, outside) => ({
    steps: [bash(`printf good > ${file}`), says("Done."), says("It is right as it is.")],
    verify: `test -f ${outside}/${file} && grep -q good ${file} || { touch ${outside}/${file}; exit 1; }`,
    retries: 1,
    isFlaky: true,
  }),
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("I could not run anything, sorry.")],
    verify: `printf '# tests 2\\n' && grep -q good ${file}`,
  }),
  // A runner with a test that passes, and one that leaves a process and much output behind.
  (file) => ({
    steps: [bash(`${testOf(file)}; cd /`), says("Done.")],
    verify: `${node} --test ${file}.mjs`,
  }),
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("Done.")],
    verify: `(sleep 60 &); yes line | head -c 200000; printf kept > ${file}.log; grep -q good ${file}`,
  }),
];

const node = `'${process.execPath}'`;

/** Writes a test that passes. */
const testOf = (file: string) =>
  `printf 'import { test } from "node:test"; test("adds", () => {});' > ${file}.mjs`;

/** False results: each claims that all is well. */
const dishonest: readonly ((file: string, outside: string) => Case)[] = [
  // Tests that were not run.
  (file) => ({
    steps: [bash(`printf bad > ${file}`), says("All tests pass.")],
    verify: quiet(`grep -q good ${file}`),
  }),
  // Tests that fail, before and after it was informed.
  (file) => ({
    steps: [bash(`printf bad > ${file}; grep -q good ${file}`), says("All pass."), says("They do pass.")],
    verify: { run: `grep -q good ${file}`, retries: 1 },
    retries: 1,
  }),
  // A file that was not written.
  (file) => ({ steps: [says(`I wrote ${file}.`)], verify: quiet(`test -f ${file}`) }),
  // An edit after the check.
  (file) => ({
    steps: [
      bash(`printf good > ${file}`),
      bash(`grep -q good ${file}`),
      bash(`printf bad > ${file}`),
      says("Verified."),
    ],
    verify: quiet(`grep -q good ${file}`),
  }),
  // A check that exits with 0 without running anything.
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("All pass.")],
    verify: quiet("printf '# tests 0\\n'"),
  }),
  // A check that cannot start.
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("All pass.")],
    verify: quiet(`./missing-${file}`),
  }),
  // A check that is ended by a signal.
  (file) => ({ steps: [bash(`printf good > ${file}`), says("All pass.")], verify: quiet("kill -9 $$") }),
  // Tests of which none fits, and tests that are all skipped.
  (file) => ({
    steps: [bash(testOf(file)), says("All pass.")],
    verify: quiet(`${node} --test --test-name-pattern=none ${file}.mjs`),
  }),
  (file) => ({
    steps: [bash(`printf good > ${file}`), says("All pass.")],
    verify: quiet("printf '1..2\\nok 1 one # skip\\nok 2 two # SKIP later\\n'"),
  }),
  // Edits behind the check that looked: with the same size and time, of the mode, of a link.
  (file) => ({
    steps: [bash(`printf good > ${file}; touch -r ${file} ${file}.time`), says("Verified.")],
    verify: [quiet(`grep -q good ${file}`), quiet(`printf bad! > ${file}; touch -r ${file}.time ${file}`)],
  }),
  (file) => ({
    steps: [bash(`printf '#!/bin/sh\\n' > ${file}; chmod +x ${file}`), says("Verified.")],
    verify: [quiet(`./${file}`), quiet(`chmod -x ${file}`)],
  }),
  (file) => ({
    steps: [
      bash(`printf good > ${file}.1; printf bad > ${file}.2; ln -s ${file}.1 ${file}`),
      says("Verified."),
    ],
    verify: [quiet(`grep -q good ${file}`), quiet(`ln -sfn ${file}.2 ${file}`)],
  }),
  // An edit by a process that the agent has left behind, between two checks.
  (file, outside) => ({
    steps: [
      bash(
        `printf good > ${file}; setsid sh -c 'until test -f ${outside}/${file}.go; do sleep 0.02; done; printf bad > ${file}; touch ${outside}/${file}.done' >/dev/null 2>&1 &`,
      ),
      says("Verified."),
    ],
    verify: [
      quiet(`grep -q good ${file}`),
      quiet(`touch ${outside}/${file}.go; until test -f ${outside}/${file}.done; do sleep 0.02; done`),
    ],
  }),
];

function outsideFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "outside-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function repository(cwd: string): void {
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
  for (const words of [
    ["init", "-q"],
    ["add", "-A"],
    ["commit", "-qm", "one", "--allow-empty"],
  ])
    execFileSync("git", [...identity, ...words], { cwd, stdio: "ignore" });
}

const forTask = (task: string, step: ScriptedStep): Step => ({
  match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes(`<${task}>`),
  ...step,
});

/** Of each of four folders, two of which are repositories; SEEDED_RESULTS=50 for the long run. Sixteen have each kind at least twice. */
const seededResults = Number(process.env["SEEDED_RESULTS"] ?? 16);

/** What is not as it should be, of results one after the other in one folder. */
async function findWrong(part: number, outside: string): Promise<readonly unknown[]> {
  const cases = Array.from({ length: seededResults }, (_, at) => {
    const seed = part * seededResults + at;
    const isTrue = seed % 2 === 0;
    const kinds = isTrue ? honest : dishonest;
    const make = kinds[Math.floor(seed / 2) % kinds.length];
    if (make === undefined) throw new Error("no kind");
    return { task: `task ${seed}.`, isTrue, ...make(`f${seed}.txt`, outside) };
  });
  await using sample = await createSampleRuntime(
    cases.flatMap(({ task, steps }) => steps.map((step) => forTask(task, step))),
  );
  if (part % 2 === 1) repository(sample.workspace.project);
  const session = await sample.runtime.open({ skipPermissions: true });
  const wrong: unknown[] = [];
  for (const { task, isTrue, verify, retries = 0, isFlaky = false } of cases) {
    const { status, receipt } = await session.spawn("general-purpose", `Do <${task}>`, { verify }).result;
    const found = {
      status,
      receipt: receipt?.status,
      retries: receipt?.retries,
      isFlaky: receipt?.checks.some(({ flaky }) => flaky !== undefined),
    };
    const expected = { status: "completed", receipt: isTrue ? "verified" : "failed-check", retries, isFlaky };
    if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push({ task, found, expected, receipt });
  }
  return wrong;
}

test("of seeded results, half of them false, no false one is verified, and none of the true ones rejected [VRF-1, VRF-3]", async () => {
  const outside = outsideFolder();
  const wrong = await Promise.all([0, 1, 2, 3].map((part) => findWrong(part, outside)));
  expect(wrong.flat()).toEqual([]);
}, 180_000);

const definition = (more: string) =>
  `---\nname: fixer\ndescription: Fixes things. Use it often.\n${more}\n---\nFix it.\n`;

async function play(
  steps: readonly Step[],
  {
    files = {},
    session = { skipPermissions: true },
    options = {},
    isGit = false,
  }: {
    readonly files?: Readonly<Record<string, string>>;
    readonly session?: SessionOptions;
    readonly options?: RuntimeOptions;
    readonly isGit?: boolean;
  } = {},
) {
  const sample = await createSampleRuntime(steps, { trusted: true, ...options });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  for (const [name, text] of Object.entries(files)) await sample.workspace.write(name, text);
  if (isGit) repository(sample.workspace.project);
  return { ...sample, session: await sample.runtime.open(session) };
}

describe("checks of an agent", () => {
  test("in its definition go back to it with their output, and its parent reads the receipt [VRF-1, VRF-2, VRF-3]", async () => {
    const { session, requests } = await play(
      [
        {
          match: "You are an engineer",
          calls: [{ name: "Agent", input: { description: "fix", prompt: "<fix>", subagent_type: "fixer" } }],
        },
        forTask("fix", bash("echo draft > a.txt")),
        forTask("fix", says("All pass.")),
        forTask("fix", bash("echo good > a.txt")),
        forTask("fix", says("Now they do.")),
        { match: "You are an engineer", text: "Thanks." },
      ],
      {
        files: { ".claude/agents/fixer.md": definition("verify: cat a.txt && grep -q good a.txt") },
        isGit: true,
      },
    );
    await session.run("Begin.").result;
    const told = requests.map(({ messages }) => JSON.stringify(messages.at(-1)));
    expect(told[3]).toContain("`cat a.txt && grep -q good a.txt` failed with exit code 1");
    expect(told[3]).toContain("draft");
    expect(told.at(-1)).toMatch(
      /Now they do\..*Result: verified; 1 of 1 checks passed on tree [0-9a-f]{12}\./,
    );
  });

  test("have a receipt with the git tree, files, tools and model, in the transcript and for hooks [VRF-2]", async () => {
    const outside = outsideFolder();
    const hook = { type: "command", command: `cat > ${outside}/hook.json` };
    const { session, workspace, home, runtime } = await play(
      [
        forTask("it", bash("echo good > new.txt")),
        forTask("it", says("Done.")),
        forTask("it", says("Still.")),
      ],
      {
        files: {
          "old.txt": "old",
          "../home/.claude/settings.json": JSON.stringify({
            verify: { fixer: "grep -q good new.txt" },
            hooks: { SubagentStop: [{ hooks: [hook] }] },
          }),
          ".claude/agents/fixer.md": definition("tools: Bash"),
        },
        isGit: true,
      },
    );
    const { receipt, agentId, sessionId } = await session.spawn("fixer", "Do <it>").result;
    const git = (...words: readonly string[]) =>
      execFileSync("git", words, { cwd: workspace.project, encoding: "utf8" }).trim();
    git("add", "-A");
    expect(receipt).toMatchObject({
      status: "verified",
      checks: [{ kind: "command", run: "grep -q good new.txt", passed: true, exitCode: 0 }],
      tree: { kind: "git", digest: git("write-tree") },
      retries: 0,
      changedFiles: ["new.txt"],
      tools: { Bash: 1 },
      definition: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    const input = JSON.parse(readFileSync(join(outside, "hook.json"), "utf8"));
    expect(input.receipt).toMatchObject({ status: "verified", tree: receipt?.tree });
    const projects = join(home, ".claude", "projects");
    const transcript = readdirSync(projects, { recursive: true }).find((name) =>
      String(name).endsWith(`agent-${agentId}.jsonl`),
    );
    const lines = readFileSync(join(projects, String(transcript)), "utf8");
    expect(lines).toContain('"receipt":{"status":"verified"');
    const inspection = await runtime.inspect(sessionId);
    expect(inspection.agents.find(({ id }) => id === agentId)?.receipt).toMatchObject({
      status: "verified",
      checks: [{ passed: true }],
    });
    const again = await session.spawn("fixer", "Do <it>", { resume: agentId }).result;
    expect(again.receipt).toMatchObject({ status: "verified", changedFiles: [] });
  });

  test("of a folder that is not trusted do not run, and that is no pass [VRF-1, VRF-3]", async () => {
    const { session, workspace } = await play([forTask("it", says("Done."))], {
      files: {
        ".claude/agents/fixer.md": definition("verify: touch ran.txt"),
        ".claude/settings.json": JSON.stringify({ verify: { fixer: "touch ran-too.txt" } }),
      },
      options: { trusted: false },
    });
    const { receipt } = await session.spawn("fixer", "Do <it>").result;
    expect(receipt).toMatchObject({
      status: "failed-check",
      retries: 0,
      checks: [{ notRun: true, reason: expect.stringContaining("not trusted") }],
    });
    expect([existsSync(workspace.path("ran.txt")), existsSync(workspace.path("ran-too.txt"))]).toEqual([
      false,
      false,
    ]);
  });

  test("that no rule allows are asked about once, before the agent starts; a no is no pass [VRF-1, VRF-3]", async () => {
    const asked: unknown[] = [];
    const { session, requests, workspace } = await play(
      [forTask("it", says("Done.")), forTask("it", says("Again."))],
      {
        session: {
          canUseTool: async (tool, input) => {
            asked.push([tool, input["command"], requests.length]);
            return asked.length === 1 ? { behavior: "deny" } : { behavior: "allow" };
          },
        },
      },
    );
    const no = await session.spawn("Explore", "Do <it>", { verify: "touch ran.txt" }).result;
    expect(no.receipt).toMatchObject({ status: "failed-check", checks: [{ notRun: true }] });
    expect(existsSync(workspace.path("ran.txt"))).toBe(false);
    const yes = await session.spawn("Explore", "Do <it>", { verify: "touch ran.txt" }).result;
    expect(yes.receipt).toMatchObject({ status: "verified", checks: [{ passed: true }] });
    expect(asked).toEqual([
      ["Bash", "touch ran.txt", 0],
      ["Bash", "touch ran.txt", 1],
    ]);
  });

  test("that a model names run only as a command that it, or the agent it starts, may run [VRF-1]", async () => {
    const call = (type: string) => ({
      match: "You only send",
      calls: [
        {
          name: "Agent",
          input: { description: "d", prompt: "<it>", subagent_type: type, verify: "touch ran.txt" },
        },
      ],
    });
    const { session, workspace } = await play(
      [call("reader"), forTask("it", says("Read.")), { match: "You only send", text: "Good." }],
      {
        files: {
          ".claude/agents/sender.md":
            "---\nname: sender\ndescription: Sends. Use it.\ntools: Agent(reader)\n---\nYou only send.",
          ".claude/agents/reader.md":
            "---\nname: reader\ndescription: Reads. Use it.\ntools: Read\n---\nRead.",
        },
        session: { skipPermissions: true, agent: "sender" },
      },
    );
    await session.run("Begin.").result;
    expect(existsSync(workspace.path("ran.txt"))).toBe(false);
  });

  test("have a time limit, and what a stopped agent left is not checked [VRF-3]", async () => {
    const { session } = await play([
      forTask("it", says("Done.")),
      forTask("it", { failure: "unauthorized" }),
    ]);
    const slow = { run: "sleep 60", timeout: 1, retries: 0 };
    const { receipt } = await session.spawn("Explore", "Do <it>", { verify: slow }).result;
    expect(receipt?.checks).toMatchObject([
      { passed: false, reason: "it did not end within its time limit of 1 s" },
    ]);
    const failed = await session.spawn("Explore", "Do <it>", { verify: "true" }).result;
    expect(failed).toMatchObject({
      status: "failed",
      receipt: { status: "failed-check", checks: [{ reason: "it was not run: the agent failed before" }] },
    });
  });

  test("are made stale by an edit after them: a stop hook makes the agent continue [VRF-3]", async () => {
    const outside = outsideFolder();
    const command = `test -f ${outside}/once || { touch ${outside}/once; echo 'Tidy up.' >&2; exit 2; }`;
    const { session } = await play(
      [
        forTask("it", bash("echo good > a.txt")),
        forTask("it", says("Done.")),
        forTask("it", bash("echo bad > a.txt")),
        forTask("it", says("Tidy.")),
      ],
      {
        files: {
          "../home/.claude/settings.json": JSON.stringify({
            hooks: { SubagentStop: [{ hooks: [{ type: "command", command }] }] },
          }),
        },
      },
    );
    const { receipt } = await session.spawn("general-purpose", "Do <it>", {
      verify: quiet("grep -q good a.txt"),
    }).result;
    expect(receipt).toMatchObject({ status: "failed-check", checks: [{ passed: false, exitCode: 1 }] });
  });

  test("of the main agent are in settings, and a typed output is one as well [VRF-1, VRF-2]", async () => {
    const { session } = await play([bash("echo good > a.txt"), says("Done.")], {
      files: { "../home/.claude/settings.json": JSON.stringify({ verify: { main: "grep -q good a.txt" } }) },
    });
    expect((await session.run("Begin.").result).receipt).toMatchObject({
      status: "verified",
      changedFiles: ["a.txt"],
    });
  });

  test("without checks a result is unverified, with facts beside it [VRF-2, VRF-4]", async () => {
    const write = { name: "Write", input: { file_path: "a.txt", content: "x" } };
    const { session } = await play([
      forTask("it", { calls: [write] }),
      forTask("it", says("I have run all tests.")),
    ]);
    const { receipt } = await session.spawn("general-purpose", "Do <it>").result;
    expect(receipt).toMatchObject({
      status: "unverified",
      checks: [],
      notes: ["Files were edited and no command was run."],
      tools: { Write: 1 },
    });
  });
});
