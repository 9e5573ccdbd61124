/**
 * `prepare`, at the end of `npm ci`: where the machine's Node is too old for the scripts and tests, a newer one is put among the programs of
 * `node_modules`, which npm scripts find first. It comes from a lock file of its own, and of its package only the program is kept: the
 * headers are another 68 MB. This runs on any Node there is, so it uses nothing newer than Node 14 has.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The first whose JavaScript has `await using`, which the tests are written with. */
const lowestMajor = 24;

const scripts = dirname(fileURLToPath(import.meta.url));
const isWindows = process.platform === "win32";
const program = isWindows ? "node.exe" : "node";

if (Number.parseInt(process.versions.node, 10) < lowestMajor && !installNode()) {
  console.error(
    `Scripts and tests need Node ${lowestMajor} or newer. This is ${process.version}, and npm has given no program for ` +
      `${process.platform} ${process.arch}. Install a newer Node and run npm ci again.`,
  );
  process.exitCode = 1;
}

/** Whether there is a program afterwards that this machine can run. */
function installNode() {
  const folder = join(scripts, "own-node");
  const packages = join(folder, "node_modules");
  const words = ["ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund"];
  const npm = process.env.npm_execpath;
  const options = { cwd: folder, stdio: ["ignore", "ignore", "inherit"] };
  if (npm !== undefined) spawnSync(process.execPath, [npm, ...words], options);
  else spawnSync("npm", words, { ...options, shell: isWindows });
  const names = existsSync(packages) ? readdirSync(packages) : [];
  const found = names.map((name) => join(packages, name, "bin", program)).find((file) => existsSync(file));
  if (found === undefined) return false;
  const place = join(dirname(scripts), "node_modules", ".bin", program);
  mkdirSync(dirname(place), { recursive: true });
  rmSync(place, { force: true });
  renameSync(found, place);
  rmSync(packages, { recursive: true, force: true });
  return spawnSync(place, ["--version"]).status === 0;
}
