import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test, vi } from "vitest";
import { projectRoot } from "../project-files.ts";

const program = join(projectRoot, "test/scenarios/raw-acp-agent.ts");

/** What became of an agent whose program answers as the script says, and what was printed meanwhile. */
async function run(script: object | ((root: string) => object)) {
  await using sample = await createSampleRuntime([], { trusted: true, permissionMode: "acceptEdits" });
  const { root, project } = sample.workspace;
  mkdirSync(join(project, ".git", "hooks"), { recursive: true });
  const said = JSON.stringify(typeof script === "function" ? script(root) : script);
  const fields = {
    name: "vendor",
    description: "Works elsewhere.",
    runner: { acp: [process.execPath, program, said] },
  };
  const lines = Object.entries(fields).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  await sample.workspace.write(".claude/agents/vendor.md", `---\n${lines.join("\n")}\n---\nx\n`);
  const errors = vi.spyOn(console, "error");
  await using session = await sample.runtime.open();
  const { status, reason, error, text } = await session.spawn("vendor", "Go.").result;
  expect(errors).not.toHaveBeenCalled();
  errors.mockRestore();
  return { status, reason, error, text, made: (path: string) => existsSync(join(root, path)) };
}

const request = (id: unknown, method: string, params: object): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params: { sessionId: "raw", ...params } });
const option = { optionId: "y", name: "y", kind: "allow_once" };
const capabilities = (agentCapabilities: unknown) => ({ result: { protocolVersion: 1, agentCapabilities } });
const answers = (method: string, ...given: readonly unknown[]) => ({ answers: { [method]: given } });

describe("[FRN-1] a program that answers what is no answer", () => {
  test.each([
    [
      "nothing to the first question",
      answers("initialize", { result: null }),
      "runner-protocol",
      /answered initialize/,
    ],
    [
      "an error that is none to it",
      answers("initialize", { error: "x" }),
      "runner-failed",
      /answered with an error/,
    ],
    ["no session", answers("session/new", { result: {} }), "runner-protocol", /answered session\/new/],
    [
      "a session without a name of its own",
      answers("session/new", { result: { sessionId: 5 } }),
      "runner-protocol",
      /answered session\/new/,
    ],
    [
      "modes that are no list",
      answers("session/new", { result: { sessionId: "raw", modes: { availableModes: "x" } } }),
      "runner-protocol",
      /answered session\/new/,
    ],
    [
      "nothing to the task",
      answers("session/prompt", { result: null }),
      "runner-protocol",
      /answered session\/prompt/,
    ],
    ["no reason for its end", answers("session/prompt", { result: {} }), "error", /unknown reason/],
    ["a line without an end", { endless: 60_000_000 }, "runner-ended", /more than \d+/],
  ])("%s is ended with a sentence", async (_what, script, reason, error) => {
    const result = await run(script);
    expect(result).toMatchObject({ status: "failed", reason });
    expect(result.error).toMatch(error);
  });

  test.each([
    [
      "what it can do in another form",
      answers("initialize", capabilities({ sessionCapabilities: "x", mcpCapabilities: [] })),
    ],
    [
      "strange counts of tokens",
      answers("session/prompt", {
        result: { stopReason: "end_turn", usage: { inputTokens: -1, outputTokens: "x" } },
      }),
    ],
    [
      "the task three times",
      answers(
        "session/prompt",
        { result: { stopReason: "end_turn" } },
        { result: { stopReason: "refusal" } },
        { error: { code: 1, message: "late" } },
      ),
    ],
  ])("%s does no harm", async (_what, script) => {
    expect(await run(script)).toMatchObject({ status: "completed" });
  });
});

describe("[FRN-1] a program that asks for what it may not have", () => {
  test("writes nothing outside of its folder, and nothing that is protected in it", async () => {
    const { text, made } = await run((root) => ({
      lines: ["outside.txt", "project/.git/hooks/pre-commit", "project/.claude/settings.json"].map(
        (path, id) => request(id, "fs/write_text_file", { path: join(root, path), content: "x" }),
      ),
    }));
    expect(text).toBe("heard 0 results and 3 errors");
    for (const path of ["outside.txt", "project/.git/hooks/pre-commit", "project/.claude/settings.json"])
      expect(made(path)).toBe(false);
  });

  test("is answered whatever its questions look like, and no device is read without an end", async () => {
    const { text, status } = await run({
      lines: [
        request("a", "fs/read_text_file", { path: "/dev/zero" }),
        request("a", "fs/read_text_file", { path: "/dev/zero" }),
        request(1.5, "fs/read_text_file", { path: "../x" }),
        request(2, "nothing/here", {}),
        request(3, "terminal/output", { terminalId: "constructor" }),
        request(4, "terminal/create", { command: "" }),
        request(5, "terminal/create", { command: "env", env: [{ name: "LD_PRELOAD", value: "x" }] }),
        request(6, "session/request_permission", { options: [option] }),
        request(7, "session/request_permission", {
          toolCall: { toolCallId: "t", kind: "execute", rawInput: { command: "rm x" } },
          options: [],
        }),
        request(8, "session/request_permission", {
          toolCall: { toolCallId: "__proto__", title: 7 },
          options: [option],
        }),
      ],
    });
    expect(status).toBe("completed");
    expect(text).toMatch(/^heard \d+ results and \d+ errors$/);
  });

  test("has no more terminals than it can be kept to, and leaves none behind", async () => {
    const { text } = await run({
      repeated: { times: 40, line: request("$n", "terminal/create", { command: "sleep", args: ["600"] }) },
    });
    expect(text).toBe("heard 32 results and 8 errors");
  });
});
