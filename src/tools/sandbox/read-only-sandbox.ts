// @io
import { runProcess } from "../../foundation/run-process.ts";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { Invocation } from "./sandbox.ts";
import { socketFilter } from "./socket-filter.ts";

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

export type ReadOnlySandboxStart =
  | { readonly type: "ready"; readonly wrap: (invocation: Invocation, places: ReadOnlyPlaces) => Invocation }
  | { readonly type: "unavailable"; readonly why: string; readonly advice?: string };

/** Where commands run that may run because they only read; looked for at the first of them. */
export interface ReadOnlySandbox {
  start(): Promise<ReadOnlySandboxStart>;
}

export interface ReadOnlySandboxOptions {
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
