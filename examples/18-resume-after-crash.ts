// A process dies in the middle of a run. The next one finds the session and continues it: what was done is not done again.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineTool } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const doomed = process.env["DOOMED_IN"];
const transcripts = doomed ?? mkdtempSync(join(tmpdir(), "crash-"));
const step = defineTool({
  name: "step",
  description: "Does one of the two steps.",
  effect: "read",
  input: z.object({ number: z.number() }),
  call({ number }) {
    if (doomed && number === 2) process.kill(process.pid, "SIGKILL");
    return `Step ${number} is done.`;
  },
});
const call = (number: number) => ({ calls: [{ name: "step", input: { number } }] });
const model = createScriptedModel(doomed ? [call(1), call(2)] : [call(2), "Both steps are done."]);
const runtime = createRuntime({ model, tools: [step], transcripts });

if (doomed) await runtime.run("Do both steps.").text;
const { signal } = spawnSync(process.execPath, [import.meta.filename], {
  env: { ...process.env, DOOMED_IN: transcripts },
});
console.log("the first process ended with", signal);

const { sessions } = await runtime.interrupted();
for (const { id } of sessions) {
  const run = runtime.run("Continue.", { resume: id });
  console.log(await run.text, "after", (await run.result).totals.toolUses, "more call");
}
await runtime.close();
rmSync(transcripts, { recursive: true });
