import { basename } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { retryOnResourceLimit } from "@retinue/base/foundation/retry-on-resource-limit.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { type AppendLog, openAppendLog } from "@retinue/base/storage/append-log.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import { type LockGroup, waitForOwner } from "@retinue/base/storage/owner-lock.ts";
import type { Message } from "../conversation/message.ts";
import type { EventSink } from "../conversation/run-event.ts";
import { journalPlan } from "../journal/journaled-plan.ts";
import {
  type RebuildOptions,
  type RebuiltConversation,
  rebuildConversation,
} from "../journal/rebuild-conversation.ts";
import type { LoadedSession } from "../journal/session-choices.ts";
import { describeDamage } from "../journal/transcript-damage.ts";
import {
  createTranscriptWriter,
  type IdSource,
  type TranscriptObserver,
  type TranscriptWriter,
  transcriptEvents,
} from "../journal/transcript-writer.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { findChildAnswers } from "./reported-agents.ts";

/** The record of an agent: its conversation so far, and what it does from now on. Main agent and child have the same. */
export interface AgentRecord {
  readonly history: readonly Message[];
  /** Of a conversation that continues: its lines, and the calls that are answered with what is known of their children. */
  readonly earlier?: { readonly records: readonly JsonRecord[]; readonly answered: ReadonlySet<string> };
  /** Take each event before the next one is asked for. */
  readonly sinks: readonly EventSink[];
  /** Resolves when everything so far would survive a power cut; absent, like the next two, where nothing is kept on disk. */
  readonly commit?: TranscriptWriter["commit"];
  /** The same for what hooks are about to receive; a record that cannot be written does not keep them from running. */
  readonly reported?: TranscriptWriter["reported"];
  readonly rename?: TranscriptWriter["rename"];
  /** Shows other processes whether the agent works on nothing, so that one of them may continue with it. */
  readonly setIdle?: AppendLog["setIdle"];
  /** Brings the rest to the disk and gives the file back; never rejects. */
  readonly close: () => Promise<void>;
}

/** How a session keeps records. */
export interface RecordKeeping {
  readonly keepsTranscripts: boolean;
  readonly durability: Durability;
  readonly entrypoint: string;
  readonly ids: IdSource;
  /** Milliseconds since 1970. */
  readonly epochMs: () => number;
  /** Shows the person what went wrong beside the work. */
  readonly notice?: ((text: string) => void) | undefined;
}

type EarlierConversation = RebuiltConversation & Partial<LoadedSession>;

export interface RecordOptions {
  readonly session: RecordKeeping;
  /** The folder of all transcripts, in which children are looked for. */
  readonly transcripts: string;
  /** Where lines go: to a file, or to a list in memory; undefined: nowhere. */
  readonly target: { readonly file: string } | Pick<AppendLog, "append"> | undefined;
  /** The conversation that continues; absent: the file must be new. */
  readonly load?: (() => Promise<EarlierConversation | undefined>) | undefined;
  /** How that is read. */
  readonly reading?: RebuildOptions;
  /** What is damaged, in a notice; absent: that is not shown. */
  readonly name?: string | undefined;
  /** Takes the file also from a process that holds it. */
  readonly takeOver: boolean;
  /** The locks of other records of this process that are open at the same time. */
  readonly locks?: LockGroup | undefined;
  /** Whether it takes the file from a process that is idle; asked when the conversation was read. */
  readonly takesIdle?: () => boolean;
  /** Reads again what the file's owner has added meanwhile. */
  readonly rereads?: boolean;
  /** Ends the wait for the file. */
  readonly signal: AbortSignal;
  readonly gitBranch?: string | undefined;
  readonly observer?: TranscriptObserver | undefined;
  /** Lines beside the conversation, with which it begins. */
  readonly beside?: readonly object[];
}

/** How often a file is read again that its owner has added to meanwhile. */
const readings = 5;

/** Opens the record of an agent; only one process may write it. The plan is in it before anything else of the run. */
export async function openRecord(plan: AgentPlan, options: RecordOptions): Promise<AgentRecord> {
  for (let left = readings; ; left -= 1) {
    const loaded = await loadEarlier(plan, options);
    try {
      return await continueRecord(plan, loaded, options);
    } catch (error) {
      // An idle owner may have started a turn, or ended one, in between.
      const hasGrown = isRetinueError(error) && error.code === "file-changed";
      if (options.rereads !== true || !hasGrown || left === 1) throw error;
    }
  }
}

interface Earlier extends EarlierConversation {
  readonly answered: ReadonlySet<string>;
}

async function loadEarlier(plan: AgentPlan, options: RecordOptions): Promise<Earlier | undefined> {
  const { load, target, name, session, transcripts, reading, takeOver, signal } = options;
  if (load === undefined) return undefined;
  const file = target !== undefined && "file" in target ? target.file : undefined;
  if (file !== undefined) await waitForFile(file, { takeOver, signal, notice: session.notice });
  const read = await load();
  if (read === undefined) return undefined;
  // Nothing of a conversation is left out without a word.
  if (name !== undefined && read.damage !== undefined) {
    const text = describeDamage(name, read.damage);
    if (text !== undefined) session.notice?.(text);
  }
  const mayHaveChildren = file !== undefined && (plan.task === undefined || plan.spawn !== "none");
  const calls = mayHaveChildren ? read.inFlight.map(({ call }) => call) : [];
  const known = await findChildAnswers(calls, { transcripts, sessionId: plan.sessionId });
  const answered = new Set(known.keys());
  if (known.size === 0) return { ...read, answered };
  // Calls that were cut off while a child worked for them are answered with what is known of that child.
  return { ...read, ...rebuildConversation(read.records ?? [], { ...reading, known }), answered };
}

async function continueRecord(
  plan: AgentPlan,
  loaded: Earlier | undefined,
  { target, session, gitBranch, observer, beside = [], ...options }: RecordOptions,
): Promise<AgentRecord> {
  const history = loaded?.messages ?? [];
  const { records, answered } = loaded ?? {};
  const earlier = records === undefined || answered === undefined ? undefined : { records, answered };
  const { durability, ids, epochMs: now, entrypoint, notice } = session;
  const file = target !== undefined && "file" in target ? target.file : undefined;
  const takeOver = options.takeOver || (options.takesIdle?.() === true ? "idle" : false);
  const disk =
    file === undefined
      ? undefined
      : await retryOnResourceLimit(() =>
          openAppendLog(file, {
            expectLength: loaded?.length ?? 0,
            durability,
            takeOver,
            group: options.locks,
          }),
        );
  const log = target !== undefined && "file" in target ? disk : target;
  if (log === undefined) return { history, earlier, sinks: [], close: async () => undefined };
  const writer = createTranscriptWriter({
    log,
    ids,
    now,
    facts: {
      sessionId: plan.sessionId,
      cwd: plan.directory,
      version,
      entrypoint,
      ...(plan.task === undefined ? { gitBranch } : { agentId: plan.agent.id }),
      permissionMode: plan.policy.mode,
    },
    leaf: loaded?.leaf,
    sources: loaded?.sources,
    observer,
  });
  const writeUnrecorded = (): void => {
    // The conversation already answers calls that a crash cut off; now the record does so too.
    const content = loaded?.unrecorded ?? [];
    if (content.length > 0)
      writer.record({ type: "user-added", message: { role: "user", content }, origin: "tool-results" });
  };
  try {
    if (plan.task === undefined) {
      writeUnrecorded();
      writer.plan(journalPlan(plan), "with-next");
      writer.beside(beside);
    } else {
      writer.plan(journalPlan(plan), "now");
      writeUnrecorded();
      // A caller that is notified of its start must find it again, whatever happens.
      await writer.commit();
    }
  } catch (error) {
    disk?.close();
    throw error;
  }
  const sinks = [{ types: transcriptEvents, take: writer.record }];
  if (disk === undefined) return { history, earlier, sinks, close: async () => undefined };
  return {
    history,
    earlier,
    sinks,
    commit: writer.commit,
    // The agent ends by its next line.
    reported: (event) => writer.reported(event).catch(() => undefined),
    rename: writer.rename,
    setIdle: disk.setIdle,
    async close() {
      try {
        // The last lines reach the disk before the end of the work is reported.
        await disk.sync();
      } catch (error) {
        notice?.(error instanceof Error ? error.message : String(error));
      } finally {
        disk.close();
      }
    },
  };
}

interface WaitOptions extends Pick<RecordOptions, "signal">, Pick<RecordKeeping, "notice"> {
  readonly takeOver?: boolean;
}

/** A session that was left on another machine or in another container is free when its owner has been silent long enough. */
export async function waitForFile(file: string, { takeOver, signal, notice }: WaitOptions): Promise<void> {
  if (takeOver === true) return;
  await waitForOwner(file, {
    signal,
    onWait({ by, maxMs }) {
      const who = by === undefined ? "another process" : `process ${by.pid} on ${by.machine.split(" ")[0]}`;
      const seconds = Math.ceil(maxMs / 1000);
      notice?.(
        `${basename(file)} is held by ${who}, whose state cannot be checked from here. Waiting up to ${seconds} s for a heartbeat; --take-over takes it immediately.`,
      );
    },
  });
}
