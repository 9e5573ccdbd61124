import type { Invocation } from "./sandbox.ts";

/** How far a machine lets processes be kept apart; the second is for containers that forbid a `/proc` of one's own. */
export const processViews = ["own", "shared"] as const;
export type ProcessView = (typeof processViews)[number];

export interface BubblewrapFacts {
  /** The `bwrap` program. */
  readonly program: string;
  readonly view: ProcessView;
  /** A seccomp filter that keeps the command from sockets with a path; absent where none is known for the machine. */
  readonly filter?: Uint8Array;
  /** The command runs as the superuser, who may go on reading what belongs to others. */
  readonly isRoot: boolean;
}

export interface ReadOnlyPlaces {
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
