import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";

const texts = (request: ModelRequest | undefined): string => JSON.stringify(request?.messages);
const tooLong: Step = { failure: "context-too-long" };
const image: UserMessage["content"] = [
  { type: "text", text: "HUGE" },
  { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
];

test("a paste of 5 MB is refused with its size, leaves no trace, and the session continues [CMP-4]", async () => {
  await using sample = await createSampleRuntime(["One.", "Two."]);
  const first = await sample.runtime.run("Hello.").result;
  const { sessionId } = first;
  const refused = await sample.runtime.run("HUGE ".repeat(1_000_000), { resume: sessionId }).result;
  expect(refused).toMatchObject({ status: "failed", reason: "prompt_too_large" });
  expect(refused.error).toMatch(/about 1,250,\d{3} tokens \(5\.0 MB\).* window of 200,000/);
  const next = await sample.runtime.run("Go on.", { resume: sessionId }).result;
  expect(next).toMatchObject({ status: "completed", text: "Two." });
  expect(sample.requests).toHaveLength(2);
  expect(texts(sample.requests[1])).not.toContain("HUGE");
});

test.each<[string, Step, UserMessage["content"]]>([
  ["is too long for the window", tooLong, "HUGE ".repeat(60_000)],
  ["holds an image that it does not take", { failure: "invalid-request" }, image],
])("a prompt of which the provider says that it %s is left out of what follows, also after a restart [CMP-4]", async (_what, failure, prompt) => {
  await using sample = await createSampleRuntime(["One.", failure, failure, failure, "Two."]);
  const { sessionId } = await sample.runtime.run("Hello.").result;
  await using session = await sample.runtime.open({ resume: sessionId });
  const ending = (await session.run(prompt).result) as { status: string; advice?: string };
  expect(ending).toMatchObject({
    status: "failed",
    advice: expect.stringContaining("The conversation continues without this prompt"),
  });
  await session.close();
  const again = sample.restart(["Three."]);
  const last = await again.runtime.run("Go on.", { resume: sessionId }).result;
  expect(last).toMatchObject({ status: "completed", text: "Three." });
  expect(texts(again.requests[0])).toContain("One.");
  expect(texts(again.requests[0])).not.toContain("HUGE");
});

test("a first prompt that is too long for the provider does not spoil the session [CMP-4]", async () => {
  await using sample = await createSampleRuntime([tooLong, tooLong, "Two.", "Three."]);
  await using session = await sample.runtime.open();
  expect(await session.run("HUGE").result).toMatchObject({ status: "failed", reason: "context-too-long" });
  expect(await session.run("HUGE again").result).toMatchObject({ status: "failed" });
  expect(await session.run("Small.").result).toMatchObject({ status: "completed", text: "Two." });
  expect(texts(sample.requests.at(-1))).not.toContain("HUGE");
  await session.close();
  const again = sample.restart(["Four."]);
  expect(await again.runtime.run("Go on.", { resume: session.id }).result).toMatchObject({ text: "Four." });
  expect(texts(again.requests[0])).not.toContain("HUGE");
});

test("results of tools that are too long for the provider are summarized away and the run continues [CMP-4]", async () => {
  await using sample = await createSampleRuntime([
    { calls: [{ name: "Read", input: { file_path: "big.txt" } }] },
    tooLong,
    "A summary.",
    "Done.",
  ]);
  await sample.workspace.write("big.txt", "BIG LINE\n".repeat(500));
  const ending = await sample.runtime.run("Read it.").result;
  expect(ending).toMatchObject({ status: "completed", text: "Done." });
  expect(texts(sample.requests.at(-1))).not.toContain("BIG LINE");
});
