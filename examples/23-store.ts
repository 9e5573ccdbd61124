// Runs that outlive the program that asks for them: a store keeps them, and its workers carry them out. This store is a folder,
// with a worker in the same process; with `postgres://…` programs and workers are on as many machines as you like.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createRuntime } from "retinue";
import { openStore, serveSessions, workersOf } from "retinue/cluster";
import { createScriptedModel } from "retinue/testing";

const folder = mkdtempSync(join(tmpdir(), "store-"));
const model = createScriptedModel(["The report is written.", "It has two pages."]);
const store = await openStore(pathToFileURL(folder).href);
const worker = await serveSessions(store, { slots: 4, runtime: { model } });

const runtime = createRuntime({ store: workersOf(store) });
const run = runtime.run("Write the report.");
console.log(await run.text);
console.log(await runtime.run("How long is it?", { resume: run.sessionId }).text);

await runtime.close();
await worker.drain();
await store.close();
rmSync(folder, { recursive: true });
