import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Message } from "../../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../../foundation/json-record.ts";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import { findLatestSession, findSession, findSessions } from "../../../journal/find-sessions.ts";
import { forkLines } from "../../../journal/fork-session.ts";
import { readAssistantBlocks, readUserBlocks } from "../../../journal/read-assistant-blocks.ts";
import { loadSession } from "../../../journal/session-choices.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { isShownMessage } from "../../../journal/session-title.ts";
import { customTitleLine } from "../../../journal/transcript-facts.ts";
import type { SessionOptions } from "../../../runtime/options/runtime-options.ts";
import { createPaths } from "../../../settings/paths.ts";
import { openAppendLog } from "../../../storage/append-log.ts";
import { createWholeFile } from "../../../storage/file-error.ts";
import { hasLiveOwner } from "../../../storage/owner-lock.ts";
import { readLines } from "../../../storage/read-lines.ts";
import { conversationEntries } from "./conversation-entries.ts";
import { shellAside } from "./live-conversation.ts";
import type { AgentEntry, EarlierPrompt, SessionSummary } from "./terminal-session.ts";

/** The stored conversations of this folder. */
export interface SessionRecords {
  /** The folder that holds them. */
  readonly transcripts: string;
  /** Whether a process that still runs has it open. */
  isHeld(sessionId: string): boolean;
  /** The id of the conversation that the options name. */
  findTarget(options: Pick<SessionOptions, "resume" | "continue">): Promise<string | undefined>;
  list(): Promise<readonly SessionSummary[]>;
  /** Those whose title, prompts or answers contain a text, whatever its case. */
  search(text: string): Promise<readonly SessionSummary[]>;
  /** What people wrote in them, newest first. */
  promptHistory(): Promise<readonly string[]>;
  prompts(sessionId: string): Promise<readonly EarlierPrompt[]>;
  /** Copies a conversation up to a prompt, which is left out; undefined where nothing was before it. */
  copyBefore(sessionId: string, promptId: string): Promise<string | undefined>;
  rename(sessionId: string, title: string): Promise<void>;
  remove(sessionId: string): Promise<void>;
  agentMessages(sessionId: string, agentId: string): Promise<readonly Message[]>;
  writeExport(file: string, messages: readonly Message[]): Promise<string>;
}

const maxListed = 200;
const maxHistorySessions = 20;

export function createSessionRecords(host: Parameters<typeof createPaths>[0]): SessionRecords {
  const { transcripts, cwd } = createPaths(host);
  const fileOf = (sessionId: string): string => sessionFiles(transcripts, sessionId).transcript;
  const recordsOf = async (sessionId: string): Promise<readonly JsonRecord[]> =>
    (await readLines(fileOf(sessionId))).values;
  const list = async (): Promise<readonly SessionSummary[]> =>
    (await findSessions(transcripts, { limit: maxListed })).map(
      ({ id, title, modified, messageCount, file }) => ({
        id,
        title,
        modified,
        messages: messageCount,
        isOpenElsewhere: hasLiveOwner(file),
      }),
    );
  return {
    transcripts,
    isHeld: (sessionId) => hasLiveOwner(fileOf(sessionId)),
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
      const lists = await Promise.all(
        sessions.map(async ({ id }) => promptsIn(await recordsOf(id).catch(() => []))),
      );
      return lists.flatMap((prompts) => prompts.map(({ text }) => text).toReversed());
    },
    prompts: async (sessionId) => promptsIn(await recordsOf(sessionId).catch(() => [])),
    async copyBefore(sessionId, promptId) {
      const lines = linesBefore(await recordsOf(sessionId), promptId);
      if (lines === undefined) return undefined;
      const to = randomUUID();
      const forked = forkLines(lines, { from: sessionId, to, ids: { uuid: randomUUID } });
      const text = forked.map((line) => `${JSON.stringify(line)}\n`).join("");
      createWholeFile(fileOf(to), text, { durable: true });
      return to;
    },
    async rename(sessionId, title) {
      const { length } = await readLines(fileOf(sessionId));
      const log = openAppendLog(fileOf(sessionId), { expectLength: length });
      try {
        log.append([JSON.stringify(customTitleLine(sessionId, title))]);
      } finally {
        log.close();
      }
    },
    remove: (sessionId) => removeSession(sessionFiles(transcripts, sessionId)),
    agentMessages: (sessionId, agentId) => messagesIn(sessionFiles(transcripts, sessionId).agent(agentId)),
    writeExport: (file, messages) => writeExport(resolve(cwd, file), messages),
  };
}

async function messagesIn({ transcript }: { readonly transcript: string }): Promise<readonly Message[]> {
  const loaded = await loadSession(transcript, { sidechain: true }).catch(() => undefined);
  return loaded?.messages ?? [];
}

async function searchIn(
  sessions: readonly SessionSummary[],
  wanted: string,
  recordsOf: (sessionId: string) => Promise<readonly JsonRecord[]>,
): Promise<readonly SessionSummary[]> {
  const hits = await Promise.all(
    sessions.map(async ({ id, title }) => {
      if (title.toLowerCase().includes(wanted)) return true;
      const records = await recordsOf(id).catch(() => []);
      return records.some((record) => isShownMessage(record) && saysText(record, wanted));
    }),
  );
  return sessions.filter((_, at) => hits[at] === true);
}

/** The lines before a prompt; undefined where they hold no message. */
function linesBefore(records: readonly JsonRecord[], promptId: string): readonly JsonRecord[] | undefined {
  const at = records.findIndex(({ uuid }) => uuid === promptId);
  if (at === -1) throw new RetinueError("prompt-missing", "This prompt is not in the conversation any more.");
  const before = records.slice(0, at);
  return before.some(isShownMessage) ? before : undefined;
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

async function writeExport(target: string, messages: readonly Message[]): Promise<string> {
  const text = conversationEntries(messages)
    .map(exported)
    .filter((part) => part !== "")
    .join("\n\n");
  await writeFile(target, `${text}\n`, { flag: "wx" }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RetinueError("not-exported", `The conversation was not written to ${target}: ${reason}.`, {
      advice: "Name another file.",
    });
  });
  return target;
}

/** Whether its text contains it; calls and their results do not count. */
function saysText({ type, message }: JsonRecord, wanted: string): boolean {
  const content = isRecord(message) ? message.content : undefined;
  const blocks = type === "user" ? readUserBlocks(content) : readAssistantBlocks(content);
  return blocks.some(
    (block) => block.type === "text" && "text" in block && String(block.text).toLowerCase().includes(wanted),
  );
}

function promptsIn(records: readonly JsonRecord[]): readonly EarlierPrompt[] {
  return records.flatMap((record) => {
    const { uuid, timestamp, message } = record;
    if (record.type !== "user" || !isShownMessage(record) || record.isCompactSummary === true) return [];
    if (typeof uuid !== "string" || !isRecord(message)) return [];
    const text = promptText(message["content"]);
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    return text === "" ? [] : [{ id: uuid, text, ...(Number.isNaN(at) ? {} : { at }) }];
  });
}

function promptText(content: unknown): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [{ type: "text", text: content }];
  const texts = blocks.flatMap((block) =>
    isRecord(block) && block["type"] === "text" && typeof block["text"] === "string" ? [block["text"]] : [],
  );
  const own = texts.filter((text) => !/^\s*<[a-z-]+>/.test(text) && !text.startsWith(shellAside));
  return own.join("\n").trim();
}

function exported(entry: AgentEntry): string {
  switch (entry.type) {
    case "prompt":
      return `## Prompt\n\n${entry.text}`;
    case "text":
      return entry.text;
    case "call":
      return `\`${entry.call.tool}\` ${JSON.stringify(entry.call.input)}`;
    case "result":
      return `\`\`\`\n${entry.result.text.trimEnd()}\n\`\`\``;
    case "ended":
      return entry.text;
  }
}
