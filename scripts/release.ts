/**
 * `node scripts/release.ts --tag vX.Y.Z --out DIR [--dry-run]`: checks that a release fits together, then writes the three packages, the SBOM and the
 * notes into DIR. Publishing itself is left to the workflow that calls it (docs/releasing.md).
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectRoot } from "../test/project-files.ts";
import { checkRelease, releaseNotes } from "../test/release-rules.ts";

const { values } = parseArgs({
  options: { tag: { type: "string" }, out: { type: "string" }, "dry-run": { type: "boolean" } },
});
const { tag, out } = values;
if (tag === undefined || out === undefined)
  fail(["Usage: node scripts/release.ts --tag vX.Y.Z --out DIR [--dry-run]"]);

const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8");
const problems = checkRelease(tag, read);
if (problems.length > 0) fail(problems);

mkdirSync(out, { recursive: true });
// --ignore-scripts: `npm test` has built dist/ already, and a dry run should not build it again.
const options = ["--json", "--ignore-scripts"];
const target = values["dry-run"] ? ["--dry-run"] : ["--pack-destination", out];
const folders = [".", "./packages/gate/dist", "./packages/cluster/dist"];
const packed: unknown = JSON.parse(npm(["pack", ...folders, ...options, ...target]));
const packages = Object.values(
  packed as Record<string, { filename: string; size: number; entryCount: number }>,
);
// With development packages, which are marked: `--omit dev` drops packages that are needed in both ways.
writeFileSync(join(out, "sbom.cdx.json"), npm(["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"]));
writeFileSync(join(out, "notes.md"), releaseNotes(tag, read("CHANGELOG.md")));
for (const { filename, entryCount, size } of packages)
  console.log(`${filename}: ${entryCount} files, ${Math.round(size / 1000)} kB packed`);

function npm(words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("npm", words, {
    cwd: projectRoot,
    encoding: "utf8",
    maxBuffer: 64_000_000,
    shell: process.platform === "win32",
  });
  if (status !== 0) fail([`npm ${words.join(" ")} failed: ${stderr.trim().slice(-2000)}`]);
  return stdout;
}

function fail(lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}
