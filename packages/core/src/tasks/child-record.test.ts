import { existsSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";
import { textOf } from "../conversation/message.ts";
import type { ModelRequest } from "../models/model.ts";

const call = (name: string, input: object) => ({ calls: [{ name, input }] });
const spoken = ({ messages }: ModelRequest): string => JSON.stringify(messages);
const isChild = ({ messages }: ModelRequest): boolean =>
  messages[0] !== undefined && textOf(messages[0]).includes("Count the files.");
const turn = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === "assistant").length;

describe("children of a session that keeps no transcripts", () => {
  it("are resumed from memory, by the Agent tool and by a message [AGT-4]", async () => {
    const main = (request: ModelRequest) => {
      const id = /a[0-9a-f]{16}/.exec(spoken(request))?.[0] ?? "";
      const start = { description: "Count", subagent_type: "general-purpose" };
      return [
        call("Agent", { ...start, prompt: "Count the files." }),
        call("Agent", { ...start, prompt: "And the folders?", resume: id }),
        call("SendMessage", { to: id, message: "And the links?" }),
        "Done.",
      ][turn(request)];
    };
    const step = (request: ModelRequest) =>
      (isChild(request) ? ["7 files.", "3 folders.", "No links."][turn(request)] : main(request)) ?? "?";
    await using sample = await createSampleRuntime(Array(7).fill(step), { transcripts: false });
    expect((await sample.runtime.run("Go.").result).text).toBe("Done.");
    const last = sample.requests.filter(isChild).at(-1);
    expect(last?.messages.map(textOf)).toEqual([
      "Count the files.",
      "7 files.",
      "And the folders?",
      "3 folders.",
      expect.stringContaining("And the links?"),
    ]);
    expect(spoken(sample.requests.at(-1) as ModelRequest)).toContain("No links.");
    expect(existsSync(join(sample.home, ".claude/projects"))).toBe(false);
  });

  it.each([
    ["name no output file where there is none", false],
    ["name their output file where there is one", true],
  ])("%s [BGR-1]", async (_title, transcripts) => {
    const step = (request: ModelRequest) => {
      if (isChild(request)) return "7 files.";
      const prompt = "Count the files.";
      const input = {
        description: "Count",
        prompt,
        subagent_type: "general-purpose",
        run_in_background: true,
      };
      return turn(request) === 0 ? call("Agent", input) : "Done.";
    };
    await using sample = await createSampleRuntime(Array(9).fill(step), { transcripts });
    await sample.runtime.run("Go.").result;
    const read = sample.requests.filter((request) => !isChild(request)).map(spoken);
    expect(read.join("\n")).toContain("works in the background");
    if (transcripts)
      expect(read.join("\n")).toMatch(/What it does can be followed in \S+\.output; TaskOutput/);
    else expect(read.join("\n")).not.toMatch(/\.output|output-file/);
  });
});
