import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { claude, createErrorStage, foreign } from "./errors-stage.ts";

/** A child whose provider says what the steps say; each request is one that would be billed. */
async function play(steps: readonly Step[], model: string) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const { runtime } = createErrorStage({ url: provider.url, model, retries: 10 });
  const result = await runtime.spawn("general-purpose", "Work.").result;
  const reported = JSON.stringify(provider.requests.at(-1)?.request.messages.at(-1));
  return { provider, result, reported };
}

describe.each([claude, foreign])("a call of %s that is no JSON object", (model) => {
  const calls: [string, string, RegExp][] = [
    ["breaks off", '{"pattern": "*.md"', /must be one JSON object, but it is not valid JSON/],
    ["is a list", '["*.md"]', /must be one JSON object, but it is a list/],
    ["is null", "null", /must be one JSON object, but it is null/],
    ["is prose", "please list all files", /not valid JSON/],
  ];
  test.each(
    calls,
  )("because it %s is answered with an error, and asked for once [MDL-6]", async (_how, rawInput, error) => {
    const { provider, result, reported } = await play(
      [{ calls: [{ name: "Glob", rawInput }] }, "I write it properly next time."],
      model,
    );
    expect(result).toMatchObject({ status: "completed", text: "I write it properly next time." });
    expect(provider.requests).toHaveLength(2);
    expect(reported).toMatch(error);
    provider.finish();
  });

  test("runs its neighbours all the same [MDL-6]", async () => {
    const { provider, reported } = await play(
      [
        {
          calls: [
            { name: "Glob", rawInput: "{" },
            { name: "Glob", input: { pattern: "*.none" } },
          ],
        },
        "Done.",
      ],
      model,
    );
    expect(provider.requests).toHaveLength(2);
    expect(reported).toMatch(/not valid JSON.*No file/s);
  });

  test("because the output limit cut it off does not end the run [LIM-2]", async () => {
    const { result, reported } = await play(
      [
        {
          text: "Long:",
          calls: [{ name: "Write", rawInput: '{"file_path": "a", "content": "on and on' }],
          stopReason: "max_tokens",
        },
        "Shorter.",
      ],
      model,
    );
    expect(result).toMatchObject({ status: "completed", text: "Shorter." });
    expect(reported).toContain("Try again with a shorter input");
  });
});
