// @io
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { openAppendLog } from "@retinue/base/storage/append-log.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { Message } from "../../conversation/message.ts";
import {
  findLatestSession,
  findSession,
  findSessions,
  type SessionSummary,
} from "../../journal/find-sessions.ts";
import { forkSession } from "../../journal/fork-session.ts";
import { readAssistantBlocks, readUserBlocks } from "../../journal/read-assistant-blocks.ts";
import { loadSession } from "../../journal/session-choices.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { isShownMessage } from "../../journal/session-title.ts";
import { customTitleLine } from "../../journal/transcript-facts.ts";
import type { SessionOptions } from "../options/runtime-options.ts";

/** What a person wrote, at a place of a conversation from which it can be forked. */
export interface StoredPrompt {
  readonly id: string;
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at?: number;
}

export interface StoredConversation extends SessionSummary {
  /** Whether a process that still runs has it open. */
  readonly isOpen: boolean;
}

/** The conversations in a folder of transcripts, for programs that let people choose, search and change them. */
export interface StoredConversations {
  /** Whether a process that still runs has it open. */
  isOpen(sessionId: string): boolean;
  /** The id of the conversation that the options name. */
  findTarget(options: Pick<SessionOptions, "resume" | "continue">): Promise<string | undefined>;
  /** The newest first. */
  list(): Promise<readonly StoredConversation[]>;
  /** Those whose title, prompts or answers contain a text, whatever its case. */
  search(text: string): Promise<readonly StoredConversation[]>;
  /** What people wrote in the newest of them, newest first. */
  promptHistory(): Promise<readonly string[]>;
  prompts(sessionId: string): Promise<readonly StoredPrompt[]>;
  /** Copies a conversation up to a prompt, which is left out; undefined where nothing was before it. */
  copyBefore(sessionId: string, promptId: string): Promise<string | undefined>;
  /** Of a copy, the ids of its lines by those of the lines they were copied from. */
  renewedIds(sessionId: string): Promise<ReadonlyMap<string, string>>;
  rename(sessionId: string, title: string): Promise<void>;
  remove(sessionId: string): Promise<void>;
  /** The messages to and from an agent; while it runs, the results of the calls in flight only say that nothing is known. */
  agentMessages(sessionId: string, agentId: string): Promise<AgentMessages>;
}

export interface AgentMessages {
  readonly messages: readonly Message[];
  /** Ids of the calls of which no result was recorded. */
  readonly inFlight: readonly string[];
}

const maxListed = 200;
const maxHistorySessions = 20;

/** `isOwn` says whether a text of a prompt was written by a person. */
export function openStoredConversations(
  transcripts: string,
  isOwn: (text: string) => boolean = () => true,
): StoredConversations {
  const fileOf = (sessionId: string): string => sessionFiles(transcripts, sessionId).transcript;
  const recordsOf = async (sessionId: string): Promise<readonly JsonRecord[]> =>
    (await readLines(fileOf(sessionId))).values;
  const prompts = async (sessionId: string): Promise<readonly StoredPrompt[]> =>
    promptsIn(await recordsOf(sessionId).catch(() => []), isOwn);
  const list = async (): Promise<readonly StoredConversation[]> =>
    (await findSessions(transcripts, { limit: maxListed })).map((summary) => ({
      ...summary,
      isOpen: hasLiveOwner(summary.file),
    }));
  return {
    isOpen: (sessionId) => hasLiveOwner(fileOf(sessionId)),
    async findTarget({ resume, continue: isContinued }) {
      if (resume === undefined)
        return isContinued === true ? (await findLatestSession(transcripts))?.id : undefined;
      const found = await findSession(transcripts, resume);
      return found.type === "found" ? found.session.id : undefined;
    },
    list,
    search: async (text) => searchIn(await list(), text.trim().toLowerCase(), recordsOf),
    async promptHistory() {
      const sessions = await findSessions(transcripts, { limit: maxHistorySessions });
      const lists = await Promise.all(sessions.map(({ id }) => prompts(id)));
      return lists.flatMap((own) => own.map(({ text }) => text).toReversed());
    },
    prompts,
    copyBefore: (sessionId, at) => copyBefore(transcripts, sessionId, at),
    async renewedIds(sessionId) {
      const records = await recordsOf(sessionId).catch(() => []);
      return new Map(
        records.flatMap(({ uuid, forkedFrom }) =>
          isRecord(forkedFrom) ? [[String(forkedFrom["messageUuid"]), String(uuid)] as const] : [],
        ),
      );
    },
    rename: (sessionId, title) => rename(fileOf(sessionId), sessionId, title),
    remove: (sessionId) => removeSession(sessionFiles(transcripts, sessionId)),
    async agentMessages(sessionId, agentId) {
      const { transcript } = sessionFiles(transcripts, sessionId).agent(agentId);
      const found = await loadSession(transcript, { sidechain: true }).catch(() => undefined);
      return { messages: found?.messages ?? [], inFlight: found?.inFlight.map(({ call }) => call.id) ?? [] };
    },
  };
}

async function copyBefore(transcripts: string, from: string, at: string): Promise<string | undefined> {
  try {
    return (await forkSession({ transcripts, from, at, ids: { uuid: randomUUID } })).sessionId;
  } catch (error) {
    if (isRetinueError(error) && error.code === "empty-session") return undefined;
    throw error;
  }
}

async function rename(file: string, sessionId: string, title: string): Promise<void> {
  const { length } = await readLines(file);
  const log = openAppendLog(file, { expectLength: length });
  try {
    log.append([JSON.stringify(customTitleLine(sessionId, title))]);
  } finally {
    log.close();
  }
}

async function searchIn(
  sessions: readonly StoredConversation[],
  wanted: string,
  recordsOf: (sessionId: string) => Promise<readonly JsonRecord[]>,
): Promise<readonly StoredConversation[]> {
  const hits = await Promise.all(
    sessions.map(async ({ id, title }) => {
      if (title.toLowerCase().includes(wanted)) return true;
      const records = await recordsOf(id).catch(() => []);
      return records.some((record) => isShownMessage(record) && hasText(record, wanted));
    }),
  );
  return sessions.filter((_, at) => hits[at] === true);
}

async function removeSession({ transcript, directory }: ReturnType<typeof sessionFiles>): Promise<void> {
  if (hasLiveOwner(transcript))
    throw new RetinueError(
      "session-open",
      "Another process has this conversation open, so it was not deleted.",
    );
  await rm(transcript, { force: true });
  await rm(directory, { recursive: true, force: true });
}

/** Whether its text contains it; calls and their results do not count. */
function hasText({ type, message }: JsonRecord, wanted: string): boolean {
  const content = isRecord(message) ? message.content : undefined;
  const blocks = type === "user" ? readUserBlocks(content) : readAssistantBlocks(content);
  return blocks.some(
    (block) => block.type === "text" && "text" in block && String(block.text).toLowerCase().includes(wanted),
  );
}

function promptsIn(
  records: readonly JsonRecord[],
  isOwn: (text: string) => boolean,
): readonly StoredPrompt[] {
  return records.flatMap((record) => {
    const { uuid, timestamp, message } = record;
    if (record.type !== "user" || !isShownMessage(record) || record.isCompactSummary === true) return [];
    if (typeof uuid !== "string" || !isRecord(message)) return [];
    const texts = readUserBlocks(message["content"]).flatMap((block) =>
      block.type === "text" && !/^\s*<[a-z-]+>/.test(block.text) && isOwn(block.text) ? [block.text] : [],
    );
    const text = texts.join("\n").trim();
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    return text === "" ? [] : [{ id: uuid, text, ...(Number.isNaN(at) ? {} : { at }) }];
  });
}
