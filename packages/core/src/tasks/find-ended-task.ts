import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { readAssistantBlocks } from "../journal/read-assistant-blocks.ts";
import { isAgentId } from "../journal/session-files.ts";
import { type FoundTask, findTasks } from "./find-tasks.ts";

export interface EndedTask {
  readonly task: FoundTask;
  /** What it said last. */
  readonly text: string;
}

/** The last words of a conversation are in this much of its end. */
const readBytes = 1_000_000;

/** A child of a session that no one has in memory any more, as its files show it. */
export async function findEndedTask(
  transcripts: string,
  { sessionId, id }: { readonly sessionId: string; readonly id: string },
): Promise<EndedTask | undefined> {
  if (!isAgentId(id)) return undefined;
  const found = await findTasks(transcripts, { sessionId, idPrefix: id }).catch(() => []);
  const task = found.find((one) => one.id === id);
  if (task === undefined) return undefined;
  const { values } = await readLines(task.transcript, { maxBytes: readBytes }).catch(() => ({ values: [] }));
  const texts = values.flatMap(({ type, message }) =>
    type === "assistant" && isRecord(message)
      ? readAssistantBlocks(message["content"]).flatMap((block) =>
          block.type === "text" ? [block.text] : [],
        )
      : [],
  );
  return { task, text: texts.at(-1) ?? "" };
}
