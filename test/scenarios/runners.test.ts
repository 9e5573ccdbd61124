import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { RunHandle } from "@retinue/core/kernel/run-handle.ts";
import { createSandboxRuntime } from "@retinue/core/tools/sandbox/sandbox-runtime.ts";
import { readSandboxSettings } from "@retinue/core/tools/sandbox/sandbox-settings.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test, vi } from "vitest";
import { projectRoot } from "../project-files.ts";
import { countedServer } from "./counted-server.ts";

const script = join(projectRoot, "test/scenarios/acp-agent.ts");
/** Without the cache, each start compiles the official package for as long as the whole test takes. */
const agent = ["env", `NODE_COMPILE_CACHE=${process.env["NODE_COMPILE_CACHE"]}`, process.execPath, script];

/** Why programs cannot run in the sandbox of the settings here; undefined where they can. */
async function whyNoSandbox(): Promise<string | undefined> {
  await using runtime = createSandboxRuntime();
  const start = await runtime.start(readSandboxSettings({ enabled: true }));
  return start.type === "ready" ? undefined : start.why;
}

const noSandbox = await whyNoSandbox();

interface Staging extends Omit<RuntimeOptions, "settings"> {
  /** Fields of the definition of `vendor`. */
  readonly fields?: object;
  /** Fields below `runner`. */
  readonly runner?: object;
  /** How the small agent misbehaves. */
  readonly flags?: readonly string[];
  readonly steps?: readonly Step[];
  readonly settings?: object;
  /** It keeps its conversations in the project, where a sandbox lets it write. */
  readonly inProject?: boolean;
}

/** A session whose agent `vendor` runs in the small agent of the official package. */
async function stage({
  fields = {},
  flags = [],
  runner = {},
  steps = [],
  settings,
  inProject = false,
  ...options
}: Staging = {}) {
  const sample = await createSampleRuntime([...steps], {
    trusted: true,
    permissionMode: "bypassPermissions",
    ...options,
  });
  const { workspace } = sample;
  const state = join(inProject ? workspace.project : workspace.root, "state");
  const lines = Object.entries({
    name: "vendor",
    description: "Works elsewhere.",
    runner: { acp: [...agent, state, ...flags], ...runner },
    ...fields,
  }).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  await workspace.write(".claude/agents/vendor.md", `---\n${lines.join("\n")}\n---\nYou are the vendor.\n`);
  if (settings !== undefined) await workspace.write(".claude/settings.json", JSON.stringify(settings));
  return { sample, state, project: workspace.project };
}

const task = (...steps: object[]): string => `Do this:\n${JSON.stringify(steps)}`;

/** Everything that it said, line by line, and how it ended. */
async function finished(handle: RunHandle) {
  const lines: string[] = [];
  const calls: { name: string; input: unknown; denied?: string; by?: string }[] = [];
  for await (const event of handle.events) {
    if (event.type === "assistant-answered")
      for (const block of event.message.content)
        if (block.type === "text") lines.push(...block.text.split("\n"));
    if (event.type === "call-finished") {
      const { call, denied, allowed } = event;
      calls.push({
        name: call.name,
        input: call.input,
        ...(denied === undefined ? {} : { denied }),
        ...(allowed === undefined ? {} : { by: allowed.by }),
      });
    }
  }
  return { lines, calls, result: await handle.result };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A server that no program in a sandbox may reach. */
async function listening() {
  const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

/** The other processes that know of a folder, by their arguments or variables. */
function processesOf(folder: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    try {
      return ["cmdline", "environ"].some((file) =>
        readFileSync(`/proc/${pid}/${file}`, "utf8").includes(folder),
      );
    } catch {
      return false;
    }
  });
}

describe("[FRN-1] an agent of another vendor", () => {
  test("gets the prompt of its definition and its task, and its words are the result", async () => {
    const { sample } = await stage();
    await using _ = sample;
    await using session = await sample.runtime.open();
    const result = await session.spawn("vendor", "Look around.").result;
    expect(result).toMatchObject({ status: "completed" });
    expect(result.text).toContain("You are the vendor.");
    expect(result.text).toContain("Look around.");
    expect(result.totals).toMatchObject({ usage: { inputTokens: 20, outputTokens: 10 } });
    expect(sample.requests).toHaveLength(0);
  });

  test("has its files and commands served by our tools", async () => {
    const { sample, project } = await stage();
    await using _ = sample;
    await sample.workspace.write("a.txt", "one\ntwo\nthree\n");
    await using session = await sample.runtime.open();
    const a = join(project, "a.txt");
    const { lines, calls, result } = await finished(
      session.spawn(
        "vendor",
        task(
          { read: a },
          { read: a, line: 2, limit: 1 },
          { write: a, content: "new\n" },
          { run: "echo out; exit 3" },
          { run: "printf", args: ["%s|", "a b", "$HOME"] },
          { run: "sh", args: ["-c", "echo $FLAG; pwd"], env: { FLAG: "set" }, cwd: "/" },
          { run: "sleep 600", kill: true },
        ),
      ),
    );
    expect(result).toMatchObject({ status: "completed" });
    expect(lines).toEqual([
      'read "one\\ntwo\\nthree\\n"',
      'read "two"',
      "written",
      'ran {"exitCode":3,"output":"out\\n"}',
      'ran {"exitCode":0,"output":"a b|$HOME|"}',
      'ran {"exitCode":0,"output":"set\\n/\\n"}',
      'ran {"signal":"SIGTERM","output":""}',
    ]);
    expect(calls.map(({ name }) => name)).toEqual(["Read", "Read", "Write", "Bash", "Bash", "Bash", "Bash"]);
    expect(readFileSync(a, "utf8")).toBe("new\n");
  });

  test("meets deny rules, protected paths and the check for stale files there", async () => {
    const { sample, project } = await stage({
      permissionMode: "acceptEdits",
      runner: { unguarded: true },
      settings: { permissions: { deny: ["Read(secret.txt)", "Edit(kept/**)", "Bash(rm *)"] } },
    });
    await using _ = sample;
    await sample.workspace.write("secret.txt", "key");
    await sample.workspace.write("unread.txt", "old");
    await using session = await sample.runtime.open();
    const { lines, calls } = await finished(
      session.spawn(
        "vendor",
        task(
          { read: join(project, "secret.txt") },
          { write: join(project, "kept/a.txt"), content: "x" },
          { write: join(project, ".git/hooks/pre-commit"), content: "x" },
          { write: join(sample.workspace.root, "outside.txt"), content: "x" },
          { write: join(project, "unread.txt"), content: "x" },
          { run: "rm", args: ["-rf", "unread.txt"] },
          { run: "env rm -f unread.txt" },
          { write: join(project, "free.txt"), content: "x" },
        ),
      ),
    );
    const starts = [
      "failed: Read was not allowed: the rule Read(secret.txt)",
      "failed: Write was not allowed: the rule Edit(kept/**)",
      "failed: Write was not allowed: ",
      "failed: Write was not allowed: ",
      `failed: ${join(project, "unread.txt")} exists and was not read yet`,
      "failed: Bash was not allowed: the rule Bash(rm *)",
      "failed: Bash was not allowed: the rule Bash(rm *)",
      "written",
    ];
    expect(lines).toEqual(
      starts.map((start) =>
        expect.stringMatching(new RegExp(`^${start.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`)),
      ),
    );
    expect(calls.filter(({ denied }) => denied !== undefined)).toHaveLength(6);
    expect(readFileSync(join(project, "unread.txt"), "utf8")).toBe("old");
    expect(existsSync(join(project, "kept"))).toBe(false);
  });

  const edit = (path: string, oldText: string | null, newText: string) => ({
    toolCallId: "e1",
    kind: "edit",
    title: "Edit",
    content: [{ type: "diff", path, oldText, newText }],
  });

  test("asks our people for what it asks permission for, once, and never for good", async () => {
    const asked: { tool: string; input: unknown }[] = [];
    const { sample, project } = await stage({
      permissionMode: "default",
      approver: {
        approve: async ({ tool, input }) => {
          asked.push({ tool, input });
          return JSON.stringify(input).includes("forbidden")
            ? { type: "deny" }
            : { type: "allow", for: "call" };
        },
      },
    });
    await using _ = sample;
    const file = await sample.workspace.write("a.txt", "old\n");
    await using session = await sample.runtime.open();
    const { lines, calls } = await finished(
      session.spawn(
        "vendor",
        task(
          { ask: { toolCallId: "c1", kind: "execute", rawInput: { command: "touch b.txt" } } },
          {
            ask: {
              toolCallId: "c2",
              kind: "execute",
              rawInput: { command: ["bash", "-lc", "touch forbidden"] },
            },
          },
          { ask: edit(file, "old\n", "new\n"), after: "write" },
          { ask: { toolCallId: "c3", kind: "other", title: "Dance", rawInput: { steps: 3 } } },
          {
            ask: { toolCallId: "c4", kind: "execute", rawInput: { command: "touch c.txt" } },
            options: [{ optionId: "always", name: "Always", kind: "allow_always" }],
          },
        ),
      ),
    );
    expect(lines).toEqual([
      "answered yes",
      "answered no",
      "answered yes",
      "answered yes",
      "answered cancelled",
    ]);
    expect(asked.map(({ tool }) => tool)).toEqual(["Bash", "Bash", "Write", "RunnerTool"]);
    expect(asked[1]?.input).toMatchObject({ command: "touch forbidden" });
    expect(readFileSync(join(project, "a.txt"), "utf8")).toBe("new\n");
    expect(calls.map(({ name, by, denied }) => [name, by, denied !== undefined])).toEqual([
      ["Bash", "person", false],
      ["Bash", undefined, true],
      // The write that was asked for, and the request itself.
      ["Write", "person", false],
      ["Write", "person", false],
      ["RunnerTool", "person", false],
      // Only for good is no answer, so no question is asked.
      ["Bash", undefined, true],
    ]);
  });

  test("is asked about another content than was shown", async () => {
    let asked = 0;
    const { sample } = await stage({
      permissionMode: "default",
      approver: {
        approve: async () => {
          asked += 1;
          return asked === 1 ? { type: "allow", for: "call" } : { type: "deny" };
        },
      },
    });
    await using _ = sample;
    const file = await sample.workspace.write("a.txt", "old");
    await using session = await sample.runtime.open();
    const { lines } = await finished(
      session.spawn("vendor", task({ ask: edit(file, "old", "shown") }, { write: file, content: "other" })),
    );
    expect(lines[1]).toContain("failed: Write was not allowed");
    expect(readFileSync(file, "utf8")).toBe("old");
  });

  test.each([
    ["a command by a rule", "Bash(touch *)", { kind: "execute", rawInput: { command: "touch x" } }],
    ["a command of another kind", "Bash(touch *)", { kind: "other", rawInput: { command: "touch x" } }],
    ["a command that is only in the title", "Bash(touch *)", { kind: "execute", title: "`touch x`" }],
    ["a file by its place", "Edit(kept.txt)", { kind: "edit", locations: [{ path: "kept.txt" }] }],
    [
      "one of several files",
      "Edit(kept.txt)",
      { kind: "move", rawInput: { path: "a.txt", newPath: "kept.txt" } },
    ],
    [
      "files of a patch",
      "Edit(kept.txt)",
      { kind: "edit", rawInput: { changes: { "a.txt": {}, "kept.txt": {} } } },
    ],
    ["reading", "Read(kept.txt)", { kind: "read", locations: [{ path: "kept.txt" }] }],
    [
      "a page",
      "WebFetch(domain:evil.example)",
      { kind: "fetch", rawInput: { url: "https://evil.example/x" } },
    ],
    ["a tool of a server", "mcp__files", { kind: "other", name: "mcp__files__delete", rawInput: {} }],
    ["whatever else", "RunnerTool", { kind: "other", title: "Dance" }],
    [
      "a command that looks like a tool of a server",
      "Bash(touch *)",
      { kind: "execute", title: "mcp__a; touch x; echo __b" },
    ],
    [
      "a command under the name of one",
      "Bash(touch *)",
      { kind: "execute", title: "mcp__files__x", rawInput: { command: "touch x" } },
    ],
    [
      "a change under the name of one",
      "Edit(kept.txt)",
      { kind: "edit", title: "mcp__files__x", locations: [{ path: "kept.txt" }] },
    ],
    [
      "a command with arguments of its own",
      "Bash(touch x)",
      { kind: "execute", rawInput: { command: "touch", args: ["x"] } },
    ],
    [
      "a command deeper in its input",
      "Bash(touch *)",
      { kind: "execute", title: "Run", rawInput: { input: { script: "touch x" } } },
    ],
    [
      "one of several commands",
      "Bash(touch *)",
      { kind: "execute", rawInput: { commands: ["ls", "touch x"] } },
    ],
    [
      "files deeper in its input",
      "Edit(kept.txt)",
      { kind: "edit", rawInput: { edits: [{ filePath: "a.txt" }, { filePath: "kept.txt" }] } },
    ],
    [
      "files in the text of a patch",
      "Edit(kept.txt)",
      { kind: "edit", rawInput: { patch: "*** Begin Patch\n*** Update File: kept.txt\n*** End Patch" } },
    ],
    [
      "the other end of a move",
      "Edit(kept.txt)",
      { kind: "move", rawInput: { from: "a.txt", to: "kept.txt" } },
    ],
    [
      "a file by a URL",
      "Edit(//tmp/kept.txt)",
      { kind: "edit", locations: [{ path: "file:///tmp/kept.txt" }] },
    ],
    ["a file of something unknown", "Read(kept.txt)", { kind: "other", rawInput: { path: "kept.txt" } }],
    ["a change by something unknown", "Edit(kept.txt)", { kind: "think", rawInput: { path: "kept.txt" } }],
    [
      "a page that only its words name",
      "WebFetch(domain:evil.example)",
      { kind: "fetch", title: "Fetching https://evil.example/x." },
    ],
    [
      "a page by something unknown",
      "WebFetch(domain:evil.example)",
      { kind: "other", rawInput: { url: "https://evil.example/x" } },
    ],
    ["a change of its mode", "Edit(nothing.txt)", { kind: "switch_mode", title: "Ready to code?" }],
  ])("is refused %s", async (_what, rule, call) => {
    const { sample } = await stage({
      runner: { unguarded: true },
      settings: { permissions: { deny: [rule] } },
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const { lines, calls, result } = await finished(
      session.spawn("vendor", task({ ask: { toolCallId: "c1", ...call } })),
    );
    expect(lines).toEqual(["answered no"]);
    const why =
      new Map([
        ["switch_mode", "The program cannot change the mode"],
        ["RunnerTool", "not among the tools of this agent"],
      ]).get(rule === "RunnerTool" || !("kind" in call) ? rule : call.kind) ?? `the rule ${rule}`;
    expect(calls).toMatchObject([{ denied: expect.stringContaining(why) }]);
    expect(result).toMatchObject({ status: "completed" });
  });

  test("is decided about by hooks, which see what it did", async () => {
    const log = "cat >> hooks.log; echo >> hooks.log";
    const { sample, project } = await stage({
      settings: {
        hooks: {
          PreToolUse: [
            { matcher: "Bash", hooks: [{ type: "command", command: "grep -q forbidden && exit 2; exit 0" }] },
          ],
          PostToolUse: [{ matcher: "Bash|Write", hooks: [{ type: "command", command: log }] }],
          SubagentStop: [{ hooks: [{ type: "command", command: log }] }],
        },
      },
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const { lines } = await finished(
      session.spawn(
        "vendor",
        task(
          { ask: { toolCallId: "c1", kind: "execute", rawInput: { command: "echo forbidden" } } },
          { ask: { toolCallId: "c2", kind: "execute", rawInput: { command: "echo free" } } },
          { write: join(project, "w.txt"), content: "x" },
        ),
      ),
    );
    expect(lines).toEqual(["answered no", "answered yes", "written"]);
    const events = readFileSync(join(project, "hooks.log"), "utf8");
    expect(events).toContain('"command":"echo free"');
    expect(events).toContain('"tool_name":"Write"');
    expect(events).toContain('"hook_event_name":"SubagentStop"');
    expect(events).not.toContain("forbidden");
  });

  test("has limits of turns, calls and time, and of the money it reports", async () => {
    const writes = (project: string) =>
      [1, 2, 3, 4].map((number) => ({ write: join(project, `${number}.txt`), content: "x" }));
    for (const [fields, reason] of [
      [{ maxTurns: 2 }, "max_turns"],
      [{ limits: { toolCalls: 2 } }, "max_tool_calls"],
    ] as const) {
      const { sample, project } = await stage({ fields });
      await using _ = sample;
      await using session = await sample.runtime.open();
      const { result } = await finished(session.spawn("vendor", task(...writes(project))));
      expect(result).toMatchObject({ status: "partial", reason });
      expect(existsSync(join(project, "4.txt"))).toBe(false);
    }
    for (const [fields, steps, reason] of [
      [{ timeout: 1 }, [{ hang: true }], "max_time"],
      [{ limits: { usd: 1 } }, [{ cost: 0.5 }, { cost: 2 }, { hang: true }], "max_budget"],
    ] as const) {
      const { sample } = await stage({ fields });
      await using _ = sample;
      await using session = await sample.runtime.open();
      const { result } = await finished(session.spawn("vendor", task(...steps)));
      expect(result).toMatchObject({ status: "partial", reason });
    }
  });

  test("is counted with the money that it reports", async () => {
    const { sample } = await stage();
    await using _ = sample;
    await using session = await sample.runtime.open();
    const { result } = await finished(
      session.spawn("vendor", task({ cost: 0.25 }, { cost: 0.5 }, { say: "Done." })),
    );
    expect(result.totals.costUsd).toBeCloseTo(0.5);
  });

  test("works in the background, and its end is reported", async () => {
    const { sample } = await stage({
      steps: [
        {
          calls: [
            {
              name: "Agent",
              input: {
                description: "v",
                prompt: task({ say: "Found it." }),
                subagent_type: "vendor",
                run_in_background: true,
              },
            },
          ],
        },
        "Waiting.",
        "Seen.",
      ],
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    await session.prompt("Go.").result;
    await vi.waitFor(
      () => expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("Found it."),
      20_000,
    );
  });

  test("is stopped with everything it has started", async () => {
    for (const flags of [[], ["--deaf"]]) {
      const { sample, state } = await stage({ flags });
      await using _ = sample;
      await using session = await sample.runtime.open();
      const pidFile = join(sample.workspace.root, "child.pid");
      const apartFile = join(sample.workspace.root, "apart.pid");
      const isApart = process.platform === "linux";
      const handle = session.spawn(
        "vendor",
        task({ child: pidFile }, ...(isApart ? [{ child: apartFile, apart: true }] : []), { hang: true }),
      );
      const hanging = join(state, "hanging.txt");
      await vi.waitFor(() => expect(existsSync(hanging)).toBe(true), 20_000);
      expect(await handle.stop()).toMatchObject({ status: "stopped" });
      expect(readFileSync(join(state, "cancelled.txt"), "utf8")).not.toBe("");
      const files = [hanging, pidFile, ...(isApart ? [apartFile] : [])];
      const pids = files.map((file) => Number(readFileSync(file, "utf8")));
      await vi.waitFor(() => expect(pids.filter(isRunning)).toEqual([]), 20_000);
    }
  });

  test("continues its own conversation when it is resumed, also by another process", async () => {
    const { sample } = await stage({ steps: ["Hello."] });
    await using _ = sample;
    let sessionId = "";
    let id = "";
    {
      await using first = await sample.runtime.open();
      await first.prompt("Hello.").result;
      const handle = first.spawn("vendor", "Begin.");
      await handle.result;
      ({ sessionId, id } = handle);
    }
    const again = sample.restart([]);
    await using session = await again.runtime.open({ resume: sessionId });
    const { lines, result } = await finished(session.spawn("vendor", "Continue.", { resume: id }));
    expect(result).toMatchObject({ status: "completed" });
    const said = lines.join("");
    expect(said).toMatch(/^prompt "Continue\."/);
    expect(said).not.toMatch(/after 0$/);
    expect(said).not.toContain("(replayed)");
  });

  test.each([
    ["that is written once its session is closed", "--keeps-until-close"],
    ["that is written at the end of its input", "--keeps-until-end"],
    ["by loading it, where resuming is only claimed", "--claims-resume"],
  ])("continues a conversation %s", async (_when, flag) => {
    const { sample } = await stage({ flags: [flag] });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const handle = session.spawn("vendor", "Begin.");
    await handle.result;
    const { lines, result } = await finished(session.spawn("vendor", "Continue.", { resume: handle.id }));
    expect(result).toMatchObject({ status: "completed" });
    expect(lines.join("")).toMatch(/^prompt "Continue\.".* after [1-9]\d*$/);
  });

  test("works with a model of its program's, and with no other", async () => {
    for (const model of ["large", "sonnet"]) {
      const { sample } = await stage({ fields: { model } });
      await using _ = sample;
      await using session = await sample.runtime.open();
      const result = await session.spawn("vendor", "Begin.").result;
      if (model === "large") expect(result.text).toContain("in mode free with large");
      else {
        expect(result).toMatchObject({ status: "failed", reason: "runner-model" });
        expect(result.error).toContain('has no model "sonnet" to choose; it offers small, large');
      }
    }
  });

  test("is refused an output of a certain form", async () => {
    const { sample, state } = await stage();
    await using _ = sample;
    await using session = await sample.runtime.open();
    const output = { type: "object", properties: { ok: { type: "boolean" } } };
    const result = await session.spawn("vendor", "Begin.", { output }).result;
    expect(result).toMatchObject({ status: "failed", reason: "runner-output" });
    expect(result.error).toContain("cannot return output that matches a schema");
    expect(existsSync(state)).toBe(false);
  });

  test("says so where its program cannot continue a conversation", async () => {
    const { sample } = await stage({ flags: ["--forgets"] });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const handle = session.spawn("vendor", "Begin.");
    await handle.result;
    const result = await session.spawn("vendor", "Continue.", { resume: handle.id }).result;
    expect(result).toMatchObject({ status: "failed", reason: "runner-cannot-resume" });
    expect(result.error).toContain("cannot continue a conversation");
  });

  test("works in a worktree of its own", async () => {
    const { sample, project } = await stage({
      fields: { isolation: "worktree" },
      permissionMode: "acceptEdits",
      allowedTools: ["Bash"],
    });
    await using _ = sample;
    await sample.workspace.write("a.txt", "x");
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: project });
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "first");
    await using session = await sample.runtime.open();
    const { lines } = await finished(
      session.spawn(
        "vendor",
        task({ run: "pwd; echo made > made.txt" }, { write: join(project, "main.txt"), content: "x" }),
      ),
    );
    expect(lines[0]).toMatch(/\.claude\/worktrees\//);
    expect(lines[1]).toContain("failed: Write was not allowed");
    expect(existsSync(join(project, "made.txt"))).toBe(false);
  });

  test("gets the servers that its definition names, and no others", async () => {
    const own = { own: { command: "own-server", args: ["a"], env: { K: "v" } } };
    const { sample, project } = await stage({ fields: { mcpServers: ["shared", own] } });
    await using _ = sample;
    const shared = countedServer(project);
    const { runtime } = sample.restart([], {
      mcpServers: { shared: shared.config, other: countedServer(project).config },
    });
    await using session = await runtime.open();
    const { lines } = await finished(session.spawn("vendor", task({ servers: true })));
    expect(JSON.parse((lines[0] ?? "").replace("servers ", ""))).toEqual([
      { name: "own", command: "own-server", args: ["a"], env: [{ name: "K", value: "v" }] },
      { name: "shared", ...shared.config, env: [] },
    ]);
    // The session's own one is the only one that we have started.
    expect(shared.starts()).toHaveLength(1);
  });

  test("gets of the environment what every program needs, and what is named for it", async () => {
    const { sample } = await stage({
      runner: { env: ["VENDOR_KEY"] },
      env: {
        PATH: process.env["PATH"],
        VENDOR_KEY: "k",
        ANTHROPIC_API_KEY: "secret",
        RETINUE_LOCAL_MODELS: "0",
      },
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const { lines } = await finished(
      session.spawn("vendor", task({ env: "VENDOR_KEY" }, { env: "ANTHROPIC_API_KEY" })),
    );
    expect(lines).toEqual(["VENDOR_KEY=k", "ANTHROPIC_API_KEY=unset"]);
  });

  test("does by itself what it does not ask about, and that is in its journal", async () => {
    const { sample, project } = await stage();
    await using _ = sample;
    await using session = await sample.runtime.open();
    const own = join(project, "own.txt");
    const { calls } = await finished(
      session.spawn("vendor", task({ own: "o1", path: own, content: "x" }, { say: "Done." })),
    );
    expect(calls).toMatchObject([{ name: "edit", input: { path: own } }]);
    const folder = join(sample.home, ".claude/projects");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      /agent-.*\.jsonl$/.test(file),
    );
    const journal = readFileSync(join(folder, files[0] ?? ""), "utf8");
    for (const part of [
      '"type":"retinue-runner"',
      "does it by itself",
      "done by itself",
      "Done.",
      '"runner":{',
    ])
      expect(journal).toContain(part);
  });
});

describe("[FRN-1] a program of another vendor that fails, fails alone", () => {
  test.each([
    ["dies", [{ die: 7 }], [], "runner-ended", /exit code 7.*the fake agent dies/],
    ["floods", [{ flood: 8000 }, { hang: true }], [], "runner-flooded", /more than/],
    ["speaks another version", [], ["--old"], "runner-protocol", /version 0/],
    ["wants a login", [], ["--login"], "runner-login", /answered with an error/],
    ["refuses", [{ stop: "refusal" }], [], "refusal", /declined/],
  ])("one that %s", async (_what, steps, flags, reason, error) => {
    const { sample } = await stage({ flags, steps: ["Alive."] });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const { result } = await finished(session.spawn("vendor", task(...steps)));
    expect(result).toMatchObject({ status: "failed", reason });
    expect(result.error).toMatch(error);
    expect(await session.prompt("Hello.").result).toMatchObject({ status: "completed", text: "Alive." });
  });

  test("one that never answers is ended by the limit of time", async () => {
    const { sample } = await stage({ flags: ["--silent"], fields: { timeout: 1 } });
    await using _ = sample;
    await using session = await sample.runtime.open();
    expect(await session.spawn("vendor", "Go.").result).toMatchObject({
      status: "partial",
      reason: "max_time",
    });
  });

  test("one that sends what is no message, or the wrong one, is still understood", async () => {
    const raw = (text: string) => ({ raw: text });
    const { sample } = await stage();
    await using _ = sample;
    const errors = vi.spyOn(console, "error");
    await using session = await sample.runtime.open();
    const { result } = await finished(
      session.spawn(
        "vendor",
        task(
          raw("no json"),
          raw("{"),
          raw("[]"),
          raw('{"jsonrpc":"2.0","id":99,"result":{}}'),
          raw(
            '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":7}}}',
          ),
          raw(
            '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":[]}}}',
          ),
          raw('{"jsonrpc":"2.0","method":"session/update"}'),
          raw('{"jsonrpc":"2.0","method":"nothing/known","params":{}}'),
          raw('{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{"path":7}}'),
          { say: "Still here." },
        ),
      ),
    );
    expect(result).toMatchObject({ status: "completed", text: "Still here." });
    expect(errors).not.toHaveBeenCalled();
    errors.mockRestore();
  });

  test.each([
    [
      "a program that is not there",
      { acp: "no-such-agent --acp" },
      "runner-not-started",
      "is not on the PATH",
    ],
    ["a variable that is not set", { acp: "codex", env: ["NO_SUCH_KEY"] }, "runner-variable", "NO_SUCH_KEY"],
  ])("%s is an error with what to do", async (_what, runner, reason, error) => {
    const { sample } = await stage({ runner });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const result = await session.spawn("vendor", "Go.").result;
    expect(result).toMatchObject({ status: "failed", reason });
    expect(result.error).toContain(error);
    expect(result.advice).not.toBeUndefined();
  });
});

describe("[FRN-2] what rules cannot reach is refused, said, or kept in a sandbox", () => {
  test.each([
    ["a deny rule", {}, { permissions: { deny: ["Bash(rm *)"] } }, "Bash(rm *)"],
    ["an ask rule", {}, { permissions: { ask: ["Edit(a/**)"] } }, "Edit(a/**)"],
    ["a list of tools", { tools: "Read, Edit" }, {}, "no Write, no Bash"],
    ["a narrowed tool", { tools: "Read, Edit, Write, Bash(git *)" }, {}, "Bash only in part"],
    ["tools that are taken away", { disallowedTools: "Bash" }, {}, "Bash"],
    ["plan mode", { permissionMode: "plan" }, {}, "the mode plan"],
  ])("%s refuses the start without `unguarded`", async (_what, fields, settings, shown) => {
    for (const unguarded of [false, true]) {
      const { sample } = await stage({ fields, settings, runner: { unguarded }, permissionMode: "default" });
      await using _ = sample;
      await using session = await sample.runtime.open();
      const planned = await session.planAgent({
        origin: "program",
        agentType: "vendor",
        description: "",
        prompt: "",
      });
      if (unguarded) {
        const notes = planned.type === "planned" ? planned.plan.notes.join(" ") : "";
        expect(notes).toContain("It is unguarded");
        expect(notes).toContain(shown);
      } else {
        expect(planned).toMatchObject({ type: "refused", reason: expect.stringContaining(shown) });
        await expect(session.spawn("vendor", "Go.").result).rejects.toThrow("could get around");
      }
    }
  });

  test("what it does without asking is said before its first start, once", async () => {
    const notices: string[] = [];
    const { sample } = await stage({ onWarning: (text) => void notices.push(text) });
    await using _ = sample;
    await using session = await sample.runtime.open();
    await session.spawn("vendor", "Go.").result;
    await session.spawn("vendor", "Go.").result;
    expect(notices.filter((text) => text.startsWith("vendor: "))).toEqual([
      expect.stringContaining("without asking it may read, change and run whatever it has tools for"),
    ]);
  });

  test.skipIf(noSandbox === undefined)(
    `settings that want a sandbox, where there is none, refuse the start${noSandbox === undefined ? " (skipped: there is one)" : ""}`,
    async () => {
      const { sample } = await stage({ settings: { sandbox: { enabled: true } } });
      await using _ = sample;
      await using session = await sample.runtime.open();
      expect(await session.spawn("vendor", "Go.").result).toMatchObject({
        status: "failed",
        reason: "runner-unguarded",
      });
    },
  );

  test("a start that counts on a sandbox says so in its plan", async () => {
    const { sample } = await stage({ settings: { sandbox: { enabled: true } } });
    await using _ = sample;
    await using session = await sample.runtime.open();
    const planned = await session.planAgent({
      origin: "program",
      agentType: "vendor",
      description: "",
      prompt: "",
    });
    expect(planned).toMatchObject({ plan: { runner: { sandboxed: true } } });
  });

  describe.skipIf(noSandbox !== undefined)(
    `inside a real sandbox${noSandbox === undefined ? "" : ` (skipped: ${noSandbox})`}`,
    () => {
      test("what it does without asking is held to rules about files, to the project and from the network", async () => {
        const { sample, project } = await stage({
          permissionMode: "acceptEdits",
          inProject: true,
          settings: {
            sandbox: { enabled: true },
            permissions: { deny: ["Read(secret.txt)", "Edit(kept/**)"] },
          },
        });
        await using _ = sample;
        const { workspace } = sample;
        const secret = await workspace.write("secret.txt", "hush");
        const open = await workspace.write("open.txt", "for all");
        const kept = await workspace.write("kept/a.txt", "old");
        const outside = join(workspace.root, "outside.txt");
        await using server = await listening();
        await using session = await sample.runtime.open();
        const { lines, result } = await finished(
          session.spawn(
            "vendor",
            task(
              { look: open },
              { look: secret },
              { own: "1", path: join(project, "made.txt"), content: "mine" },
              { own: "2", path: kept, content: "new" },
              { own: "3", path: outside, content: "new" },
              { reach: server.port },
              // What it asks us for is judged and done by us, as without a sandbox.
              { write: join(project, "asked.txt"), content: "ours" },
              { read: secret },
              { say: "Done." },
            ),
          ),
        );
        expect(result).toMatchObject({ status: "completed" });
        expect(lines[0]).toBe('saw "for all"');
        expect(lines.join("\n")).not.toContain("hush");
        expect(lines.filter((line) => line.startsWith("failed: "))).toHaveLength(5);
        expect(lines).not.toContain("reached");
        expect(lines).toContain("Done.");
        expect(readFileSync(join(project, "made.txt"), "utf8")).toBe("mine");
        expect(readFileSync(join(project, "asked.txt"), "utf8")).toBe("ours");
        expect(readFileSync(kept, "utf8")).toBe("old");
        expect(existsSync(outside)).toBe(false);
      });

      test("what it has started there ends with it", async () => {
        const { sample, project } = await stage({
          inProject: true,
          settings: { sandbox: { enabled: true } },
        });
        await using _ = sample;
        await using session = await sample.runtime.open();
        const mark = join(project, "child.txt");
        const handle = session.spawn("vendor", task({ child: mark, apart: true }, { hang: true }));
        await vi.waitFor(() => expect(existsSync(join(project, "state", "hanging.txt"))).toBe(true), 20_000);
        expect(processesOf(project)).not.toEqual([]);
        await handle.stop();
        expect(await handle.result).toMatchObject({ status: "stopped" });
        await vi.waitFor(() => expect(processesOf(project)).toEqual([]), 20_000);
      });

      test("a rule about commands is still a reason to refuse it", async () => {
        const { sample } = await stage({
          permissionMode: "default",
          settings: { sandbox: { enabled: true }, permissions: { deny: ["Bash(rm *)"] } },
        });
        await using _ = sample;
        await using session = await sample.runtime.open();
        await expect(session.spawn("vendor", "Go.").result).rejects.toThrow(
          "The sandbox does not keep it from that",
        );
      });
    },
  );

  test("a file of a folder that is not trusted starts no program", async () => {
    const { sample, state } = await stage({ trusted: false });
    await using _ = sample;
    await using session = await sample.runtime.open();
    await expect(session.spawn("vendor", "Go.").result).rejects.toThrow("not trusted");
    expect(existsSync(state)).toBe(false);
  });

  test.each([
    ["a model of ours", {}, { model: "sonnet" }, "chooses these itself"],
    ["our effort", { effort: "high" }, {}, "chooses these itself"],
    ["an existing conversation", { forkContext: true }, {}, "an existing conversation"],
    ["Retinue's memory", { memory: "project" }, {}, "Retinue's memory"],
  ])("%s is refused, because it cannot have it", async (_what, fields, options, why) => {
    const { sample } = await stage({ fields });
    await using _ = sample;
    await using session = await sample.runtime.open();
    await expect(session.spawn("vendor", "Go.", options).result).rejects.toThrow(why);
  });

  test("it is no main agent", async () => {
    const { sample } = await stage({ agent: "vendor" });
    await using _ = sample;
    await expect(sample.runtime.run("Go.").result).rejects.toThrow(
      "only another agent or a program can start it",
    );
  });

  test("one that has a mode in which it asks is put into it", async () => {
    const { sample } = await stage();
    await using _ = sample;
    const bin = await sample.workspace.write(
      "bin/gemini",
      `#!/bin/sh\nexec ${process.execPath} ${script} ${join(sample.workspace.root, "state")}\n`,
    );
    execFileSync("chmod", ["+x", bin]);
    const again = sample.restart([], {
      env: { PATH: `${join(bin, "..")}:${process.env["PATH"]}`, RETINUE_LOCAL_MODELS: "0" },
    });
    await sample.workspace.write(
      ".claude/agents/vendor.md",
      "---\nname: vendor\ndescription: d\nrunner: { acp: gemini }\n---\nx\n",
    );
    await using session = await again.runtime.open();
    expect((await session.spawn("vendor", "Go.").result).text).toContain("in mode default");
  });
});
