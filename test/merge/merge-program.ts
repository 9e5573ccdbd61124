import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { blockCheck, keepsBothSides } from "./seeded-set.ts";

// Merges the children of a session as a program of its own, so that it can be killed.
const [cwd = "", home = "", session = ""] = process.argv.slice(2);
const runtime = createRuntime({
  cwd,
  home,
  env: { PATH: process.env["PATH"], HOME: home, RETINUE_LOCAL_MODELS: "0" },
  model: createScriptedModel([keepsBothSides]),
  transcripts: true,
  trusted: true,
  skipPermissions: true,
});
const { status, entries, notApplied } = await runtime.merge(session, { apply: true, checks: blockCheck })
  .result;
process.stdout.write(JSON.stringify({ status, notApplied, entries }));
await runtime.close();
