import { readFile } from "node:fs/promises";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test, vi } from "vitest";
import type { HookFunction } from "../../hooks/run-handler.ts";
import type { ModelRequest } from "../../models/model.ts";
import type { RuntimeOptions, SessionOptions } from "../options/runtime-options.ts";

type Groups = Readonly<Record<string, readonly object[]>>;

interface Setup {
  readonly hooks: Groups;
  readonly place?: "user" | "project";
  readonly settings?: object;
  readonly runtime?: RuntimeOptions;
}

/** A project whose settings hold hooks; each hook that runs leaves its input in a file. */
async function setUp(steps: readonly Step[], { hooks, place = "user", settings, runtime }: Setup) {
  const notices: string[] = [];
  const sample = await createSampleRuntime(steps, { onWarning: (text) => notices.push(text), ...runtime });
  const file = place === "user" ? "../home/.claude/settings.json" : ".claude/settings.json";
  await sample.workspace.write(file, JSON.stringify({ hooks, ...settings }));
  await sample.workspace.write("a.txt", "inside\n");
  return { ...sample, notices };
}

const command = (text: string, more: object = {}) => ({ type: "command", command: text, ...more });
const on = (event: string, text: string, more: { matcher?: string; handler?: object } = {}): Groups => ({
  [event]: [
    {
      matcher: more.matcher,
      hooks: [command(text, more.handler)],
    },
  ],
});
const print = (value: object) => `cat > /dev/null; echo '${JSON.stringify(value)}'`;
const read = (file_path: string) => ({ calls: [{ name: "Read", input: { file_path } }] });
const bash = (text: string) => ({ calls: [{ name: "Bash", input: { command: text } }] });

/** Everything that the model was shown last. */
function lastReported(requests: readonly ModelRequest[]): string {
  return JSON.stringify(requests.at(-1)?.messages.at(-1)?.content);
}

async function exists(sample: Pick<SampleRuntime, "workspace">, name: string): Promise<boolean> {
  return readFile(sample.workspace.path(name)).then(
    () => true,
    () => false,
  );
}

const allowBash: SessionOptions = { allowedTools: ["Bash(touch *)", "Bash(echo *)"] };

describe("[HKS-6] before a call", () => {
  test("a hook that denies keeps it from running and shows the model why", async () => {
    const hooks = on("PreToolUse", "echo 'not on a Friday' >&2; exit 2", { matcher: "Bash" });
    await using sample = await setUp([bash("touch made"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.", allowBash).result;
    expect(denials[0]?.reason).toBe("Bash was refused by a hook: not on a Friday");
    expect(lastReported(sample.requests)).toContain("not on a Friday");
    expect(await exists(sample, "made")).toBe(false);
  });

  test("a changed input is what runs, and the rules judge it again", async () => {
    const change = (text: string) =>
      on("PreToolUse", print({ hookSpecificOutput: { updatedInput: { command: text } } }));
    await using good = await setUp([bash("touch one"), "Done."], { hooks: change("touch two") });
    expect((await good.runtime.run("Go.", allowBash).result).denials).toEqual([]);
    expect([await exists(good, "one"), await exists(good, "two")]).toEqual([false, true]);
    await using bad = await setUp([bash("touch one"), "Done."], { hooks: change("rm a.txt") });
    expect((await bad.runtime.run("Go.", allowBash).result).denials).toHaveLength(1);
    expect(await exists(bad, "a.txt")).toBe(true);
  });

  test("a changed input that the tool cannot read is refused", async () => {
    const hooks = on("PreToolUse", print({ hookSpecificOutput: { updatedInput: { command: 5 } } }));
    await using sample = await setUp([bash("touch one"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.", allowBash).result;
    expect(denials[0]?.reason).toContain("a hook changed its input to one that is not valid");
  });

  test.each([
    ["prints half JSON", `printf '{"decision":'`],
    ["dies", "kill -KILL $$"],
    ["is not there", "/no/such/guard"],
  ])("a guard that %s does not let through", async (_title, text) => {
    await using sample = await setUp([bash("touch made"), "Done."], { hooks: on("PreToolUse", text) });
    const { denials } = await sample.runtime.run("Go.", {
      permissionMode: "bypassPermissions",
      skipPermissions: true,
    }).result;
    expect(denials[0]?.reason).toContain("a failing guard blocks the call");
    expect(await exists(sample, "made")).toBe(false);
    expect(sample.notices).toHaveLength(1);
  });

  test("a setting turns failing guards into warnings", async () => {
    const hooks = on("PreToolUse", "exit 1");
    await using sample = await setUp([bash("touch made"), "Done."], {
      hooks,
      settings: { failingHooks: "warn" },
    });
    expect((await sample.runtime.run("Go.", allowBash).result).denials).toEqual([]);
    expect(await exists(sample, "made")).toBe(true);
    expect(sample.notices[0]).toContain("it ended with code 1");
  });

  test("an allowing hook spares the question but lifts no rule", async () => {
    const hooks = on("PreToolUse", print({ hookSpecificOutput: { permissionDecision: "allow" } }));
    await using open = await setUp([bash("touch made"), "Done."], { hooks });
    expect((await open.runtime.run("Go.").result).denials).toEqual([]);
    expect(await exists(open, "made")).toBe(true);
    await using closed = await setUp([bash("touch made"), "Done."], { hooks });
    expect(
      (await closed.runtime.run("Go.", { disallowedTools: ["Bash(touch *)"] }).result).denials,
    ).toHaveLength(1);
  });

  test("a hook that wants to be asked is obeyed where a rule would allow", async () => {
    const hooks = on("PreToolUse", print({ hookSpecificOutput: { permissionDecision: "ask" } }));
    await using sample = await setUp([bash("touch made"), "Done."], { hooks });
    expect((await sample.runtime.run("Go.", allowBash).result).denials).toHaveLength(1);
  });

  test("a hook that says so ends the run", async () => {
    const hooks = on("PreToolUse", print({ continue: false, stopReason: "enough" }));
    await using sample = await setUp([bash("touch made"), "never asked"], { hooks });
    expect(await sample.runtime.run("Go.", allowBash).result).toMatchObject({ status: "stopped" });
    expect(sample.requests).toHaveLength(1);
  });

  test("a condition narrows a hook to calls under its rule", async () => {
    const hooks = on("PreToolUse", "exit 2", { matcher: "Bash", handler: { if: "Bash(touch *)" } });
    await using sample = await setUp([bash("touch made"), bash("echo hello"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.", allowBash).result;
    expect(denials.map(({ call }) => call.input)).toEqual([{ command: "touch made" }]);
  });
});

describe("[HKS-6] a permission that is asked for", () => {
  const answer = (decision: object) => on("PermissionRequest", print({ hookSpecificOutput: { decision } }));

  test("can be granted by a hook where no person is there", async () => {
    await using sample = await setUp([bash("touch made"), "Done."], { hooks: answer({ behavior: "allow" }) });
    expect((await sample.runtime.run("Go.").result).denials).toEqual([]);
    expect(await exists(sample, "made")).toBe(true);
  });

  test("can be refused by a hook before the program is asked", async () => {
    const asked: string[] = [];
    const canUseTool: RuntimeOptions["canUseTool"] = async (tool) => {
      asked.push(tool);
      return { behavior: "allow" };
    };
    const hooks = answer({ behavior: "deny", message: "ask me tomorrow" });
    await using sample = await setUp([bash("touch made"), "Done."], { hooks, runtime: { canUseTool } });
    expect((await sample.runtime.run("Go.").result).denials[0]?.reason).toContain("ask me tomorrow");
    expect(asked).toEqual([]);
  });

  test("is left to the others by a hook that fails, and no hook is asked about what rules allow", async () => {
    const hooks = on("PermissionRequest", "exit 1");
    await using sample = await setUp([bash("touch made"), read("a.txt"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials[0]?.reason).toContain("no one can be asked here");
    expect(sample.notices).toHaveLength(1);
  });
});

describe("after a call", () => {
  test("[HKS-5] a hook reads the result, and its word reaches the model", async () => {
    const hooks = on("PostToolUse", `cat > seen.json; echo 'run the linter' >&2; exit 2`, {
      matcher: "Read",
    });
    await using sample = await setUp([read("a.txt"), "Done."], { hooks });
    const { sessionId } = await sample.runtime.run("Go.").result;
    expect(lastReported(sample.requests)).toMatch(
      /inside.*<hook-feedback>\\nrun the linter\\n<\/hook-feedback>/,
    );
    const seen: unknown = JSON.parse(await readFile(sample.workspace.path("seen.json"), "utf8"));
    expect(seen).toMatchObject({
      session_id: sessionId,
      hook_event_name: "PostToolUse",
      tool_name: "Read",
      tool: "Read",
      permission_mode: "default",
      tool_response: expect.anything(),
    });
  });

  test("a failed call is another event", async () => {
    const hooks = {
      ...on("PostToolUse", "touch wrong"),
      ...on("PostToolUseFailure", print({ hookSpecificOutput: { additionalContext: "look in src" } })),
    };
    await using sample = await setUp([read("absent.txt"), "Done."], { hooks });
    await sample.runtime.run("Go.").result;
    expect(lastReported(sample.requests)).toContain("look in src");
    expect(await exists(sample, "wrong")).toBe(false);
  });

  test("a hook that fails is reported, and the run continues", async () => {
    await using sample = await setUp([read("a.txt"), "Done."], { hooks: on("PostToolUse", "exit 3") });
    expect(await sample.runtime.run("Go.").result).toMatchObject({ status: "completed", text: "Done." });
    expect(sample.notices[0]).toContain("it ended with code 3");
  });

  test("what a hook said before the call comes with its result", async () => {
    const hooks = on("PreToolUse", print({ hookSpecificOutput: { additionalContext: "this file is old" } }));
    await using sample = await setUp([read("a.txt"), "Done."], { hooks });
    await sample.runtime.run("Go.").result;
    expect(lastReported(sample.requests)).toContain("this file is old");
  });
});

describe("[HKS-1] around a prompt", () => {
  test("hooks add context, the start of the session once and the prompt each time", async () => {
    const hooks = { ...on("SessionStart", "echo begun"), ...on("UserPromptSubmit", "echo 'branch: main'") };
    await using sample = await setUp(["One.", "Two."], { hooks });
    await using session = await sample.runtime.open();
    await session.prompt("First.").result;
    expect(lastReported(sample.requests)).toMatch(/First\..*begun\\nbranch: main/);
    await session.prompt("Second.").result;
    expect(lastReported(sample.requests)).toContain("branch: main");
    expect(lastReported(sample.requests)).not.toContain("begun");
  });

  test("a refused prompt never reaches the model", async () => {
    const hooks = on("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0");
    await using sample = await setUp(["Fine."], { hooks });
    await using session = await sample.runtime.open();
    expect(await session.prompt("A secret.").result).toMatchObject({
      status: "failed",
      reason: "prompt_blocked",
      error: "A hook refused the prompt: no secrets",
    });
    expect(sample.requests).toEqual([]);
    expect(await session.prompt("Nothing special.").result).toMatchObject({ text: "Fine." });
    expect(JSON.stringify(sample.requests)).not.toContain("A secret.");
  });

  test("the session's start and end are reported with what they are", async () => {
    const hooks = { ...on("SessionStart", "cat >> start.txt"), ...on("SessionEnd", "cat >> end.txt") };
    await using sample = await setUp(["One."], { hooks });
    const { sessionId } = await sample.runtime.run("Go.").result;
    expect(await readFile(sample.workspace.path("start.txt"), "utf8")).toContain('"source":"startup"');
    expect(await readFile(sample.workspace.path("end.txt"), "utf8")).toContain('"reason":"other"');
    const later = sample.restart(["Two.", "Three."]);
    await later.runtime.run("Continue.", { resume: sessionId }).result;
    await later.runtime.run("Continue.", { resume: sessionId, forkSession: true }).result;
    const started = await readFile(sample.workspace.path("start.txt"), "utf8");
    expect(started.match(/"source":"\w+"/g)).toEqual(
      ["startup", "resume", "fork"].map((source) => `"source":"${source}"`),
    );
  });
});

describe("[HKS-6] at the end", () => {
  test("a Stop hook makes the agent continue with its reason", async () => {
    const hooks = on("Stop", "test -e ready && exit 0; touch ready; echo 'the tests fail' >&2; exit 2");
    await using sample = await setUp(["First.", "Second."], { hooks });
    expect(await sample.runtime.run("Go.").result).toMatchObject({ status: "completed", text: "Second." });
    expect(lastReported(sample.requests)).toContain("the tests fail");
  });

  test("but not for ever", async () => {
    const steps = Array.from({ length: 9 }, (_, index) => `Answer ${index + 1}.`);
    await using sample = await setUp(steps, { hooks: on("Stop", "echo 'again' >&2; exit 2") });
    expect(await sample.runtime.run("Go.").result).toMatchObject({ text: "Answer 9." });
    expect(sample.notices).toEqual(["Hooks made the agent continue 8 times in a row, so now it stops."]);
  });
});

describe("[HKS-2, PRM-11] hooks of a project", () => {
  const hooks = { ...on("PreToolUse", "touch ran; exit 2"), ...on("SessionStart", "touch ran") };
  const agent = [
    "---",
    "name: reviewer",
    "description: Reviews.",
    "hooks:",
    "  PreToolUse:",
    "    - hooks: [{type: command, command: 'touch ran-own; exit 2'}]",
    "---",
    "Review.",
    "",
  ].join("\n");

  async function run(trusted: boolean | undefined, session: SessionOptions = {}) {
    const runtime = trusted === undefined ? {} : { trusted };
    await using sample = await setUp([read("a.txt"), "Done."], { hooks, place: "project", runtime });
    await sample.workspace.write(".claude/agents/reviewer.md", agent);
    const { denials } = await sample.runtime.run("Go.", session).result;
    return {
      ran: await exists(sample, "ran"),
      ranOwn: await exists(sample, "ran-own"),
      denied: denials.length,
    };
  }

  test("run nothing before the folder is trusted, not even with its own agent", async () => {
    expect(await run(undefined)).toEqual({ ran: false, ranOwn: false, denied: 0 });
    expect(await run(false, { agent: "reviewer" })).toEqual({ ran: false, ranOwn: false, denied: 0 });
  });

  test("run once it is, the agent's own only for that agent", async () => {
    expect(await run(true)).toEqual({ ran: true, ranOwn: false, denied: 1 });
    expect(await run(true, { agent: "reviewer" })).toEqual({ ran: true, ranOwn: true, denied: 1 });
  });
});

describe("where hooks come from", () => {
  test("[HKS-2] those of a plugin know its root", async () => {
    await using sample = await setUp([read("a.txt"), "Done."], {
      hooks: {},
      runtime: { pluginDirectories: ["tidy"] },
    });
    await sample.workspace.write("tidy/.claude-plugin/plugin.json", JSON.stringify({ name: "tidy" }));
    const guard = `. "$CLAUDE_PLUGIN_ROOT/guard.sh"`;
    await sample.workspace.write("tidy/hooks/hooks.json", JSON.stringify({ hooks: on("PreToolUse", guard) }));
    await sample.workspace.write("tidy/guard.sh", "echo 'tidy says no' >&2; exit 2\n");
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials[0]?.reason).toContain("tidy says no");
  });

  test("those of a plugin that cannot be read are reported", async () => {
    await using sample = await setUp(["Done."], { hooks: {}, runtime: { pluginDirectories: ["tidy"] } });
    await sample.workspace.write("tidy/hooks/hooks.json", '{"hooks": ');
    await sample.runtime.run("Go.").result;
    expect(sample.notices[0]).toMatch(/hooks\.json: This is not valid JSON/);
  });

  test("[HKS-7] those of the program are functions", async () => {
    const received: string[] = [];
    const program: readonly HookFunction[] = [
      { event: "PreToolUse", run: ({ tool }) => void received.push(`before ${tool}`) },
      { event: "PostToolUse", run: ({ tool }) => void received.push(`after ${tool}`) },
      { event: "Stop", run: ({ last_assistant_message: text }) => void received.push(`end ${text}`) },
    ];
    await using sample = await setUp([read("a.txt"), "Done."], { hooks: {}, runtime: { hooks: program } });
    await sample.runtime.run("Go.").result;
    expect(received).toEqual(["before Read", "after Read", "end Done."]);
  });

  test("[HKS-7] a prompt is put to the session's model", async () => {
    const hooks = { PreToolUse: [{ hooks: [{ type: "prompt", prompt: "Safe? $ARGUMENTS" }] }] };
    const judge = { match: "Safe?", text: '{"ok": false, "reason": "it peeks"}' };
    await using sample = await setUp([read("a.txt"), judge, "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials[0]?.reason).toBe("Read was refused by a hook: it peeks");
  });

  describe("[HKS-7] an agent looks at the work before it answers", () => {
    const asking = { type: "agent", prompt: "Checked? $ARGUMENTS" };

    test("with tools that read, and its answer decides", async () => {
      const hooks = { PreToolUse: [{ matcher: "Bash", hooks: [asking] }] };
      await using sample = await setUp(
        [
          bash("touch made"),
          read("a.txt"),
          { match: "inside", text: '{"ok": false, "reason": "a.txt says inside"}' },
          "Done.",
        ],
        { hooks },
      );
      const { denials } = await sample.runtime.run("Go.", allowBash).result;
      expect(denials[0]?.reason).toBe("Bash was refused by a hook: a.txt says inside");
      expect(sample.requests[1]?.tools.map(({ name }) => name).sort()).toEqual(["Glob", "Grep", "Read"]);
      expect(await exists(sample, "made")).toBe(false);
    });

    test("deny rules hold for it, nothing outside is read, and hooks do not fire for its calls", async () => {
      const hooks = { Stop: [{ hooks: [asking] }], ...on("PreToolUse", "touch heard; exit 2") };
      await using sample = await setUp(
        [
          "Finished.",
          {
            calls: ["secret.txt", "/etc/hostname", "a.txt"].map((file_path) => ({
              name: "Read",
              input: { file_path },
            })),
          },
          '{"ok": true}',
        ],
        { hooks, settings: { permissions: { deny: ["Read(secret.txt)"] } } },
      );
      await sample.workspace.write("secret.txt", "classified\n");
      expect((await sample.runtime.run("Go.", { permissionMode: "bypassPermissions" }).result).text).toBe(
        "Finished.",
      );
      const seen = lastReported(sample.requests);
      expect(seen).toMatch(/inside/);
      expect(seen).not.toMatch(/classified/);
      expect(seen.match(/"is_error":true/g)).toHaveLength(2);
      expect(await exists(sample, "heard")).toBe(false);
    });

    test("and may read the transcript that the event names", async () => {
      const hooks = { Stop: [{ hooks: [asking] }] };
      const transcript = { name: "Read", input: { file_path: "" } };
      const program: readonly HookFunction[] = [
        {
          event: "Stop",
          run: ({ transcript_path: path }) => {
            transcript.input.file_path = String(path);
          },
        },
      ];
      await using sample = await setUp(["Finished.", { calls: [transcript] }, '{"ok": true}'], {
        hooks,
        runtime: { hooks: program },
      });
      await sample.runtime.run("Go with the marked words.").result;
      expect(lastReported(sample.requests)).toMatch(/marked words/);
    });
  });

  test("can be switched off, but not an organisation's", async () => {
    const settings = { disableAllHooks: true };
    await using off = await setUp([read("a.txt"), "Done."], { hooks: on("PreToolUse", "exit 2"), settings });
    expect((await off.runtime.run("Go.").result).denials).toEqual([]);
    await using managed = await setUp([read("a.txt"), "Done."], { hooks: {}, settings });
    const file = "../managed/managed-settings.json";
    await managed.workspace.write(file, JSON.stringify({ hooks: on("PreToolUse", "exit 2") }));
    expect((await managed.runtime.run("Go.").result).denials).toHaveLength(1);
  });
});

test("what runs beside the work ends with the session", async () => {
  const hooks = on("PostToolUse", "echo $$ > pid; sleep 83001.5", { handler: { async: true } });
  await using sample = await setUp([read("a.txt"), "Done."], { hooks });
  const session = await sample.runtime.open();
  expect(await session.prompt("Go.").result).toMatchObject({ text: "Done." });
  const pid = await vi.waitFor(async () => {
    const written = await readFile(sample.workspace.path("pid"), "utf8");
    expect(written).toMatch(/^\d+\n$/);
    return Number(written);
  }, 10_000);
  expect(isAlive(pid)).toBe(true);
  await session[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("[HKS-5] variables that hooks of the session's start leave for commands", () => {
  const setting = (text: string): Groups =>
    on("SessionStart", `cat > /dev/null; cat >> "$CLAUDE_ENV_FILE" <<'END'\n${text}\nEND`);
  const show = bash('echo "[$STAGE] [$QUOTED] [$ANTHROPIC_API_KEY] [$HOME] [$PATH]"');

  test("reach commands of the main agent and of children, as a shell reads them, but no keys and no other home", async () => {
    const text =
      'export STAGE=test\nQUOTED="two words"\nexport PATH="$PATH:/opt/own"\nANTHROPIC_API_KEY=x\nHOME=/elsewhere';
    await using sample = await setUp(
      [
        show,
        {
          calls: [
            { name: "Agent", input: { description: "d", prompt: "Look.", subagent_type: "general-purpose" } },
          ],
        },
        show,
        "Seen.",
        "Done.",
      ],
      { hooks: setting(text) },
    );
    await sample.runtime.run("Go.", allowBash).result;
    const said = `[test] [two words] [] [${sample.home}] [${process.env["PATH"]}:/opt/own]`;
    expect(lastReported(sample.requests.slice(0, 2))).toContain(said);
    expect(lastReported(sample.requests.slice(0, 4))).toContain(said);
    expect(sample.notices).toEqual([]);
  });

  test("are left out, and that is reported, when the file is too large", async () => {
    const hooks = on(
      "SessionStart",
      `cat > /dev/null; head -c 300000 /dev/zero | tr '\\0' '#' > "$CLAUDE_ENV_FILE"`,
    );
    await using sample = await setUp([show, "Done."], { hooks });
    await sample.runtime.run("Go.", allowBash).result;
    expect(lastReported(sample.requests)).toContain("[] []");
    expect(sample.notices).toEqual([
      expect.stringContaining("CLAUDE_ENV_FILE of SessionStart hooks could not be used"),
    ]);
  });

  test("are asked for at the start only", async () => {
    const hooks = on("PreToolUse", 'test -z "$CLAUDE_ENV_FILE"');
    await using sample = await setUp([bash("echo fine"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.", allowBash).result;
    expect(denials).toEqual([]);
  });
});

describe("[HKS-6] rules that a hook adds while it allows a call", () => {
  const allowing = (update: object): Groups =>
    on(
      "PermissionRequest",
      `echo asked >> asked.txt; ${print({
        hookSpecificOutput: {
          hookEventName: "PermissionRequest",
          decision: { behavior: "allow", updatedPermissions: [update] },
        },
      })}`,
    );
  const rules = (behavior: string, ruleContent: string, destination = "session") => ({
    type: "addRules",
    behavior,
    destination,
    rules: [{ toolName: "Bash", ruleContent }],
  });
  const asked = async (sample: Pick<SampleRuntime, "workspace">): Promise<number> =>
    (await readFile(sample.workspace.path("asked.txt"), "utf8")).trim().split("\n").length;

  test("hold for the rest of the session, so that the same is not asked again", async () => {
    const hooks = allowing(rules("allow", "touch *"));
    await using sample = await setUp([bash("touch one"), bash("touch two"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials).toEqual([]);
    expect(await exists(sample, "two")).toBe(true);
    expect(await asked(sample)).toBe(1);
    const file = await readFile(sample.workspace.path("../home/.claude/settings.json"), "utf8");
    expect(Object.keys(JSON.parse(file))).toEqual(["hooks"]);
  });

  test("never go before a deny rule", async () => {
    const hooks = allowing(rules("allow", "*"));
    await using sample = await setUp([bash("touch one"), bash("rm a.txt"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.", { disallowedTools: ["Bash(rm *)"] }).result;
    expect(denials).toHaveLength(1);
    expect(await exists(sample, "a.txt")).toBe(true);
  });

  test("may deny", async () => {
    const hooks = allowing(rules("deny", "touch two"));
    await using sample = await setUp([bash("touch one"), bash("touch two"), "Done."], { hooks });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials).toHaveLength(1);
    expect(await exists(sample, "two")).toBe(false);
  });

  test.each<[string, object, string]>([
    ["a settings file", rules("allow", "touch *", "localSettings"), "only users can save rules"],
    [
      "another mode",
      { type: "setMode", mode: "bypassPermissions", destination: "session" },
      "modes and folders cannot be changed",
    ],
    ["what is no rule", { ...rules("allow", ""), rules: [{ toolName: 7 }] }, "which is not a rule"],
    ["a word that means nothing", rules("always", "touch *"), "must be allow or deny"],
  ])("are not taken when they are meant for %s; the call itself is allowed and the person is notified", async (_, update, why) => {
    await using sample = await setUp([bash("touch one"), bash("touch two"), "Done."], {
      hooks: allowing(update),
    });
    await sample.runtime.run("Go.").result;
    expect(await asked(sample)).toBe(2);
    expect(sample.notices[0]).toContain(why);
  });
});
