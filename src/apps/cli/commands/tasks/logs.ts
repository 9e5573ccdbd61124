import { basename } from "node:path";
import { sleep } from "../../../../foundation/abortable.ts";
import { describeDamage, type TranscriptDamage } from "../../../../journal/transcript-damage.ts";
import { hasLiveOwner } from "../../../../storage/owner-lock.ts";
import { readNewLines } from "../../../../storage/read-lines.ts";
import { exitCodeOf } from "../../end-signal.ts";
import type { CommandContext } from "../../session-options.ts";
import { createPaint } from "../../views/paint.ts";
import { renderTranscript } from "../../views/render-transcript.ts";
import { findNamedTask } from "./find-named-task.ts";

export interface LogsOptions {
  readonly follow?: boolean;
}

const lookMs = 200;
const noDamage: TranscriptDamage = { broken: 0, missing: 0, torn: false };

/** `retinue logs ID`: what a child agent said and did; with `-f` until it ends. */
export async function logs({ host }: CommandContext, id: string, options: LogsOptions): Promise<number> {
  const { stdout } = host;
  const { transcript } = await findNamedTask(host, id);
  const paint = createPaint(stdout.isColourAllowed);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const signal = stdout.closed === undefined ? stop.signal : AbortSignal.any([stop.signal, stdout.closed]);
  try {
    let left = noDamage;
    for (let at = 0; !signal.aborted; ) {
      // Asked first: what an owner writes before it leaves is then still read.
      const isRunning = options.follow === true && hasLiveOwner(transcript);
      const lines = await readNewLines(transcript, at, { withLast: !isRunning });
      at += lines.length;
      stdout.write(renderTranscript(lines.values, paint));
      left = { ...left, broken: left.broken + lines.broken, torn: lines.torn };
      if (!isRunning) {
        const damage = describeDamage(basename(transcript), left);
        if (damage !== undefined) host.stderr.write(`${damage}\n`);
        return 0;
      }
      await sleep(lookMs, signal).catch(() => undefined);
    }
    return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
  } finally {
    forget();
  }
}
