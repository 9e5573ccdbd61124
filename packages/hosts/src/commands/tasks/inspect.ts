import { resolve } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import type { Inspection, SessionInspector } from "@retinue/core/kernel/project/project-sessions.ts";
import { writeNewFile } from "@retinue/core/kernel/project/write-new-file.ts";
import type { CliHost, CliOutput } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { displayPath } from "../../shared/display-path.ts";
import { exitCodeOf } from "../../shared/end-signal.ts";
import { pathsOf } from "../../shared/find-named-task.ts";
import { misuse } from "../../shared/misuse.ts";
import { openFolder } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { type InspectionViewOptions, renderInspection } from "../views/render-inspection.ts";

export interface InspectOptions {
  readonly json?: boolean;
  readonly html?: string;
  readonly follow?: boolean;
  readonly steps?: boolean;
}

const defaultWidth = 80;

/** `retinue inspect [ID]`: what a session or an agent did, from its files alone; with `-f` until it ends. */
export async function inspect(
  { host }: CommandContext,
  words: readonly string[],
  options: InspectOptions,
): Promise<number> {
  const { json, html, follow } = options;
  if (html === "")
    throw misuse("--html needs the name of a file.", "Write, for example, --html session.html.");
  if (follow === true && (json === true || html !== undefined))
    throw misuse("--follow shows a session in the terminal.", "Leave out --json and --html, or --follow.");
  const written = words.length === 0 ? undefined : words.join(" ");
  const source = await openFolder(host).sessions.inspect(written);
  const { stdout } = host;
  const view = {
    paint: createPaint(stdout.isColourAllowed),
    width: stdout.columns ?? defaultWidth,
    steps: options.steps === true,
  };
  if (options.follow === true) return followInspection(source, host, view);
  const inspection = await source.load();
  if (options.html !== undefined) {
    const { exportPage, loadPage } = await import("../../studio/export-page.ts");
    const { collectExport } = await import("@retinue/core/kernel/live/collect-export.ts");
    const file = resolve(host.cwd, options.html);
    const page = exportPage(await collectExport(inspection, source), loadPage());
    await writeNewFile(file, page, {
      replaces: true,
      notes: pathsOf(host).temporaryNotes,
    });
    host.stderr.write(`Written: ${displayPath(file, host)}\n`);
  }
  if (options.json === true) stdout.write(`${JSON.stringify(inspection, undefined, 2)}\n`);
  else if (options.html === undefined) stdout.write(renderInspection(inspection, view));
  return 0;
}

const lookMs = 500;
/** Looking and painting takes at most a tenth of the time, however long the session is. */
const restShare = 9;
const defaultRows = 24;

/**
 * Paints again whenever the files have changed, until nothing of the session runs any more or the person leaves. Where
 * nothing can be painted over, only the last picture is written.
 */
export async function followInspection(
  source: Pick<SessionInspector, "load">,
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
