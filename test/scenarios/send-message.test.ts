import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand } from "./run-command.ts";

const isChild = ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("TASK");
const child = (step: Omit<ScriptedStep, "match">): Step => ({ match: isChild, ...step });
const spawn = (more: object = {}): ScriptedCall => ({
  name: "Agent",
  input: { description: "look", prompt: "TASK", ...more },
});
const send = (to: string, message: string): ScriptedCall => ({ name: "SendMessage", input: { to, message } });
const last = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const idIn = (request: ModelRequest) => /a[0-9a-f]{16}/.exec(JSON.stringify(request.messages))?.[0] ?? "";

describe("a message to a child that has ended", () => {
  test("resumes it with its whole conversation, and its answer is the result [TRN-3]", async () => {
    await using sample = await createSampleRuntime([
      { calls: [spawn()] },
      child({ text: "It is 41." }),
      (request) => ({ calls: [send(idIn(request), "Are you sure?")] }),
      child({ text: "No, 42." }),
      "It is 42.",
    ]);
    const result = await sample.runtime.run("Begin.").result;
    expect(result).toMatchObject({ status: "completed", text: "It is 42." });
    const resumed = sample.requests[3];
    expect(resumed?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(resumed?.messages[1])).toContain("It is 41.");
    expect(last(resumed)).toContain("Are you sure?");
    expect(last(sample.requests[4])).toContain("No, 42.");
  });

  test("reaches it by the name it was given, also after a restart [TRN-3]", async () => {
    await using sample = await createSampleRuntime([
      { calls: [spawn({ name: "ada" })] },
      child({ text: "It is 41." }),
      "Good.",
    ]);
    const { sessionId } = await sample.runtime.run("Begin.").result;
    const { runtime, requests } = sample.restart([
      { calls: [send("ada", "Are you sure?")] },
      child({ text: "No, 42." }),
      "It is 42.",
    ]);
    expect(await runtime.run("Ask again.", { resume: sessionId }).result).toMatchObject({
      text: "It is 42.",
    });
    expect(JSON.stringify(requests[1]?.messages)).toContain("It is 41.");
  });

  test("runs in the background where it did before, and the parent is informed of its end [BGR-2, TRN-3]", async () => {
    await using sample = await createSampleRuntime([
      { calls: [spawn({ run_in_background: true })] },
      child({ text: "Early." }),
      { match: "finished", respond: (request) => ({ calls: [send(idIn(request), "And now?")] }) },
      child({ text: "Late." }),
      { text: "Waiting.", times: 2 },
      { match: "Late.", text: "It said late." },
    ]);
    expect(await sample.runtime.run("Begin.").result).toMatchObject({ text: "It said late." });
  });
});

test("a message to a child that runs is read between its turns [TRN-3]", async () => {
  const started = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  await using sample = await createSampleRuntime([
    { calls: [spawn({ run_in_background: true, name: "ada" })] },
    child({
      async respond() {
        started.resolve();
        await sent.promise;
        return { calls: [{ name: "Glob", input: { pattern: "*" } }] };
      },
    }),
    async () => {
      await started.promise;
      return { calls: [send("ada", "Look at b, too.")] };
    },
    child({ text: "Looked at both." }),
    {
      respond(request) {
        expect(last(request)).toContain("was queued for");
        sent.resolve();
        return "Sent.";
      },
    },
    "Both.",
  ]);
  expect(await sample.runtime.run("Begin.").result).toMatchObject({ status: "completed", text: "Both." });
  const read = sample.requests.filter(isChild).at(-1);
  expect(JSON.stringify(read?.messages)).toContain("Look at b, too.");
});

describe("a message that cannot be brought is an error with a reason [TRN-3]", () => {
  test.each<[string, object, RegExp]>([
    [
      "to no one that is known",
      { to: "bob", message: "Hi." },
      /no agent \\"bob\\".*ada.*general-purpose, ended/s,
    ],
    ["to all", { to: "*", message: "Hi." }, /need a team/],
    ["of a team", { to: "ada", message: { type: "shutdown_request" } }, /need a team/],
    ["without a recipient", { message: "Hi." }, /`to` is missing/],
    ["without a text", { to: "ada" }, /`message` is missing/],
  ])("%s", async (_what, input, reason) => {
    await using sample = await createSampleRuntime([
      { calls: [spawn({ name: "ada" })] },
      child({ text: "Seen." }),
      { calls: [{ name: "SendMessage", input }] },
      "Understood.",
    ]);
    await sample.runtime.run("Begin.").result;
    expect(last(sample.requests[3])).toMatch(reason);
    expect(last(sample.requests[3])).toContain('"is_error":true');
  });

  test("to a child whose start a rule wants to be asked for [PRM-1]", async () => {
    await using sample = await createSampleRuntime([
      { calls: [spawn({ name: "ada", subagent_type: "Explore" })] },
      child({ text: "Seen." }),
      "Good.",
    ]);
    const { sessionId } = await sample.runtime.run("Begin.").result;
    const settings = { permissions: { ask: ["Agent(Explore)"] } };
    await sample.workspace.write(".claude/settings.json", JSON.stringify(settings));
    const { runtime, requests } = sample.restart([{ calls: [send("ada", "Again.")] }, "Refused."]);
    await runtime.run("Ask again.", { resume: sessionId }).result;
    expect(last(requests[1])).toMatch(/Agent was not allowed.*Agent\(Explore\)/);
  });
});

test("children have no such tool, and an agent that can start none has it neither [TLS-7]", async () => {
  await using sample = await createSampleRuntime([{ calls: [spawn()] }, child({ text: "Seen." }), "Good."]);
  await sample.runtime.run("Begin.").result;
  const names = sample.requests.map(({ tools }) => tools.map(({ name }) => name));
  expect(names.map((tools) => tools.includes("SendMessage"))).toEqual([true, false, true]);
  await using session = await sample.runtime.open({ tools: ["Read", "SendMessage"] });
  expect(session.plan.tools.map(({ name }) => name)).toEqual(["Read"]);
});

test("the built command brings messages too [TRN-3, CLI-1]", async () => {
  const provider = await startFakeProvider({
    script: [
      { calls: [spawn({ name: "ada" })] },
      child({ text: "It is 41." }),
      { calls: [send("ada", "Are you sure?")] },
      child({ text: "No, 42." }),
      "It is 42.",
    ],
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  expect(await runCommand(createPlace(), ["-p", "go"], { environment })).toMatchObject({
    code: 0,
    out: "It is 42.\n",
  });
  provider.finish();
});
