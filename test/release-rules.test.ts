import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load } from "js-yaml";
import { describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { projectRoot, readProjectFile } from "./project-files.ts";
import { checkRelease, releaseNotes } from "./release-rules.ts";

const tag = `v${packageJson.version}`;

describe("a release [PUB-3]", () => {
  test("is refused with every file whose version is another", () => {
    const read = (path: string) =>
      path === "agent.json" ? readProjectFile(path).replaceAll("0.1.0", "0.0.9") : readProjectFile(path);
    expect(checkRelease(tag, read)).toEqual([
      "agent.json has the version 0.0.9, the tag has 0.1.0.",
      "agent.json, the package has the version 0.0.9, the tag has 0.1.0.",
    ]);
    expect(checkRelease("0.1.0", read)).toEqual(["The tag 0.1.0 is not of the form v1.2.3."]);
  });

  test("needs its section of the changelog", () => {
    const read = (path: string) =>
      path === "CHANGELOG.md" ? "# Changelog\n\n## [Unreleased]\n\n- x\n" : readProjectFile(path);
    expect(checkRelease(tag, read)).toEqual(['CHANGELOG.md has no section "## [0.1.0]" with text.']);
    expect(releaseNotes("v1.0.0", "# C\n\n## [1.0.0] - 2026-01-01\n\n- one\n\n## [0.9.0]\n\n- two\n")).toBe(
      "- one\n",
    );
  });

  test("can be tried: package, SBOM and notes are written without publishing", { timeout: 120_000 }, () => {
    const out = mkdtempSync(join(tmpdir(), "retinue-release-"));
    onTestFinished(() => rmSync(out, { recursive: true, force: true }));
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(projectRoot, "scripts/release.ts"), "--tag", tag, "--out", out, "--dry-run"],
      { encoding: "utf8" },
    );
    expect([status, stderr]).toEqual([0, ""]);
    const version = packageJson.version.replaceAll(".", "\\.");
    for (const name of ["retinue", "retinue-gate", "retinue-cluster"])
      expect(stdout).toMatch(new RegExp(`^${name}-${version}\\.tgz: \\d+ files, \\d+ kB packed$`, "m"));
    const sbom = JSON.parse(readFileSync(join(out, "sbom.cdx.json"), "utf8"));
    expect(sbom.bomFormat).toBe("CycloneDX");
    const names = sbom.components.map(({ name }: { name: string }) => name);
    for (const name of Object.keys(packageJson.dependencies)) expect(names).toContain(name);
    expect(readFileSync(join(out, "notes.md"), "utf8").length).toBeGreaterThan(100);
  });
});

describe("files of the project for other services [PUB-3]", () => {
  test("packages name the repository, without which npm refuses their provenance", () => {
    const { repository } = packageJson;
    const published = (name: string): unknown =>
      JSON.parse(readProjectFile(`packages/${name}/dist/package.json`)).repository;
    expect(repository.url).toMatch(/^git\+https:\/\/github\.com\/retinue\/retinue\.git$/);
    for (const name of ["gate", "cluster"])
      expect(published(name)).toEqual({ ...repository, directory: `packages/${name}` });
  });

  const yaml = (path: string) => load(readProjectFile(path)) as Record<string, never>;

  test("workflows and forms are YAML, and call only scripts that exist", () => {
    for (const path of [
      ".github/workflows/ci.yml",
      ".github/workflows/release.yml",
      ".github/ISSUE_TEMPLATE/bug.yml",
      ".github/ISSUE_TEMPLATE/feature.yml",
      ".github/ISSUE_TEMPLATE/config.yml",
      "action.yml",
    ])
      expect(yaml(path)).toBeTypeOf("object");
    const called = readProjectFile(".github/workflows/ci.yml").matchAll(/npm run ([\w:-]+)/g);
    for (const [, script] of called) expect(Object.keys(packageJson.scripts)).toContain(script);
  });

  test("registry entries name the package, its version and commands that exist", () => {
    const server = JSON.parse(readProjectFile("server.json"));
    expect(server.description.length).toBeLessThanOrEqual(100);
    expect(server.packages[0]).toMatchObject({ identifier: packageJson.name, version: packageJson.version });
    expect(server.name).toBe(packageJson.mcpName);
    const agent = JSON.parse(readProjectFile("agent.json"));
    expect(agent.distribution.npx).toEqual({ package: `retinue@${packageJson.version}`, args: ["acp"] });
  });
});

test("the review of the GitHub action runs in a checkout, with agents that may only read [PUB-3]", {
  timeout: 120_000,
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "retinue-review-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const repository = join(folder, "repo");
  const script = [
    `mkdir -p "${repository}" && cd "${repository}" && git init -q .`,
    "git config user.email a@b.c && git config user.name a",
    "echo one > a.txt && git add . && git commit -qm one && echo two > a.txt && git commit -qam two",
    `bash "${join(projectRoot, "examples/review/review.sh")}"`,
  ].join("\n");
  const output = join(folder, "output");
  const { status, stdout, stderr } = spawnSync("bash", ["-ec", script], {
    encoding: "utf8",
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      BASE: "HEAD~1",
      MODEL: "offline",
      RUNNER_TEMP: folder,
      GITHUB_OUTPUT: output,
      RETINUE: join(projectRoot, "bin/retinue.js"),
    },
  });
  expect(stderr).not.toMatch(/error/i);
  expect([status, stdout.includes("review.md")]).toEqual([0, true]);
  expect(readFileSync(join(folder, "change.diff"), "utf8")).toContain("+two");
  expect(readFileSync(output, "utf8")).toMatch(/^result=.*review\.md\ncost=\d/);
});
