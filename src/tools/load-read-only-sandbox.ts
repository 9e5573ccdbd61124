import { runProcess } from "../foundation/run-process.ts";
import { findSystemProgram } from "./find-system-program.ts";
import {
  type BubblewrapFacts,
  processViews,
  type ReadOnlyPlaces,
  readOnlyInvocation,
} from "./read-only-sandbox.ts";
import type { Invocation } from "./sandbox.ts";
import { socketFilter } from "./socket-filter.ts";

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
