import { setTimeout as pause } from "node:timers/promises";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type BackgroundSession, readOutput } from "@retinue/core/kernel/project/background-sessions.ts";
import { findBackground } from "../commands/background/find-background.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { harmlessLines } from "../shared/strip-control-characters.ts";

const startMs = 15_000;
const lookMs = 100;

/** `retinue attach ID`: the session in the terminal: one that runs is followed and written to, one that has ended is continued. */
export async function attach(context: CommandContext, written: string, options: RunFlags): Promise<number> {
  const { host } = context;
  const found = await findBackground(host, written);
  if (!host.canAsk)
    throw misuse(
      "`retinue attach` opens the session in a terminal.",
      `Without one: retinue logs ${found.id} -f`,
    );
  const session = await waitForStart(context, found);
  const { runTerminal } = await import("./run-terminal.ts");
  const inFolder = { ...context, host: { ...host, cwd: session.workingFolder } };
  return runTerminal(inFolder, [], { ...options, resume: session.sessionId }, { follows: true });
}

/** A session can be opened as soon as its journal has its first line. */
async function waitForStart({ host }: CommandContext, found: BackgroundSession): Promise<BackgroundSession> {
  let session = found;
  for (let waited = 0; session.state === "starting" && waited < startMs; waited += lookMs) {
    await pause(lookMs);
    session = await findBackground(host, found.sessionId);
  }
  if (session.transcript !== undefined) return session;
  throw new RetinueError("not-started", `${session.id} has not begun.`, {
    advice: harmlessLines(readOutput(session, 5)) || `Its output is in ${session.output}.`,
  });
}
