import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { projectRoot, readProjectFile } from "./project-files.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "cluster-package-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the cluster as a package of its own does what its page says, twice [CLU-1]", () => {
  const options = { cwd: folder, encoding: "utf8" } as const;
  const words = ["pack", join(projectRoot, "packages/cluster/dist"), "--offline", "--loglevel=error"];
  const packed = execFileSync("npm", words, options).trim().split("\n").at(-1) ?? "";
  const place = join(folder, "node_modules/@retinue/cluster");
  mkdirSync(place, { recursive: true });
  execFileSync("tar", ["-xzf", packed, "-C", place, "--strip-components=1"], options);
  const own = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  expect(Object.keys(own.dependencies)).toEqual(["pg"]);
  expect(own.peerDependencies).toEqual({ retinue: own.version });
  symlinkSync(projectRoot, join(folder, "node_modules/retinue"));
  const pg = dirname(createRequire(import.meta.url).resolve("pg/package.json"));
  symlinkSync(pg, join(folder, "node_modules/pg"));

  const page = readProjectFile("packages/cluster/README.md");
  const [, example = ""] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
  const [, printed] = /It prints\n\n {4}(.*)\n/.exec(page) ?? [];
  writeFileSync(join(folder, "agent.mjs"), example);
  const env = { ...process.env, RETINUE_STORE: `file://${join(folder, "store")}` };
  for (const _ of ["first", "second"])
    expect(execFileSync(process.execPath, ["agent.mjs"], { ...options, env }).trimEnd()).toBe(printed);
}, 60_000);
