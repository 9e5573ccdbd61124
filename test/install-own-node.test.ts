import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { projectRoot, readProjectFile } from "./project-files.ts";

/** A checkout whose Node comes from a folder instead of the registry; `files` are those of that package. */
function createCheckout(files: Readonly<Record<string, string>>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "own-node-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const own = join(root, "scripts/own-node");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(own, "program", name)), { recursive: true });
    writeFileSync(join(own, "program", name), text);
    chmodSync(join(own, "program", name), 0o755);
  }
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  cpSync(join(projectRoot, "scripts/install-own-node.js"), join(root, "scripts/install-own-node.js"));
  const optionalDependencies = { "node-here": "file:program" };
  writeFileSync(join(own, "package.json"), JSON.stringify({ private: true, optionalDependencies }));
  const packages = {
    "": { optionalDependencies },
    "node_modules/node-here": { resolved: "program", link: true, optional: true },
    program: { name: "node-here", version: "1.0.0", optional: true },
  };
  writeFileSync(join(own, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
  return root;
}

/** Runs the script as a Node of that version does. */
function prepare(root: string, version: string) {
  const versions = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
  const words = ["--import", `data:text/javascript,${versions}`, join(root, "scripts/install-own-node.js")];
  return spawnSync(process.execPath, words, {
    encoding: "utf8",
    env: { ...process.env, npm_execpath: undefined },
  });
}

const manifest = JSON.stringify({ name: "node-here", version: "1.0.0" });
const program = "#!/bin/sh\necho v24.0.0\n";

test.skipIf(process.platform === "win32").each(["20.19.0", "22.18.0"])(
  "Node %s gets a newer one among the programs, and nothing else of its package stays",
  (version) => {
    const root = createCheckout({ "package.json": manifest, "bin/node": program });
    expect(prepare(root, version)).toMatchObject({ status: 0, stdout: "" });
    expect(execFileSync(join(root, "node_modules/.bin/node"), { encoding: "utf8" })).toBe("v24.0.0\n");
    expect(readdirSync(join(root, "scripts/own-node")).toSorted()).toEqual([
      "package-lock.json",
      "package.json",
      "program",
    ]);
  },
);

test.each(["24.0.0", "26.9.0"])("Node %s is used as it is", (version) => {
  const root = createCheckout({ "package.json": manifest, "bin/node": program });
  expect(prepare(root, version)).toMatchObject({ status: 0, stdout: "", stderr: "" });
  expect(existsSync(join(root, "node_modules"))).toBe(false);
});

test("where npm has none for the machine, one sentence says what to install", () => {
  const { status, stderr } = prepare(createCheckout({ "package.json": manifest }), "22.18.0");
  expect(status).toBe(1);
  expect(stderr).toContain("Scripts and tests need Node 24 or newer. ");
  expect(stderr).toContain("Install a newer Node and run npm ci again.");
});

test("every package that may be installed is for one system, and has a checksum", () => {
  const { packages } = JSON.parse(readProjectFile("scripts/own-node/package-lock.json"));
  const { "": manifest, ...nodes } = packages;
  expect(Object.keys(nodes)).toEqual(
    Object.keys(manifest.optionalDependencies).map((name) => `node_modules/${name}`),
  );
  for (const node of Object.values(nodes))
    expect(node).toMatchObject({
      os: expect.anything(),
      cpu: expect.anything(),
      integrity: expect.stringMatching(/^sha512-/),
    });
});
