// @io
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { SessionFiles } from "./session-files.ts";

/**
 * The calls about which the process that runs a session asks its own person right now, for viewers of the session in other processes.
 * It holds nothing that is in no other place, and means nothing once that process is gone.
 */
export interface AskedCalls {
  asked(callId: string): void;
  closed(callId: string): void;
}

/** What is answered this soon was no question for a person. */
const noticeMs = 400;

export function createAskedCalls(
  files: () => Pick<SessionFiles, "transcript" | "directory"> | undefined,
): AskedCalls {
  const open = new Map<string, number>();
  let isWritten = false;
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    timer = undefined;
    const places = files();
    // A session that is not kept has no place for it.
    if (places === undefined || !existsSync(places.transcript)) return;
    const file = fileOf(places);
    try {
      mkdirSync(dirname(file), { recursive: true });
      const calls = [...open].map(([id, since]) => ({ id, since }));
      replaceWholeFile(file, `${JSON.stringify({ version: 1, calls })}\n`);
      isWritten = true;
    } catch {
      // Then it is only seen where it is asked.
    }
  }

  return {
    asked(callId) {
      open.set(callId, Date.now());
      timer ??= setTimeout(write, noticeMs).unref();
    },
    closed(callId) {
      if (!open.delete(callId)) return;
      if (open.size > 0) {
        if (isWritten) timer ??= setTimeout(write, noticeMs).unref();
        return;
      }
      clearTimeout(timer);
      timer = undefined;
      const places = files();
      if (isWritten && places !== undefined) isWritten = !removeIfPossible(fileOf(places));
    },
  };
}

/** By the id of the call, since when; the caller knows that the process that wrote it still lives. */
export function readAskedCalls(files: Pick<SessionFiles, "directory">): ReadonlyMap<string, number> {
  try {
    const calls = parseJsonRecord(readFileSync(fileOf(files), "utf8"))?.["calls"];
    return new Map(
      (Array.isArray(calls) ? calls : []).flatMap((call: unknown) =>
        isRecord(call) && typeof call["id"] === "string" && typeof call["since"] === "number"
          ? [[call["id"], call["since"]] as const]
          : [],
      ),
    );
  } catch {
    return new Map();
  }
}

function fileOf({ directory }: Pick<SessionFiles, "directory">): string {
  return join(directory, "asked-calls.json");
}
