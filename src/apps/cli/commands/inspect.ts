import { resolve } from "node:path";
import { createInspectionSource } from "../../../inspection/load-inspection.ts";
import { findNamedInspected } from "../../../inspection/load-named-inspection.ts";
import { fileError } from "../../../storage/file-error.ts";
import { displayPath } from "../display-path.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import { renderInspection } from "../views/inspection-view.ts";
import { writeNewFile } from "../write-new-file.ts";
import { transcriptsOf } from "./find-named-task.ts";
import { followInspection } from "./follow-inspection.ts";

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
  checkOptions(options);
  const transcripts = transcriptsOf(host);
  const written = words.length === 0 ? undefined : words.join(" ");
  const wanted = await findNamedInspected(transcripts, written);
  const source = createInspectionSource({ transcripts, ...wanted, now: Date.now });
  const { stdout } = host;
  const view = {
    paint: createPaint(stdout.isColourAllowed),
    width: stdout.columns ?? defaultWidth,
    steps: options.steps === true,
  };
  if (options.follow === true) return followInspection(source, host, view);
  const inspection = await source.load();
  if (options.html !== undefined) {
    const { renderPage } = await import("../../../inspection/html-page.ts");
    const file = resolve(host.cwd, options.html);
    await writeNewFile(file, renderPage(inspection), { replaces: true }).catch((error: unknown) => {
      throw fileError("write", file, error);
    });
    host.stderr.write(`Written: ${displayPath(file, host)}\n`);
  }
  if (options.json === true) stdout.write(`${JSON.stringify(inspection, undefined, 2)}\n`);
  else if (options.html === undefined) stdout.write(renderInspection(inspection, view));
  return 0;
}

function checkOptions({ json, html, follow }: InspectOptions): void {
  if (html === "")
    throw misuse("--html needs the name of a file.", "Write, for example, --html session.html.");
  if (follow === true && (json === true || html !== undefined))
    throw misuse("--follow shows a session in the terminal.", "Leave out --json and --html, or --follow.");
}
