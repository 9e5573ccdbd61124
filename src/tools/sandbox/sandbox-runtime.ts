// @io
import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProcess } from "../../foundation/run-process.ts";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { Invocation, SandboxSettings } from "./sandbox.ts";
import type { SandboxLimits } from "./sandbox-limits.ts";
import { socketFilter } from "./socket-filter.ts";

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
    return unavailable(`there is no sandbox for ${process.platform}`, "Switch `sandbox.enabled` off there.");
  if (manager.getConfig() !== undefined && !released.has(manager))
    return unavailable(
      "another part of this process uses the sandbox already",
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
    await tryCommand(manager, temporaryDirectory);
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
    ...(bwrap === undefined ? {} : { bwrapPath: bwrap }),
    ...(socat === undefined ? {} : { socatPath: socat }),
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

/** What a machine permits is known only by trying: programs may be there and namespaces still be forbidden. */
async function tryCommand(manager: SandboxManager, directory: string): Promise<void> {
  const shell = (await findSystemProgram("bash")) ?? "bash";
  const { argv } = await manager.wrapWithSandboxArgv("true", shell, {});
  const [file = "", ...words] = argv;
  try {
    await new Promise<void>((resolve, reject) => {
      execFile(file, words, { cwd: directory, timeout: 10_000 }, (error, _stdout, stderr) => {
        if (error === null) resolve();
        else reject(new Error(stderr.trim() === "" ? error.message : stderr.trim()));
      });
    });
  } finally {
    manager.cleanupAfterCommand();
  }
}

/** Which hosts may be reached is one setting of the whole process; the settings read last hold. */
function keepNetwork(manager: SandboxManager, { network }: SandboxSettings): void {
  const configuration = manager.getConfig();
  if (configuration === undefined || JSON.stringify(configuration.network) === JSON.stringify(network))
    return;
  manager.updateConfig({ ...configuration, network });
}

/** How far a machine lets processes be kept apart; the second is for containers that forbid a `/proc` of one's own. */
export const processViews = ["own", "shared"] as const;
type ProcessView = (typeof processViews)[number];

interface BubblewrapFacts {
  /** The `bwrap` program. */
  readonly program: string;
  readonly view: ProcessView;
  /** A seccomp filter that keeps the command from sockets with a path; absent where none is known for the machine. */
  readonly filter?: Uint8Array;
  /** The command runs as the superuser, who may continue reading what belongs to others. */
  readonly isRoot: boolean;
}

interface ReadOnlyPlaces {
  /** Where the command starts. */
  readonly directory: string;
  readonly workingDirectories: readonly string[];
}

/** Descriptor 4: what is handed to a process besides its input, see `ProcessRequest`. */
const filterDescriptor = "4";
const temporaryFolder = "/dev/shm";

/**
 * Starts a command where it sees every file and can change none, reaches no network and no other process, and has no
 * rights beyond its user's. Temporary files go to a folder in memory that ends with it.
 */
export function readOnlyInvocation(
  invocation: Invocation,
  { program, view, filter, isRoot }: BubblewrapFacts,
  { directory, workingDirectories }: ReadOnlyPlaces,
): Invocation {
  const hidden = [directory, ...workingDirectories].filter((folder) => folder.startsWith("/dev/"));
  return {
    file: program,
    arguments: [
      ...["--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-pid"],
      ...["--cap-drop", "ALL", ...(isRoot ? ["--cap-add", "CAP_DAC_READ_SEARCH"] : [])],
      ...["--ro-bind", "/", "/", "--dev", "/dev"],
      // Without a user namespace of its own the command could go through /proc to processes that are not kept apart.
      ...(view === "own"
        ? ["--proc", "/proc", "--remount-ro", "/proc"]
        : ["--unshare-user", "--ro-bind", "/proc", "/proc"]),
      ...[...new Set(hidden)].flatMap((folder) => ["--ro-bind", folder, folder]),
      ...["--setenv", "TMPDIR", temporaryFolder],
      // git would refresh its index on the way, and complain that it cannot.
      ...["--setenv", "GIT_OPTIONAL_LOCKS", "0"],
      ...(filter === undefined ? [] : ["--seccomp", filterDescriptor]),
      ...["--chdir", directory, "--", invocation.file, ...invocation.arguments],
    ],
    ...(filter === undefined ? {} : { sideInput: filter }),
  };
}

type ReadOnlySandboxStart =
  | { readonly type: "ready"; readonly wrap: (invocation: Invocation, places: ReadOnlyPlaces) => Invocation }
  | { readonly type: "unavailable"; readonly why: string; readonly advice?: string };

/** Where commands run that may run because they only read; looked for at the first of them. */
export interface ReadOnlySandbox {
  start(): Promise<ReadOnlySandboxStart>;
}

interface ReadOnlySandboxOptions {
  readonly platform?: string;
  readonly architecture?: string;
  /** Finds `bwrap`; absent means among the system's own programs. */
  readonly find?: () => Promise<string | undefined>;
}

export function createReadOnlySandbox(options: ReadOnlySandboxOptions = {}): ReadOnlySandbox {
  let started: Promise<ReadOnlySandboxStart> | undefined;
  return {
    start() {
      started ??= startReadOnlySandbox(options);
      return started;
    },
  };
}

const tryLimitMs = 10_000;

/** What a machine permits is known only by trying: the program may be there and namespaces still be forbidden. */
async function startReadOnlySandbox({
  platform = process.platform,
  architecture = process.arch,
  find = () => findSystemProgram("bwrap"),
}: ReadOnlySandboxOptions): Promise<ReadOnlySandboxStart> {
  if (platform !== "linux") return { type: "unavailable", why: `there is none for ${platform}` };
  const program = await find();
  if (program === undefined)
    return {
      type: "unavailable",
      why: "bwrap is not installed",
      advice: "Install bubblewrap (apt-get install bubblewrap).",
    };
  const filter = socketFilter(architecture);
  const isRoot = process.getuid?.() === 0;
  let why = "";
  for (const view of processViews) {
    const facts: BubblewrapFacts = { program, view, isRoot, ...(filter === undefined ? {} : { filter }) };
    const failure = await tryOut(facts);
    if (failure === undefined)
      return { type: "ready", wrap: (invocation, places) => readOnlyInvocation(invocation, facts, places) };
    why ||= failure;
  }
  return {
    type: "unavailable",
    why: `${program} does not work here: ${why}`,
    advice: "The system must permit user namespaces; in a container they are often switched off.",
  };
}

async function tryOut(facts: BubblewrapFacts): Promise<string | undefined> {
  const shell = (await findSystemProgram("sh")) ?? "/bin/sh";
  const { output, exitCode, notStarted } = await runProcess({
    ...readOnlyInvocation({ file: shell, arguments: ["-c", ":"] }, facts, {
      directory: "/",
      workingDirectories: [],
    }),
    directory: "/",
    environment: {},
    signal: AbortSignal.timeout(tryLimitMs),
    timeLimitMs: tryLimitMs,
  });
  if (notStarted !== undefined) return notStarted;
  if (exitCode === 0) return undefined;
  return output.trim().split("\n")[0] || `it ended with ${exitCode ?? "a signal"}`;
}
