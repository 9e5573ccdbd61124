import { RetinueError } from "../foundation/retinue-error.ts";
import { createWholeFile } from "../storage/create-whole-file.ts";
import { readLines } from "../storage/read-lines.ts";
import { forkLines } from "./fork-lines.ts";
import type { IdSource } from "./id-source.ts";
import { checkSessionId, sessionFiles } from "./session-files.ts";

export interface ForkOptions {
  readonly transcripts: string;
  readonly from: string;
  readonly ids: IdSource;
  /** The id of the copy; a new one when absent. */
  readonly to?: string;
  readonly title?: string;
}

export interface ForkedSession {
  readonly sessionId: string;
  readonly file: string;
}

/** Copies a session under a new id, all at once; the old one may be in use. The files of its children stay with it. */
export async function forkSession({
  transcripts,
  from,
  ids,
  to,
  title,
}: ForkOptions): Promise<ForkedSession> {
  const source = sessionFiles(transcripts, from).transcript;
  const sessionId = checkSessionId(to ?? ids.uuid());
  const file = sessionFiles(transcripts, sessionId).transcript;
  const { values } = await readLines(source);
  const lines = forkLines(values, { from, to: sessionId, ids, ...(title === undefined ? {} : { title }) });
  if (lines.length === 1)
    throw new RetinueError("empty-session", `The session ${from} has no conversation that could be copied.`);
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  if (createWholeFile(file, text, { durable: true }) === "exists")
    throw new RetinueError(
      "session-exists",
      `There is a session ${sessionId} already, so nothing was copied to it.`,
      {
        advice: "Leave the id of the copy out, or choose another.",
      },
    );
  return { sessionId, file };
}
