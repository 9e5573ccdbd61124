import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace } from "./run-command.ts";

/** Runs a program that uses the built package; it must end by itself, unless asked to exit. */
function runProgram(text: string) {
  const place = createPlace();
  const file = join(place.cwd, "program.mjs");
  const lib = (name: string) => JSON.stringify(join(projectRoot, "dist/lib", name));
  const imports = `import { createRuntime, defineTool } from ${lib("index.js")};
import { createScriptedModel, startFakeProvider } from ${lib("testing.js")};
`;
  writeFileSync(file, imports + text);
  const { status, stdout, stderr, signal } = spawnSync(process.execPath, [file], {
    cwd: place.cwd,
    encoding: "utf8",
    env: { HOME: place.home, PATH: process.env["PATH"] },
    timeout: 15_000,
  });
  return { place, status, signal, lines: stdout.trimEnd().split("\n"), stderr };
}

test("after `await using` nothing keeps the process alive: connections, background commands, timers [SDK-3]", () => {
  const { status, signal, lines, stderr } = runProgram(`
await using provider = await startFakeProvider({ script: [
  { calls: [{ name: "Bash", input: { command: "sleep 300", run_in_background: true } }] },
  "It sleeps.",
  { error: "stall", text: "Never the whole of it", after: 1 },
] });
const env = { ...process.env, ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
{
  await using runtime = createRuntime({ env });
  await using session = await runtime.open({ skipPermissions: true });
  console.log((await session.prompt("Start it.").result).text);
  const stalled = session.prompt("Continue.");
  for await (const event of stalled.events) if (event.type === "model-streamed") break;
  setTimeout(() => console.log("This must not be printed."), 14_000).unref();
}
console.log("over");
`);
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: "" });
  expect(lines).toEqual(["It sleeps.", "over"]);
});

test("a run of a program is kept where the command finds it, and the other way round [TRN-1, TRN-3]", () => {
  const { place, lines, stderr } = runProgram(`
const model = createScriptedModel(["One.", "Two."]);
await using runtime = createRuntime({ model, transcripts: true });
const { sessionId } = await runtime.run("First.").result;
await runtime.run("Second.", { continue: true }).result;
console.log(sessionId, model.requests[1].messages.length);
`);
  expect(stderr).toBe("");
  const [id, lines_] = [...place.transcripts()][0] ?? ["", []];
  expect(lines).toEqual([`${id} 3`]);
  expect(lines_.filter(({ type }) => type === "assistant")).toHaveLength(2);
});

test("importing the package loads nothing that only running needs", () => {
  const { lines } = runProgram(`
import { registerHooks } from "node:module";
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
const runtime = createRuntime({ model: createScriptedModel([]) });
await runtime.agents();
console.log(loaded.filter((url) => /zod|anthropic|ripgrep|unbash/.test(url)).length);
const before = loaded.length;
await using session = await runtime.open();
console.log(loaded.length > before, loaded.filter((url) => /zod/.test(url)).length);
await runtime[Symbol.asyncDispose]();
`);
  expect(lines).toEqual(["0", "true 0"]);
});
