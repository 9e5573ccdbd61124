import { expect, onTestFinished, test } from "vitest";
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { keys, openPty } from "./pty-stage.ts";

test("a person types a prompt and reads the streamed answer [CLI-1]", async () => {
  const place = createPlace();
  const provider = await startFakeProvider({ script: ["Hello **there**.\n\n- one\n- two\n", "Again."] });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const pty = openPty(place, [], {
    environment: { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" },
  });
  pty.type("say hello");
  await pty.shows("> say hello");
  pty.type(keys.enter);
  await pty.shows("Hello there.", "- two", "claude-sonnet-5");
  pty.type(`more${keys.enter}`);
  await pty.shows("Again.");
  pty.type(keys.ctrlC);
  await pty.shows("again ends");
  pty.type(keys.ctrlC);
  const { code } = await pty.exited;
  expect(code).toBe(0);
});
