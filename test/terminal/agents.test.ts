import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type FakeProviderOptions, startFakeProvider } from "../../src/testing/fake-provider.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { keys, openPty } from "./pty-stage.ts";

async function stage(script: NonNullable<FakeProviderOptions["script"]>, words: readonly string[] = []) {
  const place = createPlace();
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return { place, provider, pty: openPty(place, words, { environment }) };
}

const agentCall = (description: string, prompt: string) => ({
  name: "Agent",
  input: { description, prompt, subagent_type: "general-purpose" },
});

test("a question waits as a line until it is opened, and the draft survives it [CLI-4]", async () => {
  const { place, pty } = await stage([
    { text: "I make a file.", calls: [{ name: "Bash", input: { command: "touch made" } }] },
    "Done.",
  ]);
  pty.type(`make it${keys.enter}`);
  await pty.shows("tab to answer");
  pty.type("a draft");
  await pty.shows("> a draft", "tab to answer");
  pty.type(keys.tab);
  await pty.shows("yes, and do not ask again for");
  console.log((await pty.screen()).join("\n"));
  await new Promise((r) => setTimeout(r, 400));
  pty.type("1");
  await pty.shows("Done.", "> a draft");
  console.log((await pty.screen()).join("\n"));
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
});

test("the tree shows what each agent does; ctrl+b frees the caller [BGR-3, CLI-4]", async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { pty } = await stage([
    { match: (r) => JSON.stringify(r.messages).includes("child task") === false && r.messages.length === 1, calls: [agentCall("look around", "child task one"), agentCall("count", "child task two")] },
    { match: "child task", times: 2, respond: async () => { await held; return "child is done"; } },
    { match: (r) => JSON.stringify(r.messages.at(-1)).includes("task-notification"), times: "any", text: "I heard of it." },
    "I go on without them.",
  ]);
  pty.type(`start two${keys.enter}`);
  await pty.shows("look around", "count", "2 agents");
  console.log((await pty.screen()).join("\n"));
  pty.type(keys.ctrlB);
  await pty.shows("I go on without them.", "(background)");
  console.log((await pty.screen()).join("\n"));
  release();
  await pty.shows("I heard of it.");
  console.log((await pty.screen()).join("\n"));
});
