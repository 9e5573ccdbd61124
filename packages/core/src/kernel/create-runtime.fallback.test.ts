import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { createRuntime } from "./create-runtime.ts";
import type { RuntimeOptions } from "./options/runtime-options.ts";

const first = "claude-sonnet-4-5";
const other = "claude-haiku-4-5";
const overloaded = { failure: "overloaded" } as const;
const delegate = {
  calls: [{ name: "Agent", input: { description: "look", prompt: "Look.", subagent_type: "helper" } }],
};
const fallback = { from: first, to: other, code: "overloaded" };

async function setUp(script: readonly Step[], options: RuntimeOptions = {}) {
  const provider = await startFakeProvider({ script });
  const workspace = await createWorkspace();
  const home = join(workspace.root, "home");
  const runtime = createRuntime({
    cwd: workspace.project,
    home,
    env: {
      HOME: home,
      ANTHROPIC_BASE_URL: provider.url,
      ANTHROPIC_API_KEY: "x",
      CLAUDE_CODE_MAX_RETRIES: "0",
      RETINUE_LOCAL_MODELS: "0",
    },
    model: first,
    transcripts: true,
    agents: { helper: { description: "looks", prompt: "You look." } },
    ...options,
  });
  return {
    provider,
    runtime,
    models: () => provider.requests.map(({ body }) => body["model"]),
    /** All lines of all transcripts. */
    lines: (): readonly Record<string, unknown>[] =>
      readdirSync(join(home, ".claude/projects"), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".jsonl"))
        .flatMap((name) =>
          readFileSync(join(home, ".claude/projects", name), "utf8")
            .trimEnd()
            .split("\n"),
        )
        .map((line) => JSON.parse(line)),
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}

describe("a fallback model of a runtime [MDL-8]", () => {
  test("answers the main agent for the rest of its run, and result and transcript show it", async () => {
    const read = { calls: [{ name: "Glob", input: { pattern: "*" } }] };
    await using stage = await setUp([overloaded, read, "From the other.", "From the first."], {
      fallbackModel: other,
    });
    const session = await stage.runtime.open();
    const result = await session.run("Hi.").result;
    expect(result).toMatchObject({ text: "From the other.", status: "completed", fallbacks: [fallback] });
    expect(stage.models()).toEqual([first, other, other]);
    const next = await session.run("Again.").result;
    expect(next.text).toBe("From the first.");
    expect(next.fallbacks).toBeUndefined();
    expect(stage.models().at(-1)).toBe(first);
    await session.close();
    const lines = stage.lines();
    expect(lines.filter(({ subtype }) => subtype === "model_fallback")).toMatchObject([
      { modelFallback: fallback },
    ]);
    expect(lines.find(({ subtype }) => subtype === "turn_duration")).toMatchObject({
      runEnding: { fallbacks: [fallback] },
    });
  });

  test("of settings answers a child, and its parent and its viewers are notified", async () => {
    await using stage = await setUp([delegate, overloaded, "Seen.", "Done."], {
      settings: { fallbackModel: [other] },
    });
    const handle = stage.runtime.run("Hi.");
    const fallen: unknown[] = [];
    for await (const event of handle.events)
      if (event.type === "model-fell-back") fallen.push([event.agentId, event.to]);
    const result = await handle.result;
    expect(result.text).toBe("Done.");
    expect(result.fallbacks).toBeUndefined();
    expect(stage.models()).toEqual([first, first, other, first]);
    expect(fallen).toEqual([[expect.not.stringMatching(/^main$/), other]]);
    expect(JSON.stringify(stage.provider.requests.at(-1)?.body)).toContain(
      `${other} answered in place of ${first} (overloaded)`,
    );
  });

  test("that the option names goes before that of settings", async () => {
    await using stage = await setUp([overloaded, "Yes."], {
      fallbackModel: [other],
      settings: { fallbackModel: ["claude-opus-4-1"] },
    });
    await stage.runtime.run("Hi.").result;
    expect(stage.models()).toEqual([first, other]);
  });

  test("that settings forbid is an error where the run names it, and a note where settings do", async () => {
    const settings = { deniedModels: [other] };
    await using named = await setUp([], { fallbackModel: other, settings });
    await expect(named.runtime.run("Hi.").result).rejects.toMatchObject({ code: "fallback-unusable" });
    await using written = await setUp([overloaded], { settings: { ...settings, fallbackModel: [other] } });
    const session = await written.runtime.open();
    expect(session.plan.notes.join(" ")).toContain(`The fallback model "${other}" cannot be used`);
    expect(await session.run("Hi.").result).toMatchObject({ status: "failed", reason: "overloaded" });
    expect(written.models()).toEqual([first]);
  });

  test("that is no name is refused with what to write", async () => {
    const options = { fallbackModel: 5 } as unknown as RuntimeOptions;
    expect(() => createRuntime(options)).toThrow(
      /fallbackModel of createRuntime\(\) must be the name of a model/,
    );
  });
});
