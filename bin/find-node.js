// Runs on any Node there is, so it uses nothing newer than Node 14 has.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const isWindows = process.platform === "win32";
const program = isWindows ? "node.exe" : "node";

/** Node 22.18 is the first that runs what this package is built for. */
export function isNewEnough(version) {
  const [major, minor] = version.replace(/^v/, "").split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

/** The path of a Node that is new enough: one that was installed with this package, of a version manager, or on the PATH. */
export function findNode(environment = process.env, cwd = process.cwd()) {
  for (const candidate of candidates(environment, cwd)) {
    const path = pathOf(candidate);
    if (path !== undefined) return path;
  }
  return undefined;
}

function* candidates(environment, cwd) {
  if (environment.RETINUE_NODE) yield environment.RETINUE_NODE;
  // `npm install node` puts one beside or below this package, and a checkout has one among its programs where it needs one.
  const own = dirname(dirname(fileURLToPath(import.meta.url)));
  for (const folder of [join(own, "node_modules"), dirname(own)])
    for (const place of [join("node", "bin"), ".bin"]) yield join(folder, place, program);
  for (const [folder, rest] of managed(environment))
    for (const name of newest(folder)) yield join(folder, name, rest);
  const places = (environment.PATH || environment.Path || "").split(delimiter);
  for (const folder of [...places, "/opt/homebrew/bin", "/usr/local/bin", "/usr/bin"])
    if (isAbsolute(folder) && !isBelow(folder, cwd)) yield join(folder, program);
}

/** Where version managers keep the versions they have installed, and where in each the program is. */
function managed(environment) {
  const home = environment.HOME || homedir();
  const data = environment.XDG_DATA_HOME || join(home, ".local/share");
  const inBin = isWindows ? program : join("bin", program);
  const fnm = join("installation", inBin);
  return [
    [join(environment.NVM_DIR || join(home, ".nvm"), "versions/node"), inBin],
    [join(environment.FNM_DIR || join(data, "fnm"), "node-versions"), fnm],
    [join(home, ".fnm/node-versions"), fnm],
    [join(environment.VOLTA_HOME || join(home, ".volta"), "tools/image/node"), inBin],
    [join(environment.ASDF_DATA_DIR || join(home, ".asdf"), "installs/nodejs"), inBin],
    [join(environment.MISE_DATA_DIR || join(data, "mise"), "installs/node"), inBin],
    [join(environment.N_PREFIX || "/usr/local", "n/versions/node"), inBin],
  ];
}

/** The versions in a folder that are new enough, the newest first. */
function newest(folder) {
  let names = [];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  const numbers = (name) => name.replace(/^v/, "").split(".").map(Number);
  return names
    .filter((name) => /^v?\d+\.\d+\.\d+$/.test(name) && isNewEnough(name))
    .sort((a, b) => {
      const [left, right] = [numbers(a), numbers(b)];
      return right[0] - left[0] || right[1] - left[1] || right[2] - left[2];
    });
}

/** What the working folder holds is not run. */
function isBelow(folder, cwd) {
  const way = relative(cwd, folder);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

/** Where a candidate really is. It is asked in a folder that nobody has laid out for it: some are scripts that obey files around them. */
function pathOf(candidate) {
  if (!existsSync(candidate)) return undefined;
  const code = "console.log(process.version + ' ' + process.execPath)";
  const asked = spawnSync(candidate, ["-e", code], {
    cwd: isWindows ? undefined : "/",
    encoding: "utf8",
    timeout: 10_000,
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  const [, version, path] = /^(v\S+) (.+)$/m.exec(asked.stdout || "") || [];
  return version !== undefined && isNewEnough(version) && existsSync(path) ? path : undefined;
}

/** Runs the command on another Node in the place of this process: the same pipes, signals and end. */
export function runOn(node, script, words) {
  const child = spawn(node, [script, ...words], { stdio: "inherit" });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
  const pass = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  return new Promise((resolve) => {
    child.on("error", (error) => {
      console.error(`retinue: ${node} could not be started: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code, signal) => {
      for (const each of signals) process.off(each, pass);
      if (signal !== null) process.kill(process.pid, signal);
      resolve(code === null ? 1 : code);
    });
  });
}
