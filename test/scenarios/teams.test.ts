import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/model/model.ts";
import { createSampleRuntime, type SampleRuntime } from "../../src/testing/sample-runtime.ts";
import type { ScriptedCall, ScriptedStep, Step } from "../../src/testing/script.ts";

const isMember =
  (name: string) =>
  ({ system }: ModelRequest): boolean =>
    system.join("\n").includes(`You are ${JSON.stringify(name)}, a teammate`);
const member = (name: string, step: Omit<ScriptedStep, "match">): Step => ({ match: isMember(name), ...step });
const isLead = ({ system }: ModelRequest): boolean => !system.join("\n").includes(", a teammate in the team");
const lead = (step: Omit<ScriptedStep, "match">): Step => ({ match: isLead, ...step });
/** The lead's answer to a message that holds a text. */
const leadOn = (text: string, step: Omit<ScriptedStep, "match">): Step => ({
  match: (request) => isLead(request) && last(request).includes(text),
  ...step,
});
const start = (name: string, more: object = {}): ScriptedCall => ({
  name: "Agent",
  input: { description: "work", prompt: `TASK of ${name}`, name, ...more },
});
const send = (to: string, message: string, more: object = {}): ScriptedCall => ({
  name: "SendMessage",
  input: { to, message, ...more },
});
const last = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const all = (request: ModelRequest | undefined) => JSON.stringify(request?.messages);
const of = (sample: Pick<SampleRuntime, "requests">, name: string) => sample.requests.filter(isMember(name));
const teamOf = (sample: SampleRuntime, sessionId: string) =>
  JSON.parse(
    readFileSync(join(sample.home, ".claude/teams", `session-${sessionId.slice(0, 8)}`, "config.json"), "utf8"),
  );

test("a named agent is a teammate: it works, is idle, and works again on mail [TEA-1, TEA-5]", async () => {
  await using sample = await createSampleRuntime(
    [
      leadOn("It is 41", { calls: [send("ada", "Are you sure?")] }),
      lead({ calls: [start("ada")] }),
      member("ada", { calls: [send("team-lead", "It is 41.")] }),
      member("ada", { text: "Reported." }),
      lead({ text: "Waiting." }),
      lead({ text: "Asked.", times: 5 }),
      member("ada", { calls: [send("team-lead", "No, 42.")] }),
      member("ada", { text: "Corrected." }),
    ],
    { teams: true },
  );
  const result = await sample.runtime.run("Begin.").result;
  expect(of(sample, "ada")).toHaveLength(4);
});
