import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findMarkedProcesses } from "@retinue/base/foundation/spawn-process.ts";
import type { FiredEvent, HookPayloads } from "@retinue/config/hooks/hook-input.ts";
import type { HookHandler, HookOrigin, SourcedHookRule } from "@retinue/config/hooks/hook-rule.ts";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CallOutcome, EventOutcome } from "./aggregate.ts";
import { createHookRunner, type HookRunnerOptions, type LateAnswer } from "./hook-runner.ts";

let directory: string;
let ids = 0;
const newId = () => `test-${process.pid}-${++ids}`;

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "run-hooks-")));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const never = new AbortController().signal;
const call = { tool: "Bash", input: { command: "ls" }, callId: "c-1" };
const settings: HookOrigin = { type: "settings", file: "settings.json" };

function hook(event: string, handler: Partial<HookHandler>, origin: HookOrigin = settings): SourcedHookRule {
  return { hook: { event, handler: { type: "command", ...handler } }, origin };
}

function runner(rules: readonly SourcedHookRule[], more: Partial<HookRunnerOptions> = {}) {
  return createHookRunner({
    rules,
    session: { sessionId: "s-1", transcript: "/t/s-1.jsonl" },
    projectDirectory: directory,
    environment: { PATH: process.env.PATH },
    graceMs: 200,
    newId,
    ...more,
  });
}

async function fire<Event extends FiredEvent>(
  rules: readonly SourcedHookRule[],
  event: Event,
  payload: HookPayloads[Event],
  more: Partial<HookRunnerOptions> & { signal?: AbortSignal } = {},
) {
  await using hooks = runner(rules, more);
  return await hooks.fire(event, payload, { signal: more.signal ?? never, cwd: directory });
}

const guard = (
  handler: Partial<HookHandler>,
  more: Partial<HookRunnerOptions> & { signal?: AbortSignal } = {},
) => fire([hook("PreToolUse", handler)], "PreToolUse", call, more);

/** Marks the processes of this run, so that another run on the machine does not count. */
const run = String(process.pid).padStart(7, "0");

describe("[HKS-5] a command", () => {
  test("reads the event as JSON and knows where it belongs", async () => {
    const file = join(directory, "seen.json");
    const command = `cat > ${file}; echo "$CLAUDE_PROJECT_DIR|$CLAUDE_PLUGIN_ROOT|$CLAUDE_PLUGIN_DATA|$CLAUDECODE|$CLAUDE_CODE_SESSION_ID|$PWD" > ${file}.env`;
    const origin: HookOrigin = { type: "plugin", name: "tidy", root: "/plugins/tidy", data: "/data/tidy" };
    const outcome = await fire([hook("PreToolUse", { command }, origin)], "PreToolUse", call);
    expect(outcome).toMatchObject({ type: "none", failures: [] });
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({
      session_id: "s-1",
      transcript_path: "/t/s-1.jsonl",
      cwd: directory,
      hook_event_name: "PreToolUse",
      tool_name: "Bash",
      tool: "Bash",
      tool_input: { command: "ls" },
      tool_use_id: "c-1",
    });
    expect(await readFile(`${file}.env`, "utf8")).toBe(
      `${directory}|/plugins/tidy|/data/tidy|1|s-1|${directory}\n`,
    );
  });

  test("with args runs without a shell, its variables filled in", async () => {
    const origin: HookOrigin = { type: "plugin", name: "tidy", root: "/plugins/tidy" };
    const args = ["-c", 'printf "%s" "$1" >&2; exit 2', "sh", `$${"{CLAUDE_PLUGIN_ROOT}"}/x $(id)`];
    const outcome = await fire(
      [hook("PreToolUse", { command: "/bin/sh", args }, origin)],
      "PreToolUse",
      call,
    );
    expect(outcome).toMatchObject({ type: "deny", reason: "/plugins/tidy/x $(id)" });
  });

  test("that does not read its input is no problem", async () => {
    const input = { command: "x".repeat(1_000_000) };
    const outcome = await fire([hook("PreToolUse", { command: "exit 0" })], "PreToolUse", { ...call, input });
    expect(outcome).toMatchObject({ type: "none", failures: [] });
  });

  test("decides by JSON", async () => {
    const said = { hookSpecificOutput: { permissionDecision: "ask", updatedInput: { command: "ls -l" } } };
    const file = join(directory, "answer.json");
    await writeFile(file, JSON.stringify(said));
    expect(await guard({ command: `cat ${file}` })).toMatchObject({
      type: "ask",
      updatedInput: { command: "ls -l" },
    });
  });
});

const broken: readonly [string, Partial<HookHandler>, RegExp][] = [
  ["hangs", { command: `sleep 82001${run}`, timeout: 0.2 }, /did not end within 0\.2 s and was ended/],
  [
    "hangs with children",
    { command: `sleep 82001${run} & sleep 82001${run} & wait`, timeout: 0.2 },
    /did not end within 0\.2 s/,
  ],
  [
    "ignores SIGTERM",
    { command: `trap '' TERM; while :; do sleep 0.82001${run}; done`, timeout: 0.2 },
    /did not end within 0\.2 s/,
  ],
  [
    "forks a daemon and hangs",
    { command: `setsid sleep 82001${run} & sleep 82001${run}`, timeout: 0.3 },
    /did not end within 0\.3 s/,
  ],
  ["floods its output", { command: "yes | head -c 3000000" }, /printed more than 1000000 characters/],
  ["dies by a signal", { command: "kill -SEGV $$" }, /killed by SIGSEGV/],
  ["prints half JSON", { command: `printf '{"decision": "app'` }, /JSON that is not complete/],
  ["exits with another code", { command: "echo oops >&2; exit 7" }, /ended with code 7: "oops"/],
  ["does not exist", { command: "/no/such/guard" }, /ended with code 127/],
  ["cannot be started", { command: "/no/such/guard", args: [] }, /could not be started: .*ENOENT/],
];

describe("[HKS-6, HKS-9] a guard that", () => {
  test.each(broken)("%s lets nothing through and leaves nothing behind", async (_title, handler, why) => {
    const outcome = await guard(handler);
    expect(outcome.type).toBe("deny");
    expect(outcome.reason).toMatch(why);
    expect(outcome.reason).toContain("a failing guard blocks the call");
    expect(livingCommands(`82001${run}`)).toEqual([]);
  });

  test.each(broken)(
    "%s is only reported where that was chosen",
    async (_title, handler, why) => {
      const [continues, warned] = await Promise.all([
        guard({ ...handler, onFailure: "continue" }),
        guard(handler, { warnOnly: true }),
      ]);
      expect(continues).toMatchObject({ type: "none", failures: [expect.stringMatching(why)] });
      expect(warned).toMatchObject({ type: "none", failures: [expect.stringMatching(why)] });
    },
    20_000,
  );

  test("forks a daemon that holds its output is not waited for, and the daemon is ended", async () => {
    const file = join(directory, "daemon.pid");
    const command = `setsid sh -c 'echo $$ > ${file}; exec sleep 82002${run}' & while ! test -s ${file}; do sleep 0.01; done; exit 2`;
    const outcome = await guard({ command });
    expect(outcome.type).toBe("deny");
    expect(livingCommands(`82002${run}`)).toEqual([]);
  });

  test("is cut off because the run is stopped lets nothing through", async () => {
    const controller = new AbortController();
    const pending = guard({ command: `sleep 82003${run}` }, { signal: controller.signal });
    await expect.poll(() => livingCommands(`82003${run}`)).not.toEqual([]);
    controller.abort();
    expect(await pending).toMatchObject({ type: "deny" });
    expect(livingCommands(`82003${run}`)).toEqual([]);
  });
});

describe("[HKS-6] a hook of another event", () => {
  test.each(broken)("that %s is reported, and the run continues", async (_title, handler, why) => {
    const outcome = await fire([hook("PostToolUse", handler)], "PostToolUse", { ...call, response: "" });
    expect(outcome).toMatchObject({ blocked: false, failures: [expect.stringMatching(why)] });
  });
});

describe("[HKS-9] the hooks of one event", () => {
  test("run together: each waits for the other", async () => {
    const meet = (mine: string, other: string) =>
      hook("Stop", {
        command: `touch ${directory}/${mine}; while ! test -e ${directory}/${other}; do sleep 0.01; done; echo '{"systemMessage":"${mine}"}'`,
        timeout: 20,
      });
    const outcome = await fire([meet("one", "two"), meet("two", "one")], "Stop", { isRepeated: false });
    expect(outcome).toMatchObject({ systemMessages: ["one", "two"], failures: [] });
  });

  test("have each its own limit", async () => {
    const rules = [
      hook("Stop", { command: `sleep 82004${run}`, timeout: 0.2 }),
      hook("Stop", { command: "sleep 0.4; echo 'not done' >&2; exit 2" }),
    ];
    const outcome = await fire(rules, "Stop", { isRepeated: false });
    expect(outcome).toMatchObject({ blocked: true, reason: "not done" });
    expect(outcome.failures).toHaveLength(1);
    expect(livingCommands(`82004${run}`)).toEqual([]);
  });
});

describe("a hook beside the work", () => {
  test.each<[string, Partial<HookHandler>]>([
    ["by its setting", { command: `sleep 82005${run}`, async: true }],
    ["by its own word", { command: `echo '{"async": true}'; sleep 82005${run}` }],
  ])("decides nothing and ends with the session (%s)", async (_title, handler) => {
    const hooks = runner([hook("PreToolUse", handler)]);
    const outcome = await hooks.fire("PreToolUse", call, { signal: never, cwd: directory });
    expect(outcome).toMatchObject({ type: "none", failures: [] });
    await hooks[Symbol.asyncDispose]();
    expect(livingCommands(`82005${run}`)).toEqual([]);
  });

  test("shows later what it has found, and wakes the model where it should", async () => {
    const late = Promise.withResolvers<LateAnswer>();
    const rule = hook("PostToolUse", { command: "echo 'the build broke' >&2; exit 2", asyncRewake: true });
    await using hooks = runner([rule], { onLate: late.resolve });
    await hooks.fire("PostToolUse", { ...call, response: "" }, { signal: never, cwd: directory });
    expect(await late.promise).toMatchObject({ wakes: true, context: "the build broke" });
  });

  test("keeps to its limit", async () => {
    const late = Promise.withResolvers<LateAnswer>();
    const rule = hook("Stop", { command: `sleep 82006${run}`, async: true, timeout: 0.1 });
    await using hooks = runner([rule], { onLate: late.resolve });
    await hooks.fire("Stop", { isRepeated: false }, { signal: never, cwd: directory });
    expect((await late.promise).failure).toMatch(/did not end within 0\.1 s/);
    expect(livingCommands(`82006${run}`)).toEqual([]);
  });

  test("is refused when too many run already", async () => {
    const rules = Array.from({ length: 51 }, (_, index) =>
      hook("Stop", { command: `sleep 82007${run} # ${index}`, async: true }),
    );
    const hooks = runner(rules.slice(0, 50));
    await hooks.fire("Stop", { isRepeated: false }, { signal: never, cwd: directory });
    const outcome: EventOutcome = await hooks.fire(
      "Stop",
      { isRepeated: false },
      { signal: never, cwd: directory },
    );
    expect(outcome.failures[0]).toContain("50 hooks already run in the background");
    await hooks[Symbol.asyncDispose]();
    expect(livingCommands(`82007${run}`)).toEqual([]);
  }, 30_000);
});

test("a text too long for a model is cut, and its whole kept in a file", async () => {
  const outputDirectory = join(directory, "kept");
  const command = "head -c 30000 /dev/zero | tr '\\0' x >&2; exit 2";
  const outcome = await guard({ command }, { outputDirectory });
  const [file = ""] = await readdir(outputDirectory);
  expect(outcome.reason).toContain(
    `cut at 10000 of 30000 characters; all of it is in ${join(outputDirectory, file)}`,
  );
  expect(await readFile(join(outputDirectory, file), "utf8")).toBe("x".repeat(30_000));
});

describe("[HKS-7] hooks that are no commands", () => {
  const prompt = { type: "prompt", prompt: "Is this safe? $ARGUMENTS", model: "haiku" } as const;

  test("a prompt is put to the model with the event in its place", async () => {
    const asked: string[] = [];
    const outcome: CallOutcome = await guard(prompt, {
      ask: async (text, { kind, model }) => {
        asked.push(`${kind} ${model} ${text}`);
        return '{"ok": false, "reason": "it lists"}';
      },
    });
    expect(outcome).toMatchObject({ type: "deny", reason: "it lists" });
    expect(asked[0]).toContain('prompt haiku Is this safe? {"session_id":"s-1"');
    expect(asked[0]).not.toContain("$ARGUMENTS");
  });

  test("a model that hangs, fails or rambles lets nothing through", async () => {
    const ask = (answer: () => Promise<string>) => guard({ ...prompt, timeout: 0.05 }, { ask: answer });
    expect((await ask(() => new Promise(() => undefined))).reason).toContain("did not answer within 0.05 s");
    expect((await ask(() => Promise.reject(new Error("overloaded")))).reason).toContain("overloaded");
    expect((await ask(async () => "Looks good to me!")).reason).toContain("did not answer with JSON");
    expect((await guard(prompt)).reason).toContain("no model here that a prompt hook could ask");
  });

  test("a tool of a server gets its input from the event", async () => {
    const handler = {
      type: "mcp_tool",
      server: "audit",
      tool: "check",
      input: {
        line: `run $${"{tool_input.command}"} in $${"{cwd}"}`,
        whole: `$${"{tool_input}"}`,
        none: `$${"{constructor.name}"}`,
      },
    } as const;
    const calls: unknown[] = [];
    const outcome = await guard(handler, {
      callTool: async (made) => {
        calls.push(made);
        return '{"decision": "block", "reason": "audited"}';
      },
    });
    expect(outcome).toMatchObject({ type: "deny", reason: "audited" });
    const input = { line: `run ls in ${directory}`, whole: { command: "ls" }, none: undefined };
    expect(calls).toEqual([{ server: "audit", tool: "check", input }]);
    expect((await guard(handler)).reason).toContain('the server "audit" is not connected here');
  });

  test("a function reads and answers like a command", async () => {
    const run = async (input: Readonly<Record<string, unknown>>) =>
      input["tool"] === "Bash" ? { decision: "block", reason: "in code" } : undefined;
    const functions = [{ event: "PreToolUse", matcher: "Bash|Edit", run }] as const;
    expect(await fire([], "PreToolUse", call, { functions })).toMatchObject({
      type: "deny",
      reason: "in code",
    });
    const other = await fire([], "PreToolUse", { ...call, tool: "Read" }, { functions });
    expect(other.type).toBe("none");
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      "throws",
      () => {
        throw new Error("a bug");
      },
      /a bug/,
    ],
    ["never ends", () => new Promise(() => undefined), /did not end within 0\.02 s/],
    ["gives nonsense", () => "yes", /must be an object/],
  ])("a function that %s lets nothing through", async (_title, run, why) => {
    const outcome = await fire([], "PreToolUse", call, {
      functions: [{ event: "PreToolUse", run, timeoutMs: 20 }],
    });
    expect(outcome.type).toBe("deny");
    expect(outcome.reason).toMatch(why);
  });
});

test("nothing marked by these tests is left running", () => {
  expect(findMarkedProcesses(`test-${process.pid}-`)).toEqual([]);
});

test("an event without listeners costs nothing", async () => {
  await using hooks = runner([hook("Stop", { command: "exit 2" })]);
  expect(hooks.receives("PreToolUse")).toBe(false);
  expect(hooks.receives("Stop")).toBe(true);
  expect(await hooks.fire("PreToolUse", call, { signal: never, cwd: directory })).toEqual({
    type: "none",
    reason: "",
    systemMessages: [],
    failures: [],
  });
});
