import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { expect, onTestFinished, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { projectRoot } from "./project-files.ts";

const run = promisify(execFile);

/** A program as users write it, which reads files, asks a model and starts a child. */
const program = `
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";
async function main() {
  const model = createScriptedModel([
    { match: "Look.", text: "Seen." },
    { calls: [{ name: "Glob", input: { pattern: "*" } }, { name: "Agent", input: { description: "look", prompt: "Look." } }] },
    "Bundled.",
  ]);
  const runtime = createRuntime({ model, home: process.cwd() });
  const { text, totals } = await runtime.run("Go.").result;
  console.log(text, totals.toolUses);
  await runtime.close();
}
main();
`;

/** The package as an import finds it. */
const alias = Object.fromEntries(
  Object.entries(packageJson.exports).flatMap(([path, entry]) =>
    typeof entry === "string" ? [] : [[`retinue${path.slice(1)}`, join(projectRoot, entry.default)]],
  ),
);

test.each([
  ["esm", "mjs"],
  ["cjs", "cjs"],
] as const)("a program bundled with esbuild into one %s file runs [SDK-1]", async (format, ending) => {
  const folder = mkdtempSync(join(tmpdir(), "bundled-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [entry, outfile] = [join(folder, "program.js"), join(folder, `out.${ending}`)];
  writeFileSync(entry, program);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format,
    alias,
    nodePaths: [join(projectRoot, "node_modules")],
    logLevel: "silent",
  });
  // Nothing but the one file: a static import of a package would end it here.
  const { stdout } = await run(process.execPath, [outfile], { cwd: folder });
  expect(stdout.trim()).toBe("Bundled. 2");
});
