import { sleep } from "../../../foundation/abort.ts";
import type { Inspection } from "../../../inspection/inspection.ts";
import type { InspectionSource } from "../../../inspection/load-inspection.ts";
import type { CliHost, CliOutput } from "../cli-host.ts";
import { exitCodeOf } from "../interruption.ts";
import { type InspectionViewOptions, renderInspection } from "../views/inspection-view.ts";

const lookMs = 500;
/** Looking and painting takes at most a tenth of the time, however long the session is. */
const restShare = 9;
const defaultRows = 24;

/**
 * Paints again whenever the files have changed, until nothing of the session runs any more or the person leaves. Where
 * nothing can be painted over, only the last picture is written.
 */
export async function followInspection(
  source: InspectionSource,
  host: CliHost,
  view: InspectionViewOptions,
): Promise<number> {
  const { stdout } = host;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const signal = stdout.closed === undefined ? stop.signal : AbortSignal.any([stop.signal, stdout.closed]);
  const repaint = createPainter(stdout);
  try {
    while (true) {
      const start = Date.now();
      const inspection = await source.load();
      const isOver = !isGoingOn(inspection);
      const text = renderInspection(inspection, view);
      if (isOver) repaint.last(text);
      else repaint.next(text);
      if (isOver) return 0;
      await sleep(Math.max(lookMs, (Date.now() - start) * restShare), signal).catch(() => undefined);
      if (signal.aborted) return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
    }
  } finally {
    forget();
  }
}

function isGoingOn({ session, agents, only }: Inspection): boolean {
  return only === undefined ? session.isLive : agents.some(({ isLive }) => isLive);
}

function createPainter(stdout: CliOutput): { next(text: string): void; last(text: string): void } {
  let shown = "";
  const over = (): { readonly over: number } => ({ over: shown === "" ? 0 : shown.split("\n").length - 1 });
  return {
    next(text) {
      // What has left the screen cannot be painted over, so a picture must fit it.
      const rows = Math.max(4, (stdout.rows ?? defaultRows) - 1);
      const picture = `${text.split("\n").slice(0, rows).join("\n").trimEnd()}\n`;
      if (!stdout.isTerminal || picture === shown) return;
      stdout.write(picture, over());
      shown = picture;
    },
    last: (text) => stdout.write(text, over()),
  };
}
