import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readProjectFile } from "../project-files.ts";
import { installLocked } from "./install-on-demand.ts";

type Locked = Readonly<Record<string, object>>;

/** A folder whose manifest wants the dependencies and whose lock file holds the packages; its registry answers nothing. */
function createGroup(
  dependencies: Readonly<Record<string, string>>,
  packages: Locked,
  registry = "http://127.0.0.1:9/",
): string {
  const folder = mkdtempSync(join(tmpdir(), "on-demand-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const settings = [`registry=${registry}`, `logs-dir=${join(folder, "logs")}`, "fetch-retries=0"];
  writeFileSync(join(folder, ".npmrc"), settings.join("\n"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  mkdirSync(join(folder, "part"));
  writeFileSync(join(folder, "part/package.json"), JSON.stringify({ name: "part", version: "1.0.0" }));
  writeLock(folder, { "": { dependencies }, ...packages });
  return folder;
}

function writeLock(folder: string, packages: Locked): void {
  const lock = { lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
}

const part = { "node_modules/part": { resolved: "part", link: true }, part: { version: "1.0.0" } };

/** npm writes a log of each of its runs. */
const runsOf = (folder: string): number => readdirSync(join(folder, "logs")).length;

test("of several who ask at the same time one installs, and later ones find it done until the lock file changes", async () => {
  const folder = createGroup({ part: "file:part" }, part);
  const answers = await Promise.all([installLocked(folder), installLocked(folder), installLocked(folder)]);
  expect(answers).toEqual(Array(3).fill({ folder, missing: undefined }));
  expect(readFileSync(join(folder, "node_modules/part/package.json"), "utf8")).toContain("part");
  await installLocked(folder);
  expect(runsOf(folder)).toBe(1);
  expect(existsSync(join(folder, "node_modules.lock"))).toBe(false);
  const packages = { "": { dependencies: { part: "file:part" }, license: "MIT" }, ...part };
  writeLock(folder, packages);
  await installLocked(folder);
  expect(runsOf(folder)).toBe(2);
});

test("without the registry the answer says so, and the next who asks tries again", async () => {
  const far = { "node_modules/far": { version: "1.0.0", integrity: "sha512-AAAA" } };
  const folder = createGroup({ far: "1.0.0" }, far);
  const { missing } = await installLocked(folder);
  expect(missing).toBe("the npm registry cannot be reached: ECONNREFUSED");
  await installLocked(folder);
  expect(runsOf(folder)).toBe(2);
});

test("a registry that takes connections and never answers is given up on", async () => {
  const silent = createServer();
  onTestFinished(() => void silent.close());
  await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
  const { port } = silent.address() as AddressInfo;
  const far = { "node_modules/far": { version: "1.0.0", integrity: "sha512-AAAA" } };
  const folder = createGroup({ far: "1.0.0" }, far, `http://127.0.0.1:${port}/`);
  const { missing } = await installLocked(folder, 2000);
  expect(missing).toBe("the npm registry gave no answer within 2 seconds");
});

test("a lock file that does not fit its manifest is a fault, not a reason to skip", async () => {
  const folder = createGroup({ part: "file:part" }, {});
  await expect(installLocked(folder)).rejects.toThrow("EUSAGE");
});

test.each([
  "conformance",
  "inspector",
  "postgres",
  "telemetry",
])("`npm ci` does not install what the group %s holds", (group) => {
  const { dependencies } = JSON.parse(readProjectFile(`test/on-demand/${group}/package.json`));
  const { packages } = JSON.parse(readProjectFile("package-lock.json"));
  // An optional peer of the package, which its own tests use as well.
  const names = Object.keys(dependencies).filter((name) => name !== "@opentelemetry/api");
  expect(names.filter((name) => `node_modules/${name}` in packages)).toEqual([]);
});
