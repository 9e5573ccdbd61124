import { type BackgroundSession, readOutput } from "@retinue/core/kernel/project/background-sessions.ts";
import { readLog } from "@retinue/core/kernel/project/project-tasks.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { createPaint } from "../../shared/paint.ts";
import { harmlessLines } from "../../shared/strip-control-characters.ts";
import { renderTranscript } from "../views/render-transcript.ts";
import { findBackground, openBackground } from "./find-background.ts";

/** What a session in the background said and did; with `follow` until its process ends. */
export async function showLogs(
  host: CliHost,
  session: BackgroundSession,
  { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { stdout, stderr } = host;
  const paint = createPaint(stdout.isColourAllowed);
  if (session.transcript === undefined) stdout.write(`${harmlessLines(readOutput(session))}\n`);
  else
    for await (const { records, damage } of readLog(session.transcript, { follow, signal })) {
      stdout.write(renderTranscript(records, paint));
      if (damage !== undefined) stderr.write(`${damage}\n`);
    }
  const { state, id } = await findBackground(host, session.sessionId);
  if (state !== "failed" && state !== "interrupted") return;
  const last = harmlessLines(readOutput(session, 5));
  stderr.write(last === "" ? `${id} is ${state}.\n` : `${id} is ${state}. Its last output:\n${last}\n`);
}

/** Ends a session in the background. */
export async function stopBackground(
  { host }: CommandContext,
  session: BackgroundSession,
  signal: AbortSignal,
): Promise<void> {
  if (!session.isRunning) {
    host.stdout.write(`${session.id} is not running; it is ${session.state}.\n`);
    return;
  }
  const { id, state } = await openBackground(host).stop(session, { signal });
  host.stdout.write(`${id} is ${state}. \`retinue attach ${id}\` continues it.\n`);
}

/** `retinue rm ID`: forgets a session in the background that has ended, and removes its worktree where nothing in it would be lost. */
export async function removeBackground({ host }: CommandContext, written: string): Promise<number> {
  const session = await findBackground(host, written);
  if (session.isRunning)
    throw misuse(`${session.id} still runs.`, `\`retinue stop ${session.id}\` ends it first.`);
  const kept = openBackground(host).remove(session);
  for (const folder of kept)
    host.stderr.write(
      `${folder} was kept: something in it is changed or new. \`git worktree remove --force\` removes it.\n`,
    );
  host.stdout.write(`${session.id} is removed. Its transcript stays: \`retinue sessions\`.\n`);
  return 0;
}
