import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readNewLines } from "@retinue/base/storage/read-lines.ts";
import type { Message } from "../../conversation/message.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { isShownMessage } from "../../journal/session-title.ts";
import { callText, shortInput } from "../../tasks/child-run.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import { messageIn } from "../project/project-tasks.ts";
import type { LivePiece } from "./live-text.ts";
import { readLiveText } from "./read-live-text.ts";

export interface WatchedMessage {
  readonly message: Message;
  /** The id of the answer, as pieces of it have it. */
  readonly answer?: string;
}

export interface WatchedAgent extends FoundTask {
  /** What it does now. */
  readonly activity: string;
}

/** A session that another process has open, followed through its files and never written to. */
export interface SessionWatch extends Disposable {
  /** Whether the other process still has it. Asked before reading, what it writes before it leaves is still read. */
  isOwned(): boolean;
  /** The messages of the main agent that were added since the last time. */
  messages(): Promise<readonly WatchedMessage[]>;
  /** What is being said, since the last time. */
  pieces(): Promise<readonly LivePiece[]>;
  agents(): Promise<readonly WatchedAgent[]>;
  /** What waits in its inbox for an answer. */
  questions(): readonly WatchedQuestion[];
}

export interface WatchedQuestion {
  readonly id: string;
  /** Tool and what the call is about. */
  readonly call: string;
  /** From the main agent to each one that asks. */
  readonly agents: readonly string[];
}

export function watchSession(
  transcripts: string,
  sessionId: string,
  { now }: { readonly now: () => number },
): SessionWatch {
  const files = sessionFiles(transcripts, sessionId);
  const live = readLiveText(files);
  let at = 0;
  return {
    isOwned: () => hasLiveOwner(files.transcript),
    async messages() {
      const { values, length } = await readNewLines(files.transcript, at);
      at += length;
      return values.flatMap(messageOf);
    },
    pieces: () => live.read(),
    async agents() {
      const found = await findTasks(transcripts, { sessionId });
      return found.map((task) => ({ ...task, activity: activityOf(task) }));
    },
    questions: () =>
      readApprovals(files.approvals, { now }).flatMap(({ state, question: { id, tool, input, places } }) =>
        state === "waiting"
          ? [
              {
                id,
                call: callText({ name: tool, input: shortInput(input) }),
                agents: places.map(({ path }) => path),
              },
            ]
          : [],
      ),
    [Symbol.dispose]: () => live[Symbol.dispose](),
  };
}

function messageOf(record: JsonRecord): readonly WatchedMessage[] {
  const message = isShownMessage(record) ? messageIn(record) : undefined;
  if (message === undefined) return [];
  const id = message.role === "assistant" && isRecord(record.message) ? record.message["id"] : undefined;
  return [{ message, ...(typeof id === "string" ? { answer: id } : {}) }];
}

function activityOf({ queuePosition, current, waitingForQuota }: FoundTask): string {
  if (waitingForQuota !== undefined) return "waiting-for-quota";
  if (queuePosition !== undefined) return "queued";
  return current === undefined ? "thinking" : callText(current);
}
