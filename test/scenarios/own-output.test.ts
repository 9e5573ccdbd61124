import { renameSync, symlinkSync } from "node:fs";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, runInProcess } from "./run-command.ts";

const lines = (word: string) => Array.from({ length: 6_000 }, (_, at) => `${word} ${at}`).join("\n");
const lastOf = ({ messages }: ModelRequest) => JSON.stringify(messages.at(-1));
const fileIn = (request: ModelRequest) => /[^\s"]+\.(?:output|txt)/.exec(lastOf(request))?.[0];
const read = (file_path: string | undefined, offset = 1) => ({
  calls: [{ name: "Read", input: { file_path, offset, limit: 5 } }],
});
const delegate = {
  name: "Agent",
  input: { description: "report", prompt: "TASK", subagent_type: "general-purpose" },
};
const child = (step: object): Step => ({
  match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes("TASK"),
  ...step,
});

/** Unattended: whatever no rule allows is refused. */
async function run(steps: readonly Step[], change: (place: Place) => void = () => undefined) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  change(place);
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const finished = await runInProcess(place, ["-p", "go", "--allowedTools", "Bash(seq *)"], { environment });
  provider.finish();
  return { finished, requests: provider.requests.map(({ request }) => request) };
}

describe("what a result points to can be read by the agents of the session [AGT-4]", () => {
  test("the text of a child behind its first 30,000 characters, from its file and by pages [TSK-1]", async () => {
    let file: string | undefined;
    let id: string | undefined;
    const { finished, requests } = await run([
      child({ text: lines("line") }),
      { calls: [delegate] },
      (request) => {
        file = fileIn(request);
        id = /agent id (\w+)/.exec(lastOf(request))?.[1];
        return read(file, 5_990);
      },
      () => ({ calls: [{ name: "TaskOutput", input: { task_id: id, offset: 30_000 } }] }),
      "Done.",
    ]);
    expect(finished).toMatchObject({ code: 0, out: "Done.\n" });
    expect(file).toMatch(/\/tasks\/\w+\.output$/);
    expect(requests[2] && lastOf(requests[2])).toContain(`offset 30000 reads on`);
    expect(requests[3] && lastOf(requests[3])).toContain("line 5990");
    expect(requests[4] && lastOf(requests[4])).toMatch(/characters 30001 to 58889 of 58889; this is the end/);
  });

  test("the output of a child's own command, also where home is a link", async () => {
    const { finished, requests } = await run(
      [
        child({ calls: [{ name: "Bash", input: { command: "seq 1 20000" } }] }),
        child({ respond: (request: ModelRequest) => read(fileIn(request), 12_345) }),
        child({ text: "Read." }),
        { calls: [delegate] },
        "Done.",
      ],
      ({ home }) => {
        renameSync(home, `${home}-real`);
        symlinkSync(`${home}-real`, home);
      },
    );
    expect(finished).toMatchObject({ code: 0, out: "Done.\n" });
    const reported = requests.map(lastOf).find((text) => text.includes("12345"));
    expect(reported).toContain("12346");
    expect(reported).not.toContain("not allowed");
  });

  test("and nothing beside it: the transcripts stay closed, and nothing there can be written [PRM-1]", async () => {
    let folder: string | undefined;
    const { requests } = await run([
      child({ text: lines("line") }),
      { calls: [delegate] },
      (request) => {
        folder = fileIn(request)?.replace(/\/tasks\/.*$/, "");
        return {
          calls: [
            { name: "Read", input: { file_path: `${folder}.jsonl` } },
            { name: "Write", input: { file_path: `${folder}/tasks/x.output`, content: "forged" } },
          ],
        };
      },
      "Done.",
    ]);
    expect(requests[3] && lastOf(requests[3])).toMatch(/Read was not allowed.*Write was not allowed/s);
  });
});
