import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as gate from "@retinue/gate/index.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { projectRoot } from "./project-files.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "gate-package-")));
const npm = (directory: string, ...words: string[]): string =>
  execFileSync("npm", [...words, "--offline", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: directory,
    encoding: "utf8",
  });

/** The first example of the page, and what the page says that it prints. */
const page = readFileSync(join(projectRoot, "packages/gate/README.md"), "utf8");
const [, example = ""] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
const printed = [...page.matchAll(/^ {4}((?:allow|deny|ask): .*)$/gm)].map(([, line]) => line);

beforeAll(() => {
  const [packed = ""] = npm(folder, "pack", join(projectRoot, "packages/gate/dist"))
    .trim()
    .split("\n")
    .slice(-1);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  npm(folder, "install", `./${packed}`);
  mkdirSync(join(folder, "src"));
  for (const file of [".env", "src/a.ts"]) writeFileSync(join(folder, file), "");
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the gate as a package of its own", () => {
  test("is installed alone, with its types, and brings nothing else", () => {
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "@retinue",
    ]);
    expect(readdirSync(join(folder, "node_modules/@retinue"))).toEqual(["gate"]);
    const place = join(folder, "node_modules/@retinue/gate");
    const { exports, dependencies } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
    expect(dependencies).toBeUndefined();
    expect(readFileSync(join(place, exports["."].types), "utf8")).toContain("createGate");
  });

  test("does in an empty folder what its page says", () => {
    writeFileSync(join(folder, "example.js"), example);
    const output = execFileSync(process.execPath, ["example.js"], { cwd: folder, encoding: "utf8" });
    expect(printed).toHaveLength(4);
    expect(output.trimEnd().split("\n")).toEqual(printed);
  });

  test("exports a few names", () => {
    expect(Object.keys(gate).sort()).toEqual(["createGate", "formatRule", "parsePolicy", "parseRule"]);
  });

  test("says what it could not read of a policy", () => {
    const { policy, problems } = gate.parsePolicy(
      { allow: ["Bash(ls *)"], deny: ["Bash(^rm)", 7], defaultMode: "free" },
      { directory: folder },
    );
    expect(problems.map(({ entry }) => entry)).toEqual(["Bash(^rm)", "7", "free"]);
    expect([policy.mode, policy.allow.length, policy.deny.length]).toEqual(["default", 1, 0]);
  });

  test("denies what would be asked where no person is", async () => {
    const { policy } = gate.parsePolicy({}, { directory: folder });
    const call = { tool: "Write", input: { file_path: "a.ts", content: "" } };
    expect(await gate.createGate(policy).decide(call)).toMatchObject({
      type: "ask",
      suggestions: ["Edit(./**)"],
    });
    expect(await gate.createGate(policy).decide(call, { attended: false })).toMatchObject({ type: "deny" });
  });
});
