import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { projectRoot } from "./project-files.ts";

const entries = Object.values(packageJson.exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [join(projectRoot, entry.types)],
);

const read = (file: string): string => readFileSync(file, "utf8");

/** Files by the path that a statement names; undefined for packages. */
function target(file: string, from: string): string | undefined {
  if (!from.startsWith(".")) return undefined;
  const path = resolve(dirname(file), from).replace(/\.(?:ts|js)$/, ".d.ts");
  return existsSync(path) ? path : undefined;
}

/** Every file that a program's compiler reads for an entry. */
function reachable(entry: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from = ""] of read(file).matchAll(/(?:from|import\()\s*"([^"]+)"/g)) {
      const next = target(file, from);
      if (next !== undefined) visit(next);
    }
  };
  visit(entry);
  return seen;
}

/** What a program that installs the package has: all that its dependencies bring, and the types of Node. */
const installed = Object.keys(packageJson.dependencies);

describe("the types of the package [SDK-1]", () => {
  test.each(
    entries.map((entry) => [entry.slice(projectRoot.length), entry] as const),
  )("%s needs no package that is not installed with it", (_name, entry) => {
    const needed = [...reachable(entry)].flatMap((file) =>
      [...read(file).matchAll(/(?:^(?:import|export) [^"]*from|import\()\s*"([^"]+)"/gm)]
        .map(([, from = ""]) => from)
        .filter((from) => !from.startsWith(".") && !from.startsWith("node:"))
        .filter((from) => !installed.some((name) => from === name || from.startsWith(`${name}/`)))
        .map((from) => `${from} in ${file.slice(projectRoot.length)}`),
    );
    expect(needed).toEqual([]);
  });
});

const program = `
import { createRuntime, defineAgent, type RunOptions, type RuntimeOptions, type SpawnOptions } from "retinue";
import { openStore } from "retinue/cluster";
import { discoverAgents } from "retinue/definitions";
import { createScriptedModel } from "retinue/testing";

export function start(text: string | undefined, flag: boolean | undefined, count: number | undefined): unknown {
  const options: RuntimeOptions = { cwd: text, home: text, model: text, transcripts: flag, concurrency: count, hooks: undefined };
  const run: RunOptions = { agent: text, resume: text, maxTurns: count, canUseTool: undefined, signal: undefined };
  const spawn: SpawnOptions = { model: text, background: flag, maxTurns: count };
  const agent = defineAgent({ name: "a", description: "d", prompt: "p", model: text, maxTurns: count, tools: undefined });
  const model = createScriptedModel([{ text: "a", failure: undefined }], { facts: undefined });
  const found = discoverAgents({ cwd: ".", home: ".", settings: text, trusted: flag });
  return [createRuntime(options), run, spawn, agent, model, found, openStore("", { tenant: text, outageMs: count })];
}
`;

test("a program with exactOptionalPropertyTypes may pass on options that are undefined [SDK-1]", () => {
  const folder = mkdtempSync(join(tmpdir(), "types-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const paths = Object.fromEntries(
    Object.entries(packageJson.exports).flatMap(([name, entry]) =>
      typeof entry === "string" ? [] : [[`retinue${name.slice(1)}`, [join(projectRoot, entry.types)]]],
    ),
  );
  const compilerOptions = {
    exactOptionalPropertyTypes: true,
    paths,
    typeRoots: [join(projectRoot, "node_modules/@types")],
  };
  const config = { extends: join(projectRoot, "tsconfig.json"), compilerOptions, include: ["program.mts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(folder, "program.mts"), program);
  const compiler = join(projectRoot, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", folder], { encoding: "utf8" });
  expect(stdout).toBe("");
});
