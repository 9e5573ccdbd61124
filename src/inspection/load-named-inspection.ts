import { RetinueError } from "../foundation/retinue-error.ts";
import { findInspected, type Inspected } from "./find-inspected.ts";
import type { Inspection } from "./inspection.ts";
import { createInspectionSource } from "./load-inspection.ts";

/** Reads what somebody names, once; a Fault where nothing or too much is meant. */
export async function loadInspection({
  transcripts,
  written,
  now,
}: {
  readonly transcripts: string;
  readonly written?: string | undefined;
  readonly now: () => number;
}): Promise<Inspection> {
  const inspected = await findNamedInspected(transcripts, written);
  return createInspectionSource({ transcripts, ...inspected, now }).load();
}

export async function findNamedInspected(
  transcripts: string,
  written: string | undefined,
): Promise<Inspected> {
  const found = await findInspected(transcripts, written);
  if (found.type === "found") return found.inspected;
  if (written === undefined)
    throw new RetinueError("session-missing", "There is no session in this folder yet.", {
      advice: '`retinue -p "prompt"` makes one.',
    });
  const what = JSON.stringify(written);
  if (found.type === "ambiguous")
    throw new RetinueError("session-ambiguous", `Several sessions or agents are meant by ${what}.`, {
      advice: `Write one of these, or more of its beginning: ${found.ids.join(", ")}.`,
    });
  const near = found.nearest === undefined ? "" : ` Did you mean ${JSON.stringify(found.nearest)}?`;
  throw new RetinueError("session-missing", `There is no session or agent ${what} in this folder.${near}`, {
    advice: "`retinue inspect` shows the newest session, `retinue tasks --all` lists the agents of all.",
  });
}
