import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";

/** Large packages that few tests need: each group is a folder here, with a manifest and a lock file of its own. */
export type OnDemandGroup = "conformance" | "inspector" | "postgres" | "telemetry";

export interface OnDemandPackages {
  /** The folder of the group, in which `node_modules` is. */
  readonly folder: string;
  /** Why the packages are not there; tests that need them are then skipped by this sentence. */
  readonly missing: string | undefined;
}

/** Installs a group where it is not installed yet; of several processes that ask at the same time one does, and the others wait. */
export function installOnDemand(group: OnDemandGroup): Promise<OnDemandPackages> {
  return installLocked(join(import.meta.dirname, group));
}

/** What the lock file of the folder says is installed there when this returns, or it says why not. */
export async function installLocked(folder: string, limitMs = defaultLimitMs): Promise<OnDemandPackages> {
  const lock = await readFile(join(folder, "package-lock.json"), "utf8");
  // Written last, so that an installation that was cut short does not count.
  const recordFile = join(folder, "node_modules/.installed");
  const record = `${process.platform} ${process.arch}\n${lock}`;
  const isInstalled = async () => (await readFile(recordFile, "utf8").catch(() => "")) === record;
  while (!(await isInstalled())) {
    const answer = takeOwnerLock(join(folder, "node_modules"));
    if (answer.type === "held") {
      await wait(100);
      continue;
    }
    try {
      if (await isInstalled()) break;
      const missing = await runNpm(folder, limitMs);
      if (missing !== undefined) return { folder, missing };
      await writeFile(recordFile, record);
    } finally {
      answer.lock.release();
    }
  }
  return { folder, missing: undefined };
}

/** Nothing from the registry, as without a network or behind a proxy that refuses; all else that npm reports is a fault of ours. */
const unreachable =
  /^npm error code (E403|E407|E5\d\d|EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTCACHED|ENOTFOUND|ERR_SOCKET_TIMEOUT|ETIMEDOUT)$/m;

const words = [
  "ci",
  "--ignore-scripts",
  "--prefer-offline",
  "--no-audit",
  "--no-fund",
  "--fetch-retry-mintimeout=500",
  "--fetch-retry-maxtimeout=2000",
  "--fetch-timeout=60000",
];

/** An installation takes seconds; a registry that answers so slowly is as good as none. */
const defaultLimitMs = 240_000;

/** Why the registry could not be reached, or nothing when all is installed. */
async function runNpm(folder: string, limitMs: number): Promise<string | undefined> {
  const npm = spawn("npm", words, {
    cwd: folder,
    env: ownEnvironment(),
    shell: process.platform === "win32",
    stdio: ["ignore", "ignore", "pipe"],
    timeout: limitMs,
    // npm goes on waiting for its connections after SIGTERM.
    killSignal: "SIGKILL",
  });
  let said = "";
  npm.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [status] = await once(npm, "close");
  if (status === 0) return undefined;
  if (npm.signalCode === "SIGKILL") return `the npm registry gave no answer within ${limitMs / 1000} seconds`;
  const [, code] = unreachable.exec(said) ?? [];
  if (code === undefined) throw new Error(`npm ci in ${folder} ended with ${status}:\n${said}`);
  return `the npm registry cannot be reached: ${code}`;
}

/** Without what an `npm` above tells the programs that it runs about its own project. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const names = /^npm_(?:config_(?:local_prefix|workspaces?|include_workspace_root)|lifecycle_|package_)/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !names.test(name)));
}
