// @io
import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { SandboxLimits } from "./sandbox-limits.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";

/** The part of `@anthropic-ai/sandbox-runtime` that is used; one manager serves a whole process. */
export interface SandboxManager {
  isSupportedPlatform(): boolean;
  initialize(configuration: SandboxConfiguration): Promise<void>;
  getConfig(): SandboxConfiguration | undefined;
  updateConfig(configuration: SandboxConfiguration): void;
  wrapWithSandboxArgv(
    command: string,
    shell: string,
    configuration: Partial<SandboxConfiguration>,
    signal?: AbortSignal,
  ): Promise<{ readonly argv: readonly string[] }>;
  cleanupAfterCommand(): void;
  reset(): Promise<void>;
}

interface SandboxConfiguration {
  readonly network: SandboxSettings["network"];
  readonly filesystem: SandboxLimits;
  readonly enableWeakerNestedSandbox?: boolean;
  readonly ripgrep?: { readonly command: string };
  readonly bwrapPath?: string;
  readonly socatPath?: string;
}

interface SandboxRuntimeOptions {
  /** Loads the package; absent means the one that is installed. */
  readonly load?: () => Promise<unknown>;
}

type SandboxStart =
  | { readonly type: "ready"; readonly manager: SandboxManager; readonly temporaryDirectory: string }
  | { readonly type: "unavailable"; readonly why: string; readonly advice: string };

/** The sandbox of a process, started at the first command that needs it. Disposing ends its helpers. */
export interface SandboxRuntime extends AsyncDisposable {
  start(settings: SandboxSettings): Promise<SandboxStart>;
}

export function createSandboxRuntime({ load = loadPackage }: SandboxRuntimeOptions = {}): SandboxRuntime {
  let started: Promise<SandboxStart> | undefined;
  return {
    async start(settings) {
      started ??= startSandbox(load, settings);
      const start = await started;
      if (start.type === "unavailable") started = undefined;
      else keepNetwork(start.manager, settings);
      return start;
    },
    async [Symbol.asyncDispose]() {
      const start = await started;
      started = undefined;
      if (start?.type !== "ready") return;
      await release(start.manager);
      await rm(start.temporaryDirectory, { recursive: true, force: true }).catch(() => undefined);
    },
  };
}

const installPackage = "Install it beside retinue: npm install @anthropic-ai/sandbox-runtime";
const installPrograms =
  "On Linux install bubblewrap and socat (apt-get install bubblewrap socat); elsewhere see the package's own page.";

/** The package keeps its configuration after a reset, so what was given back is remembered here. */
const released = new WeakSet<SandboxManager>();

async function release(manager: SandboxManager): Promise<void> {
  await manager.reset().catch(() => undefined);
  released.add(manager);
}

async function startSandbox(load: () => Promise<unknown>, settings: SandboxSettings): Promise<SandboxStart> {
  const manager = await load().then(managerOf, () => undefined);
  if (manager === undefined)
    return unavailable("the package @anthropic-ai/sandbox-runtime is not installed", installPackage);
  if (!manager.isSupportedPlatform())
    return unavailable(
      `there is no sandbox for ${process.platform}`,
      "Set `sandbox.enabled` to false there.",
    );
  if (manager.getConfig() !== undefined && !released.has(manager))
    return unavailable(
      "another part of this process already uses the sandbox",
      "Use one runtime per process.",
    );
  released.delete(manager);
  const temporaryDirectory = await realpath(await mkdtemp(join(tmpdir(), "retinue-sandbox-")));
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    const filesystem = { allowWrite: [temporaryDirectory], denyWrite: [], denyRead: [], allowRead: [] };
    await manager.initialize({
      network: settings.network,
      filesystem,
      ripgrep: { command: rgPath },
      ...(await findHelpers()),
      ...(settings.weakerNestedSandbox ? { enableWeakerNestedSandbox: true } : {}),
    });
    // What a machine permits is known only by trying: programs may be there and namespaces still be forbidden.
    const shell = (await findSystemProgram("bash")) ?? "bash";
    const { argv } = await manager.wrapWithSandboxArgv("true", shell, {});
    const [file = "", ...words] = argv;
    try {
      await new Promise<void>((resolve, reject) => {
        execFile(file, words, { cwd: temporaryDirectory, timeout: 10_000 }, (error, _stdout, stderr) => {
          if (error === null) resolve();
          else reject(new Error(stderr.trim() === "" ? error.message : stderr.trim()));
        });
      });
    } finally {
      manager.cleanupAfterCommand();
    }
    return { type: "ready", manager, temporaryDirectory };
  } catch (error) {
    await release(manager);
    await rm(temporaryDirectory, { recursive: true, force: true });
    return unavailable(error instanceof Error ? error.message : String(error), installPrograms);
  }
}

async function findHelpers(): Promise<Pick<SandboxConfiguration, "bwrapPath" | "socatPath">> {
  const [bwrap, socat] = await Promise.all(["bwrap", "socat"].map(findSystemProgram));
  return {
    bwrapPath: bwrap,
    socatPath: socat,
  };
}

function unavailable(why: string, advice: string): SandboxStart {
  return { type: "unavailable", why: why.trim().replace(/\.$/, ""), advice };
}

/** The name is in a variable, so that neither compiler nor bundler looks for a package that need not be there. */
async function loadPackage(): Promise<unknown> {
  const name = "@anthropic-ai/sandbox-runtime";
  return import(name);
}

function managerOf(loaded: unknown): SandboxManager | undefined {
  // The package's own types cannot be had without it; what is used of it is named above and tried before it counts.
  return (loaded as { readonly SandboxManager?: SandboxManager }).SandboxManager;
}

/** Which hosts may be reached is one setting of the whole process; the settings read last hold. */
function keepNetwork(manager: SandboxManager, { network }: SandboxSettings): void {
  const configuration = manager.getConfig();
  if (configuration === undefined || JSON.stringify(configuration.network) === JSON.stringify(network))
    return;
  manager.updateConfig({ ...configuration, network });
}
