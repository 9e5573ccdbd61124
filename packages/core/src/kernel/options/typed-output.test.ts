import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import { createTypedOutput, outputReminder, outputToolName } from "./typed-output.ts";

const verdict = z.object({ verdict: z.enum(["good", "bad"]), points: z.number().int() });
const requestFinalAnswer = (input: unknown) => ({ calls: [{ name: outputToolName, input }] });
const good = { verdict: "good", points: 3 };

describe("typed output [SDK-4]", () => {
  it("is checked against a zod schema, has its type, and ends the run", async () => {
    await using sample = await createSampleRuntime([{ text: "Here.", ...requestFinalAnswer(good) }]);
    const result = await sample.runtime.run("Judge.", { output: verdict }).result;
    expectTypeOf(result.output).toEqualTypeOf<z.infer<typeof verdict> | undefined>();
    expect(result).toMatchObject({ status: "completed", text: "Here.", output: good, totals: { turns: 1 } });
    const tool = sample.requests[0]?.tools.find(({ name }) => name === outputToolName);
    expect(tool?.inputSchema).toMatchObject({ type: "object", required: ["verdict", "points"] });
    expect(tool?.inputSchema).not.toHaveProperty("$schema");
  });

  it("is checked against a JSON Schema, which the model sees as it was given", async () => {
    const schema = {
      type: "object",
      properties: { points: { type: "integer", description: "From 1 to 5.", minimum: 1 } },
      required: ["points"],
    };
    await using sample = await createSampleRuntime([
      requestFinalAnswer({ points: 0 }),
      requestFinalAnswer({ points: 4 }),
    ]);
    const result = await sample.runtime.run("Judge.", { output: schema }).result;
    expectTypeOf(result.output).toEqualTypeOf<unknown>();
    expect(result.output).toEqual({ points: 4 });
    expect(sample.requests[0]?.tools.at(-1)?.inputSchema).toEqual(schema);
  });

  it("is checked against a schema of zod 3 or any Standard Schema", async () => {
    const older = z3.object({ points: z3.number().int() });
    const standard = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          Number(Reflect.get(Object(value), "points")) > 0 ? { value } : { issues: [{ message: "too few" }] },
        jsonSchema: { input: () => ({ type: "object", properties: { points: { type: "number" } } }) },
      },
    } as const;
    await using sample = await createSampleRuntime([
      requestFinalAnswer({ points: "many" }),
      requestFinalAnswer({ points: 4 }),
      requestFinalAnswer({ points: 0 }),
      requestFinalAnswer({ points: 2 }),
    ]);
    const first = await sample.runtime.run("Judge.", { output: older }).result;
    expect(first.output).toEqual({ points: 4 });
    const second = await sample.runtime.run("Judge.", { output: standard }).result;
    expect(second.output).toEqual({ points: 2 });
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain(
      "The result is not valid. the result: too few",
    );
  });

  it("is checked against fields alone, as tools of the Agent SDK have them", async () => {
    await using sample = await createSampleRuntime([
      requestFinalAnswer({ city: 7 }),
      requestFinalAnswer({ city: "Rome" }),
    ]);
    const result = await sample.runtime.run("Where?", { output: { city: z.string() } }).result;
    expect(result.output).toEqual({ city: "Rome" });
  });

  it.each([[{ a: 1 }]])("is refused where it is no schema: %j", async (output) => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.run("Judge.", { output: output as never }).result).rejects.toThrow(
      /output schema cannot be used/,
    );
  });

  it("may be of any type: what is no object travels as a field", async () => {
    await using sample = await createSampleRuntime([requestFinalAnswer({ value: ["a", "b"] })]);
    expect((await sample.runtime.run("List.", { output: z.array(z.string()) }).result).output).toEqual([
      "a",
      "b",
    ]);
    expect(sample.requests[0]?.tools.at(-1)?.inputSchema).toMatchObject({
      type: "object",
      properties: { value: { type: "array" } },
    });
  });

  it("is what the schema makes of it, where it transforms", async () => {
    await using sample = await createSampleRuntime([requestFinalAnswer({ when: "2026-01-02" })]);
    const output = z.object({ when: z.string().transform((text) => text.length) });
    expect((await sample.runtime.run("When?", { output }).result).output).toEqual({ when: 10 });
  });

  it("of the wrong form is answered with its flaws, and the agent tries again", async () => {
    await using sample = await createSampleRuntime([
      requestFinalAnswer({ verdict: "fine", points: 1.5 }),
      requestFinalAnswer(good),
    ]);
    const result = await sample.runtime.run("Judge.", { output: verdict }).result;
    expect(result).toMatchObject({ status: "completed", output: good, totals: { turns: 2 } });
    const answer = JSON.stringify(sample.requests[1]?.messages.at(-1));
    expect(answer).toMatch(/is_error":true/);
    expect(answer).toMatch(/`verdict`.*`points`/);
  });

  it("that an agent forgets is asked for, and the sums are those of the whole run [LIM-4]", async () => {
    await using sample = await createSampleRuntime(["It is good.", requestFinalAnswer(good)]);
    const result = await sample.runtime.run("Judge.", { output: verdict }).result;
    expect(result).toMatchObject({
      status: "completed",
      output: good,
      text: "It is good.",
      totals: { turns: 2 },
    });
    expect(JSON.stringify(sample.requests[1]?.messages.at(-1))).toContain(outputReminder);
  });

  it.each([
    ["never hands it in", "It is good."],
    ["hands in what is wrong", requestFinalAnswer({ verdict: "fine" })],
  ])("is given up after five retries when the agent %s", async (_, step) => {
    await using sample = await createSampleRuntime([
      ...Array.from({ length: 6 }, () => step),
      requestFinalAnswer(good),
    ]);
    const result = await sample.runtime.run("Judge.", { output: verdict }).result;
    expect(result).toMatchObject({ status: "failed", reason: "max_structured_output_retries" });
    expect(result.error).toMatch(/did not return a result/);
    expect(result).not.toHaveProperty("output");
    expect(sample.requests).toHaveLength(6);
  });

  it("has as many retries as MAX_STRUCTURED_OUTPUT_RETRIES says", async () => {
    await using sample = await createSampleRuntime(["It is good."], {
      env: { MAX_STRUCTURED_OUTPUT_RETRIES: "0" },
    });
    const result = await sample.runtime.run("Judge.", { output: verdict }).result;
    expect(result.reason).toBe("max_structured_output_retries");
  });

  it("does not outrun the limit of turns, reminders included", async () => {
    await using sample = await createSampleRuntime(["a", "b", "c"]);
    const result = await sample.runtime.run("Judge.", { output: verdict, maxTurns: 2 }).result;
    expect(result).toMatchObject({ status: "partial", reason: "max_turns", totals: { turns: 2 } });
    expect(result.error).toBe("The limit of 2 turns was reached.");
  });

  it("is asked for anew at each prompt of a session", async () => {
    await using sample = await createSampleRuntime([
      requestFinalAnswer(good),
      "Hm.",
      requestFinalAnswer({ ...good, points: 4 }),
    ]);
    await using session = await sample.runtime.open({ output: verdict });
    expect((await session.prompt("Judge.").result).output).toEqual(good);
    expect((await session.prompt("Again.").result).output).toEqual({ ...good, points: 4 });
  });

  it("needs no permission, in plan mode neither", async () => {
    await using sample = await createSampleRuntime([requestFinalAnswer(good)]);
    const result = await sample.runtime.run("Judge.", { output: verdict, permissionMode: "plan" }).result;
    expect(result.output).toEqual(good);
  });

  it.each([
    ["no schema", { type: "objekt" }],
    ["a schema of another library", { "~standard": {}, _def: {} }],
  ])("with %s is refused before anything starts", async (_, output) => {
    await using sample = await createSampleRuntime([]);
    await expect(sample.runtime.run("Judge.", { output }).result).rejects.toMatchObject({
      code: "invalid-schema",
    });
  });

  it("keeps what references point to at the root of the schema", async () => {
    const { tool } = await createTypedOutput({
      $defs: { a: { type: "string" } },
      anyOf: [{ $ref: "#/$defs/a" }],
    });
    expect(tool.inputSchema).toEqual({
      type: "object",
      properties: { value: { anyOf: [{ $ref: "#/$defs/a" }] } },
      required: ["value"],
      $defs: { a: { type: "string" } },
    });
  });
});
