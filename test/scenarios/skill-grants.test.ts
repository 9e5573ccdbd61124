import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Session } from "@retinue/core/kernel/session.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

const files = {
  ".claude/skills/ship/SKILL.md":
    "---\ndescription: Ships.\nallowed-tools: Bash(touch *)\ndisallowed-tools: Grep\n---\nShip.\n",
  ".claude/agents/one.md": "---\nname: one\ndescription: d\ntools: Bash, Skill\n---\nYou are one.\n",
  ".claude/agents/two.md": "---\nname: two\ndescription: d\ntools: Bash, Skill\n---\nYou are two.\n",
};

async function open(steps: readonly Step[]): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, { trusted: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(sample.workspace.path(name)), { recursive: true });
    await writeFile(sample.workspace.path(name), text);
  }
  return sample;
}

const ship: Step = { calls: [{ name: "Skill", input: { skill: "ship" } }] };
const touch = (file: string): Step => ({ calls: [{ name: "Bash", input: { command: `touch ${file}` } }] });
const spawn = (type: string): Step => ({
  calls: [{ name: "Agent", input: { description: "d", prompt: "p", subagent_type: type } }],
});
const by = (who: string, step: object): Step => ({ match: `You are ${who}`, ...step });

describe("[SKL-3] what a skill grants ends with the prompt that it was called for", () => {
  let stopNow = (): string => "";
  const endings: readonly (readonly [string, readonly Step[], (session: Session) => Promise<unknown>])[] = [
    [
      "that is stopped",
      [ship, touch("granted"), () => stopNow()],
      (session) => {
        const run = session.prompt("One.");
        stopNow = () => {
          void run.stop();
          return "Too late.";
        };
        return run.result;
      },
    ],
    [
      "that fails",
      [ship, touch("granted"), { failure: "invalid-request" }],
      (session) => session.prompt("One.").result,
    ],
    [
      "whose events no one reads any more",
      [ship, touch("granted")],
      async (session) => {
        let finished = 0;
        for await (const { type } of session.stream("One.", new AbortController().signal)) {
          if (type === "call-finished") finished += 1;
          if (finished === 2) break;
        }
      },
    ],
    [
      "that a person began with /ship and that fails",
      [touch("granted"), { failure: "invalid-request" }],
      (session) => session.prompt("/ship").result,
    ],
  ];

  test.each(endings)("%s", async (_, steps, end) => {
    await using sample = await open([...steps, touch("later"), "Done."]);
    await using session = await sample.runtime.open({ allowedTools: ["Skill(ship)"] });
    await end(session);
    expect(existsSync(sample.workspace.path("granted"))).toBe(true);
    await session.prompt("Two.").result;
    expect(existsSync(sample.workspace.path("later"))).toBe(false);
  });

  test("and is not shared by a parent, its child and the child beside it", async () => {
    await using sample = await open([
      spawn("one"),
      by("one", ship as object),
      by("one", touch("by-one") as object),
      by("one", { text: "One." }),
      spawn("two"),
      by("two", touch("by-two") as object),
      by("two", { text: "Two." }),
      touch("by-main"),
      ship,
      spawn("two"),
      by("two", touch("by-child-of-granted") as object),
      by("two", { text: "Two." }),
      touch("by-granted-main"),
      "Done.",
    ]);
    await sample.runtime.run("Go.", { allowedTools: ["Skill(ship)"] }).result;
    const made = ["by-one", "by-two", "by-main", "by-child-of-granted", "by-granted-main"].filter((name) =>
      existsSync(sample.workspace.path(name)),
    );
    expect(made).toEqual(["by-one", "by-granted-main"]);
  });
});

test("[SKL-3] an entry of a list of allowed tools is one rule, and a command without parentheses grants nothing", async () => {
  await using sample = await open([ship, touch("granted"), "Refused."]);
  const skill = '---\ndescription: Ships.\nallowed-tools: ["Bash touch granted"]\n---\nShip.\n';
  await writeFile(sample.workspace.path(".claude/skills/ship/SKILL.md"), skill);
  const result = await sample.runtime.run("One.").result;
  expect(result.denials).toHaveLength(1);
  expect(existsSync(sample.workspace.path("granted"))).toBe(false);
});
