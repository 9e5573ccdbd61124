import { describe, expect, test } from "vitest";
import { createPlace } from "../scenarios/run-command.ts";
import { runInside } from "./run-inside.ts";
import { createSdkStage } from "./sdk-stage.ts";

const stream = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

describe("settings and instructions that were not asked for [DRP-2]", () => {
  async function instructionsWith(settingSources: ("user" | "project" | "local")[]) {
    const stage = await createSdkStage(["Yes."]);
    stage.write("CLAUDE.md", "Word of the project.");
    stage.write("../home/.claude/CLAUDE.md", "Word of the user.");
    await stage.run("hi", { settingSources });
    const asked = JSON.stringify(stage.provider.requests[0]?.body);
    return { project: asked.includes("Word of the project."), user: asked.includes("Word of the user.") };
  }

  test("no source at all sends neither the project's nor the user's instructions", async () => {
    expect(await instructionsWith([])).toEqual({ project: false, user: false });
  });

  test("the project's source does not bring the user's instructions", async () => {
    expect(await instructionsWith(["project"])).toEqual({ project: true, user: false });
  });

  test("the user's source does not bring the project's instructions", async () => {
    expect(await instructionsWith(["user"])).toEqual({ project: false, user: true });
  });
});

describe("what cannot be honoured [DRP-2]", () => {
  /** Sends lines to the command as a host would, and ends its input after all were answered. */
  async function talk(lines: readonly object[]) {
    const environment = { ANTHROPIC_API_KEY: "x" };
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const { code, out } = await runInside(createPlace(), stream, { environment, input });
    const answers = out
      .split("\n")
      .filter((line) => line.includes("control_response"))
      .map((line) => JSON.parse(line).response);
    return { code, answers };
  }

  const request = (id: string, inner: object) => ({
    type: "control_request",
    request_id: id,
    request: inner,
  });

  test.each([
    ["a hook for an event that there is not", { hooks: { NoSuchEvent: [{ hookCallbackIds: ["h"] }] } }],
    ["a matcher without callbacks", { hooks: { PreToolUse: [{ matcher: "Bash" }] } }],
    ["an agent without a prompt or description", { agents: { a: { tools: ["Read"] } } }],
    ["a member that is not known", { somethingNew: { on: true } }],
    ["managed settings that would have to be checked", { managedSettings: { model: "x" } }],
    ["a schema that is none", { jsonSchema: "text" }],
  ])("%s is an error answer and a non-zero exit", async (_, members) => {
    const { code, answers } = await talk([request("1", { subtype: "initialize", ...members })]);
    expect(answers).toEqual([
      { subtype: "error", request_id: "1", error: expect.stringContaining("initialize cannot be honoured") },
    ]);
    expect(code).toBe(1);
  });

  test("an unknown subtype gets an error answer, and the session continues", async () => {
    const { code, answers } = await talk([
      request("1", { subtype: "initialize" }),
      request("2", { subtype: "fly_to_the_moon" }),
      request("3", { subtype: "get_usage" }),
    ]);
    const found = Object.fromEntries(answers.map(({ request_id: id, ...rest }) => [id, rest]));
    expect(found["2"]).toEqual({ subtype: "error", error: expect.stringContaining("fly_to_the_moon") });
    expect([found["1"]?.subtype, found["3"]?.subtype]).toEqual(["success", "success"]);
    expect(code).toBe(0);
  });
});

describe("no key [CLI-7]", () => {
  test.each([
    ["a named model", ["-p", "hi", "--model", "sonnet"], {}],
    ["JSON", ["-p", "hi", "--output-format", "json"], {}],
    ["CI", ["-p", "hi"], { CI: "true" }],
  ])("with %s is an error with exit 1, and no offline answer", async (_, flags, environment) => {
    const { code, out, err } = await runInside(createPlace(), flags, { environment });
    expect(code).toBe(1);
    expect(err).toContain("There is no key for a model");
    expect(out).not.toContain("[offline model");
  });

  test("the offline model answers where it is named", async () => {
    const flags = ["-p", "hi", "--model", "offline", "--output-format", "json"];
    const { code, out } = await runInside(createPlace(), flags, { environment: { CI: "true" } });
    expect(code).toBe(0);
    expect(Object.keys(JSON.parse(out).modelUsage)).toEqual(["offline"]);
  });
});

describe("shell lines [DRP-3]", () => {
  const environment = { ANTHROPIC_API_KEY: "x" };

  test("json with --verbose is a list of all messages", async () => {
    const flags = ["-p", "hi", "--model", "offline", "--output-format", "json", "--verbose"];
    const { code, out } = await runInside(createPlace(), flags);
    const types = JSON.parse(out).map(({ type }: { type: string }) => type);
    expect([code, types[0], types.at(-1)]).toEqual([0, "system", "result"]);
  });

  test("a flag without a meaning here is named in a note", async () => {
    const { code, err } = await runInside(createPlace(), ["-p", "hi", "--model", "offline", "--ide"]);
    expect({ code, err }).toEqual({ code: 0, err: "retinue: --ide has no effect here.\n" });
  });

  test("a flag that cannot be honoured is refused by name", async () => {
    const { code, err } = await runInside(createPlace(), ["-p", "hi", "--teleport"], { environment });
    expect(code).not.toBe(0);
    expect(err).toContain("--teleport is not supported");
  });
});

describe("words that are no command [CLI-7]", () => {
  test.each([
    [["plugn", "list"]],
    [["authenticate", "me"]],
    [["agent", "list"]],
  ])("%j is an error and no prompt", async (words) => {
    const { code, err } = await runInside(createPlace(), words, { environment: { ANTHROPIC_API_KEY: "x" } });
    expect(code).toBe(2);
    expect(err).toContain(`There is no command \`${words[0]}\``);
  });
});
