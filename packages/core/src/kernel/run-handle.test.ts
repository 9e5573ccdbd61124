import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import { z } from "zod";

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

const tellJoke = async (sample: Awaited<ReturnType<typeof createSampleRuntime>>) => sample.runtime.run("Go.");

describe("a run handle [SDK-1]", () => {
  it("is not awaited when an async function returns it", async () => {
    await using sample = await createSampleRuntime(["Done."]);
    const handle = await tellJoke(sample);
    expect(handle).not.toHaveProperty("then");
    expect(handle.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(handle.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await handle.result).sessionId).toBe(handle.sessionId);
  });

  it("replays all events and the text, after the end and several times", async () => {
    await using sample = await createSampleRuntime(["Hello there, world."]);
    const handle = sample.runtime.run("Go.");
    const live = collect(handle.events);
    await handle.result;
    const late = await collect(handle.events);
    expect(late.map(({ type }) => type)).toContain("turn-started");
    expect(late.at(-1)?.type).toBe("run-ended");
    expect(await collect(handle.events)).toEqual(late);
    expect(await live).toEqual(late);
    expect((await collect(handle.textStream)).join("")).toBe("Hello there, world.");
  });

  it("throws a mistake of the caller from its events and its result, and leaves nothing unhandled", async () => {
    await using sample = await createSampleRuntime(["Never."]);
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const ignored = sample.runtime.run("Go.", { agent: "nobody-at-all" });
    await expect(collect(ignored.events)).rejects.toThrow(/nobody-at-all/);
    const child = sample.runtime.spawn("nobody-at-all", "Go.");
    await expect(collect(child.textStream)).rejects.toThrow(/nobody-at-all/);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("can be left early without ending the run", async () => {
    await using sample = await createSampleRuntime(["Done."]);
    const handle = sample.runtime.run("Go.");
    for await (const _event of handle.events) break;
    expect((await handle.result).status).toBe("completed");
  });
});

describe("a child of a program [SDK-3]", () => {
  const Count = z.object({ files: z.number() });

  it("has the same handle, whose id is the agent's from the start", async () => {
    await using sample = await createSampleRuntime(["Found it."]);
    const handle = sample.runtime.spawn("Explore", "Look.");
    const { id, sessionId } = handle;
    const result = await handle.result;
    expect(result).toMatchObject({ agentId: id, sessionId, status: "completed", text: "Found it." });
    expect((await collect(handle.textStream)).join("")).toBe("Found it.");
    expect((await collect(handle.events)).at(-1)?.type).toBe("run-ended");
  });

  it("returns the value that `output` asks for, after a reminder and a wrong one", async () => {
    await using sample = await createSampleRuntime([
      "Three files.",
      { calls: [{ name: "StructuredOutput", input: { files: "three" } }] },
      { calls: [{ name: "StructuredOutput", input: { files: 3 } }] },
    ]);
    const { output, status } = await sample.runtime.spawn("Explore", "Count.", { output: Count }).result;
    expect(output?.files.toFixed(1)).toBe("3.0");
    expect(status).toBe("completed");
  });

  it("fails when it never returns a matching value", async () => {
    await using sample = await createSampleRuntime([{ text: "No.", times: 20 }]);
    await using session = await sample.runtime.open();
    const result = await session.spawn("Explore", "Count.", { output: Count }).result;
    expect(result).toMatchObject({ status: "failed", reason: "max_structured_output_retries" });
    expect(result.error).toBe("The agent did not return a result matching the schema.");
  });

  it("is stopped by its signal, also before it has started", async () => {
    await using sample = await createSampleRuntime([{ text: "Never", failure: "stall", after: 1 }]);
    const before = sample.runtime.spawn("Explore", "Look.", { signal: AbortSignal.abort() });
    expect(await before.result).toMatchObject({ status: "stopped", agentType: "Explore" });
    const stop = new AbortController();
    const handle = sample.runtime.spawn("Explore", "Look.", { signal: stop.signal });
    for await (const event of handle.events) if (event.type === "model-streamed") stop.abort();
    expect(await handle.result).toMatchObject({ status: "stopped" });
  });

  it("gets the rights that `spawn` gives it", async () => {
    const write = { calls: [{ name: "Bash", input: { command: "touch made" } }] };
    await using sample = await createSampleRuntime([write, "Refused.", write, "Made."]);
    const refused = await sample.runtime.spawn("general-purpose", "Make.").result;
    expect(refused.denials).toHaveLength(1);
    const options = { allowedTools: ["Bash(touch *)"] };
    const allowed = await sample.runtime.spawn("general-purpose", "Make.", options).result;
    expect(allowed).toMatchObject({ denials: [], text: "Made." });
  });
});

it("a session and a runtime are closed by `close()` [SDK-3]", async () => {
  await using sample = await createSampleRuntime(["One."]);
  const session = await sample.runtime.open();
  expect(session.id).toBe(session.plan.sessionId);
  expect((await session.run("Go.").result).text).toBe("One.");
  await session.close();
  await session.close();
  await expect(session.run("More.").result).rejects.toThrow(/closed/);
  await sample.runtime.close();
  expect(() => sample.runtime.run("More.")).toThrow(/closed/);
});
