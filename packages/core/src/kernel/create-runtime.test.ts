import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { textOf } from "../conversation/message.ts";
import { defineTool } from "../tools/tool.ts";

const read = (path: string) => ({ calls: [{ name: "Read", input: { file_path: path } }] });
const toolNames = ({ requests }: Pick<SampleRuntime, "requests">, at = 0) =>
  requests[at]?.tools.map(({ name }) => name) ?? [];
const systemOf = ({ requests }: Pick<SampleRuntime, "requests">, at = 0) =>
  requests[at]?.system.join("\n") ?? "";

/** The lines of the only transcript there is. */
function transcript({ home }: SampleRuntime): Record<string, unknown>[] {
  const projects = join(home, ".claude/projects");
  const [file = ""] = readdirSync(projects, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".jsonl"),
  );
  return readFileSync(join(projects, file), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("a run", () => {
  it("answers, and shows the session, the sums and everything that happened [LIM-4]", async () => {
    await using sample = await createSampleRuntime([read("a.txt"), "It says hello."]);
    await sample.workspace.write("a.txt", "hello\n");
    const handle = sample.runtime.run("What does a.txt say?");
    const types: string[] = [];
    for await (const event of handle.events) types.push(event.type);
    const result = await handle.result;
    expect(result).toMatchObject({
      status: "completed",
      reason: "end_turn",
      text: "It says hello.",
      denials: [],
    });
    expect(result.totals).toMatchObject({ turns: 2, toolUses: 1 });
    expect(result.totals.usage.inputTokens).toBeGreaterThan(100);
    expect(result.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(handle.sessionId).toBe(result.sessionId);
    expect(types[0]).toBe("user-added");
    expect(types).toContain("call-finished");
    expect(types.at(-1)).toBe("run-ended");
  });

  it("keeps its conversation and its sums in the transcript [TRN-1, LIM-4]", async () => {
    await using sample = await createSampleRuntime(["Hello."]);
    const { sessionId } = await sample.runtime.run("Hi.").result;
    const lines = transcript(sample);
    expect(lines.map(({ type }) => type)).toEqual([
      "user",
      "retinue-plan",
      "assistant",
      "retinue-request",
      "system",
    ]);
    expect(lines[0]).toMatchObject({ sessionId, cwd: sample.workspace.project, entrypoint: "sdk-ts" });
    expect(lines[4]).toMatchObject({
      subtype: "turn_duration",
      runEnding: { status: "completed", turns: 1 },
    });
  });

  it("keeps nothing where the program wants no transcripts", async () => {
    await using sample = await createSampleRuntime(["Hello."], { transcripts: false });
    expect((await sample.runtime.run("Hi.").result).text).toBe("Hello.");
    expect(existsSync(join(sample.home, ".claude"))).toBe(false);
  });

  it("rejects for a mistake of the program, with a RetinueError", async () => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.run("Hi.", { agent: "nobody" }).result).rejects.toMatchObject({
      code: "unknown-agent",
    });
    await expect(sample.runtime.run("Hi.", { maxTurns: 0 }).result).rejects.toMatchObject({
      code: "unusable-limit",
    });
    await expect(sample.runtime.run("Hi.", { allowedTools: ["Bash("] }).result).rejects.toMatchObject({
      code: "invalid-rule",
    });
  });

  it("resolves with what went wrong in the model or in a tool", async () => {
    await using sample = await createSampleRuntime([{ failure: "unauthorized" }]);
    const result = await sample.runtime.run("Hi.").result;
    expect(result).toMatchObject({ status: "failed", reason: "unauthorized", text: "" });
    expect(result.error).toMatch(/key is not accepted/);
  });

  it("ends at its limit of turns with what there is", async () => {
    await using sample = await createSampleRuntime([{ ...read("a.txt"), text: "Looking." }]);
    const result = await sample.runtime.run("Hi.", { maxTurns: 1 }).result;
    expect(result).toMatchObject({ status: "partial", reason: "max_turns", text: "Looking." });
    expect(result.error).toBe("The limit of 1 turn was reached.");
  });

  it("is reported where it is and what the project's people want [SPN-3]", async () => {
    await using sample = await createSampleRuntime(["Yes."]);
    await sample.workspace.write("CLAUDE.md", "Use tabs. See @more.md\n");
    await sample.workspace.write("more.md", "Never push.\n");
    await sample.runtime.run("Hi.", { appendSystemPrompt: "Be brief." }).result;
    const system = systemOf(sample);
    expect(system).toContain("You are an engineer at a terminal");
    for (const part of ["Use tabs.", "Never push.", "Be brief.", sample.workspace.project, process.platform])
      expect(system).toContain(part);
    expect(sample.requests[0]?.messages).toEqual([{ role: "user", content: "Hi." }]);
  });

  it("has a system prompt of the call in place of the usual one", async () => {
    await using sample = await createSampleRuntime(["Yes."]);
    await sample.runtime.run("Hi.", { systemPrompt: "You are a parrot." }).result;
    expect(systemOf(sample)).toContain("You are a parrot.");
    expect(systemOf(sample)).not.toContain("engineer");
  });
});

describe("a main agent", () => {
  const file = (fields: string) =>
    `---\nname: helper\ndescription: Helps. Use often. Not always.\n${fields}---\nYou are the helper.\n`;

  it("brings its own prompt, tools, limits and reminder [TLS-1, SPN-3, SPN-4]", async () => {
    await using sample = await createSampleRuntime([read("a.txt"), "Done."]);
    await sample.workspace.write("CLAUDE.md", "Use tabs.\n");
    await sample.workspace.write(
      ".claude/agents/helper.md",
      file(
        "tools: Read, Grep\ninitialPrompt: Begin with the tests.\ncriticalSystemReminder_EXPERIMENTAL: Change nothing.\n",
      ),
    );
    await using session = await sample.runtime.open({ agent: "helper" });
    await session.prompt("Go.").result;
    expect(session.plan.agent.name).toBe("helper");
    expect(toolNames(sample)).toEqual(["Grep", "Read"]);
    const system = systemOf(sample);
    expect(system).toContain("You are the helper.");
    expect(system).not.toContain("You are an engineer");
    for (const part of ["Use tabs.", "Change nothing.", sample.workspace.project])
      expect(system).toContain(part);
    const [first, , results] = sample.requests[1]?.messages ?? [];
    expect(JSON.stringify(first)).toMatch(/Begin with the tests\..*Go\..*Change nothing\./);
    expect(JSON.stringify(results)).toMatch(/tool_result.*Change nothing\./);
  });

  it("with omitClaudeMd gets only what the organisation wants [SPN-3]", async () => {
    await using sample = await createSampleRuntime(["Done."]);
    await sample.workspace.write("CLAUDE.md", "Use tabs.\n");
    await sample.workspace.write("../managed/CLAUDE.md", "Obey the law.\n");
    await sample.workspace.write(".claude/agents/helper.md", file("omitClaudeMd: true\n"));
    await sample.runtime.run("Go.", { agent: "helper" }).result;
    expect(systemOf(sample)).not.toContain("Use tabs.");
    expect(systemOf(sample)).toContain("Obey the law.");
  });

  it("whose list names none of the tools does not start [TLS-5]", async () => {
    await using sample = await createSampleRuntime([]);
    await sample.workspace.write(".claude/agents/helper.md", file("tools: Nothing, mcp__gone\n"));
    await expect(sample.runtime.run("Go.", { agent: "helper" }).result).rejects.toThrow(
      /`Nothing`.*`mcp__gone`/,
    );
  });

  it("is hidden by a deny rule of the program", async () => {
    await using sample = await createSampleRuntime([], { disallowedTools: ["Task(Explore)", "Bash"] });
    await expect(sample.runtime.run("Go.", { agent: "Explore" }).result).rejects.toMatchObject({
      code: "agent-denied",
    });
    await using session = await sample.runtime.open();
    expect(session.plan.tools.map(({ name }) => name)).not.toContain("Bash");
  });

  it("may be registered by the program, with a prompt that it computes, and taken back", async () => {
    await using sample = await createSampleRuntime(["Ahoy."]);
    const gone = await sample.runtime.agents();
    expect(gone.registry.find("pirate").type).toBe("unknown");
    sample.runtime.register({
      name: "pirate",
      description: "Talks like a pirate. Use at sea. Not on land.",
      prompt: ({ agent, directory }) => `You are a ${agent} in ${directory}.`,
    });
    await sample.runtime.run("Hi.", { agent: "pirate" }).result;
    expect(systemOf(sample)).toContain(`You are a pirate in ${sample.workspace.project}.`);
    sample.runtime.unregister("pirate");
    expect((await sample.runtime.agents()).registry.find("pirate").type).toBe("unknown");
  });
});

describe("the tools of a program", () => {
  const ticket = defineTool({
    name: "ticket",
    description: "Looks a ticket up.",
    effect: "read",
    input: z.object({ id: z.string() }),
    call: async ({ id }) => ({ content: `Ticket ${id} is open.` }),
  });

  it("are offered beside the built-in ones and run", async () => {
    await using sample = await createSampleRuntime(
      [{ calls: [{ name: "ticket", input: { id: "7" } }] }, "Open."],
      { tools: ["default", ticket] },
    );
    await sample.runtime.run("Is 7 open?").result;
    expect(toolNames(sample)).toEqual(expect.arrayContaining(["Read", "ticket"]));
    expect(JSON.stringify(sample.requests[1]?.messages.at(-1))).toContain("Ticket 7 is open.");
  });

  it("take the place of a built-in one of the same name", async () => {
    await using sample = await createSampleRuntime(["Yes."], { tools: [{ ...ticket, name: "Grep" }] });
    await sample.runtime.run("Hi.").result;
    const grep = sample.requests[0]?.tools.filter(({ name }) => name === "Grep");
    expect(grep).toMatchObject([{ description: "Looks a ticket up." }]);
  });

  it.each([
    ["a name that providers refuse", [{ ...ticket, name: "my ticket" }]],
    ["a name twice", [ticket, ticket]],
    ["the name of the typed output", [{ ...ticket, name: "StructuredOutput" }]],
  ])("may not have %s", async (_, extraTools) => {
    await using sample = await createSampleRuntime([], { tools: extraTools });
    await expect(sample.runtime.run("Hi.").result).rejects.toMatchObject({ code: "invalid-tool" });
  });

  it("that put questions exist only where a person can be asked", async () => {
    await using sample = await createSampleRuntime(["a"]);
    await sample.runtime.run("Hi.").result;
    expect(toolNames(sample)).not.toContain("AskUserQuestion");
    const asking = sample.restart(["b"], { host: { ask: async () => ({}) } });
    await asking.runtime.run("Hi.").result;
    expect(toolNames(asking)).toContain("AskUserQuestion");
  });
});

describe("settings", () => {
  it("that cannot be read keep everything from starting", async () => {
    await using sample = await createSampleRuntime([]);
    await sample.workspace.write(".claude/settings.json", '{"permissions": {"deny": ["Bash"}');
    await expect(sample.runtime.run("Hi.").result).rejects.toMatchObject({ code: "broken-settings" });
    await expect(sample.runtime.open()).rejects.toThrow(/settings\.json:1/);
    expect(existsSync(join(sample.home, ".claude/projects"))).toBe(false);
  });

  it("with a deny rule that cannot be understood do the same", async () => {
    await using sample = await createSampleRuntime([]);
    await sample.workspace.write(".claude/settings.json", '{"permissions": {"deny": ["Bash("]}}');
    await expect(sample.runtime.run("Hi.").result).rejects.toMatchObject({ code: "broken-settings" });
  });

  it("give further folders as absolute, relative and home paths", async () => {
    await using sample = await createSampleRuntime([], { trusted: true });
    const { root } = sample.workspace;
    const directories = [join(root, "a"), "../b", "~/c"];
    await sample.workspace.write(
      ".claude/settings.json",
      JSON.stringify({ permissions: { additionalDirectories: directories } }),
    );
    await using session = await sample.runtime.open();
    expect(session.plan.policy.workingDirectories).toEqual(
      expect.arrayContaining([
        sample.workspace.project,
        join(root, "a"),
        join(root, "b"),
        join(sample.home, "c"),
      ]),
    );
  });
});

describe("sessions", () => {
  it("continue over several prompts", async () => {
    await using sample = await createSampleRuntime(["One.", "Two.", "Three."]);
    await using session = await sample.runtime.open();
    expect((await session.prompt("First.").result).text).toBe("One.");
    expect((await session.prompt("Second.").result).text).toBe("Two.");
    expect((await session.prompt([{ type: "text", text: "Third." }]).result).text).toBe("Three.");
    expect(sample.requests[2]?.messages.map(textOf)).toEqual(["First.", "One.", "Second.", "Two.", "Third."]);
    expect(session.messages()).toHaveLength(6);
  });

  it("are resumed after a restart with the whole conversation, under the same id [TRN-3]", async () => {
    await using sample = await createSampleRuntime([read("a.txt"), "It says hello."]);
    await sample.workspace.write("a.txt", "hello\n");
    const { sessionId } = await sample.runtime.run("What does a.txt say?").result;
    const later = sample.restart(["As I said."]);
    const again = await later.runtime.run("Again?", { resume: sessionId }).result;
    expect(again.sessionId).toBe(sessionId);
    const messages = later.requests[0]?.messages ?? [];
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
    expect(JSON.stringify(messages[2])).toContain("hello");
    const continued = sample.restart(["Still."]);
    expect((await continued.runtime.run("Continue.", { continue: true }).result).sessionId).toBe(sessionId);
    expect(continued.requests[0]?.messages).toHaveLength(7);
  });

  it("are forked into a copy, and the original stays as it was [TRN-3]", async () => {
    await using sample = await createSampleRuntime(["One.", "Two."]);
    const { sessionId } = await sample.runtime.run("First.").result;
    const fork = await sample.runtime.run("Second.", { resume: sessionId, forkSession: true }).result;
    expect(fork.sessionId).not.toBe(sessionId);
    expect(sample.requests[1]?.messages.map(textOf)).toEqual(["First.", "One.", "Second."]);
    const original = sample.restart(["Three."]);
    await original.runtime.run("Third.", { resume: sessionId }).result;
    expect(original.requests[0]?.messages.map(textOf)).toEqual(["First.", "One.", "Third."]);
  });

  it("are read for resuming also where nothing new is kept", async () => {
    await using sample = await createSampleRuntime(["One."]);
    const { sessionId } = await sample.runtime.run("First.").result;
    const before = transcript(sample);
    const later = sample.restart(["Two."], { transcripts: false });
    await later.runtime.run("Second.", { resume: sessionId }).result;
    expect(later.requests[0]?.messages.map(textOf)).toEqual(["First.", "One.", "Second."]);
    expect(transcript(sample)).toEqual(before);
  });

  const id = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

  it("take the id that the program chose, once", async () => {
    await using sample = await createSampleRuntime(["One."]);
    expect((await sample.runtime.run("First.", { sessionId: id }).result).sessionId).toBe(id);
    await expect(sample.runtime.run("Second.", { sessionId: id }).result).rejects.toMatchObject({
      code: "session-exists",
    });
  });

  it.each([
    [{ sessionId: "../x" }, "bad-session-id"],
    [{ resume: "../x" }, "session-missing"],
    [{ resume: id }, "session-missing"],
    [{ continue: true }, "session-missing"],
    [{ forkSession: true }, "session-conflict"],
  ])("are refused for %j [TRN-7]", async (options, code) => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.run("Hi.", options).result).rejects.toMatchObject({ code });
  });

  it("keep their id when they are resumed without a fork", async () => {
    await using sample = await createSampleRuntime(["One."]);
    const { sessionId } = await sample.runtime.run("First.").result;
    const options = { resume: sessionId, sessionId: id };
    await expect(sample.runtime.run("Hi.", options).result).rejects.toMatchObject({
      code: "session-conflict",
    });
  });
});

describe("everything ends by signal and by disposal [SDK-3]", () => {
  const stalled = { failure: "stall", text: "Half an answer that never", after: 1 } as const;

  it("a signal stops a run, and the result shows it", async () => {
    await using sample = await createSampleRuntime([stalled]);
    const stop = new AbortController();
    const handle = sample.runtime.run("Hi.", { signal: stop.signal });
    for await (const event of handle.events) if (event.type === "model-streamed") stop.abort();
    expect(await handle.result).toMatchObject({ status: "stopped", reason: "aborted", text: "" });
  });

  it("a signal that was aborted before stops a run before it begins", async () => {
    await using sample = await createSampleRuntime([]);
    const result = await sample.runtime.run("Hi.", { signal: AbortSignal.abort() }).result;
    expect(result).toMatchObject({ status: "stopped", totals: { turns: 0 } });
    expect(sample.requests).toHaveLength(0);
  });

  it("stop() ends a run with its reason, and the session continues after it", async () => {
    await using sample = await createSampleRuntime(["One.", stalled, "Three."]);
    await using session = await sample.runtime.open();
    await session.prompt("First.").result;
    const handle = session.prompt("Second.");
    for await (const event of handle.events)
      if (event.type === "model-streamed") void handle.stop("had-enough");
    expect(await handle.result).toMatchObject({ status: "stopped", reason: "had-enough", text: "" });
    expect((await session.prompt("Third.").result).text).toBe("Three.");
    expect(sample.requests[2]?.messages.map(textOf)).toEqual(["First.", "One.", "Second.", "Third."]);
  });

  it("leaving the stream stops the run, and calls that had no answer get one", async () => {
    const waits = defineTool({
      name: "waits",
      description: "Waits for the end.",
      effect: "execute",
      input: z.object({}),
      call: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    await using sample = await createSampleRuntime([{ calls: [{ name: "waits" }] }, "Well."], {
      tools: ["default", waits],
    });
    await using session = await sample.runtime.open({ allowedTools: ["waits"] });
    for await (const event of session.stream("First.", new AbortController().signal)) {
      if (event.type === "call-started") break;
    }
    expect((await session.prompt("Second.").result).text).toBe("Well.");
    const sent = sample.requests[1]?.messages ?? [];
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user", "user"]);
    expect(JSON.stringify(sent[2])).toMatch(/tool_result.*Interrupted/);
  });

  it("a session takes one prompt at a time, and none when it is closed", async () => {
    await using sample = await createSampleRuntime([stalled]);
    const session = await sample.runtime.open();
    const first = session.prompt("First.");
    for await (const event of first.events) if (event.type === "model-streamed") break;
    await expect(session.prompt("Second.").result).rejects.toMatchObject({ code: "session-busy" });
    await session[Symbol.asyncDispose]();
    expect(await first.result).toMatchObject({ status: "stopped", reason: "session-closed" });
    await expect(session.prompt("Third.").result).rejects.toMatchObject({ code: "session-closed" });
  });

  it("disposing the runtime stops what runs and what is being opened", async () => {
    await using sample = await createSampleRuntime([stalled]);
    const running = sample.runtime.run("First.");
    for await (const event of running.events) if (event.type === "model-streamed") break;
    const starting = sample.runtime.run("Second.");
    const opening = sample.runtime.open();
    await sample.runtime[Symbol.asyncDispose]();
    expect(await running.result).toMatchObject({ status: "stopped", reason: "runtime-disposed" });
    expect(await starting.result).toMatchObject({ status: "stopped", reason: "runtime-disposed" });
    await expect(opening).rejects.toMatchObject({ code: "runtime-disposed" });
    expect(() => sample.runtime.run("Third.")).toThrow(/closed/);
    await expect(sample.runtime.open()).rejects.toMatchObject({ code: "runtime-disposed" });
  });

  it("a session that was disposed of lets its file go, so that it can be resumed immediately", async () => {
    await using sample = await createSampleRuntime([stalled, "Two."]);
    const session = await sample.runtime.open();
    const running = session.prompt("First.");
    for await (const event of running.events) if (event.type === "model-streamed") break;
    const options = { resume: session.plan.sessionId };
    await expect(sample.runtime.run("Second.", options).result).rejects.toMatchObject({
      code: "file-in-use",
    });
    await session[Symbol.asyncDispose]();
    expect((await sample.runtime.run("Second.", options).result).text).toBe("Two.");
  });

  it("a session that works on nothing is left to who resumes it, and takes no more prompts", async () => {
    await using sample = await createSampleRuntime(["One.", "Two."]);
    await using session = await sample.runtime.open();
    await session.prompt("First.").result;
    const options = { resume: session.plan.sessionId };
    expect((await sample.runtime.run("Second.", options).result).text).toBe("Two.");
    expect(await session.prompt("Third.").result).toMatchObject({
      status: "failed",
      error: expect.stringContaining("Another process has taken over"),
    });
  });
});

describe("the budget of a session", () => {
  const price = { input: 0, output: 1000, cacheRead: 0, cacheWrite: 0 };
  const step = (text: string) => ({ text, usage: { outputTokens: 1000 } });

  it("counts over all its prompts", async () => {
    await using sample = await createSampleRuntime([step("One."), step("Two.")], {
      modelOptions: { facts: { price } },
    });
    await using session = await sample.runtime.open({ maxBudgetUsd: 2.05 });
    expect(await session.prompt("First.").result).toMatchObject({
      status: "completed",
      totals: { costUsd: 1 },
    });
    expect(await session.prompt("Second.").result).toMatchObject({ status: "completed" });
    const third = await session.prompt("Third.").result;
    expect(third).toMatchObject({ status: "partial", reason: "max_budget", text: "" });
    expect(third.error).toBe(
      "Budget limit reached: 0.05 of 2.05 US dollars of the whole tree left; the next call may cost up to 1.024.",
    );
    expect(sample.requests).toHaveLength(2);
  });

  it("that cannot be kept, because the price is not known, is noted in the plan", async () => {
    await using sample = await createSampleRuntime([]);
    await using session = await sample.runtime.open({ maxBudgetUsd: 2 });
    expect(session.plan.notes).toEqual([
      "The price of scripted is unknown, so the budget cannot be enforced.",
    ]);
  });
});

it("carries what is wrong with instruction files in the notes of a session [SPN-3]", async () => {
  await using sample = await createSampleRuntime(["Yes."]);
  await sample.workspace.write("CLAUDE.md", "# Rules\n\nFollow @docs/gone.md.\n");
  await using session = await sample.runtime.open();
  expect(session.plan.notes).toEqual([
    'CLAUDE.md:3: There is no file "docs/gone.md"; the import was left out.',
  ]);
});
