import type { CommandContext } from "../../shared/command-context.ts";
import { exitCodeOf } from "../../shared/end-signal.ts";
import { openTasks } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { openBackground } from "../background/find-background.ts";
import { renderTranscript } from "../views/render-transcript.ts";

export interface LogsOptions {
  readonly follow?: boolean;
}

/** `retinue logs ID`: what a session in the background or a child agent said and did; with `-f` until it ends. */
export async function logs({ host }: CommandContext, id: string, options: LogsOptions): Promise<number> {
  const { stdout } = host;
  const paint = createPaint(stdout.isColourAllowed);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const signal = stdout.closed === undefined ? stop.signal : AbortSignal.any([stop.signal, stdout.closed]);
  try {
    const session = await openBackground(host).find(id);
    if (session !== undefined) {
      const { showLogs } = await import("../background/background-actions.ts");
      await showLogs(host, session, { follow: options.follow === true, signal });
      return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
    }
    for await (const { records, damage } of openTasks(host).log(id, {
      follow: options.follow === true,
      signal,
    })) {
      stdout.write(renderTranscript(records, paint));
      if (damage !== undefined) host.stderr.write(`${damage}\n`);
    }
    return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
  } finally {
    forget();
  }
}
