import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { findLatestSession, findSession } from "../journal/find-sessions.ts";
import { forkSession } from "../journal/fork-session.ts";
import { hasLiveChild } from "../journal/has-live-child.ts";
import { journalPlan } from "../journal/journaled-plan.ts";
import {
  type Keeping,
  keepTranscript,
  reportDamage,
  waitForFile,
  writeUnrecorded,
} from "../journal/keep-transcript.ts";
import { rebuildConversation } from "../journal/rebuild-conversation.ts";
import { selectChain } from "../journal/select-chain.ts";
import {
  choiceLines,
  type DecidingOptions,
  type LoadedSession,
  loadSession,
  optionLines,
  type SessionChoices,
} from "../journal/session-choices.ts";
import { checkSessionId, sessionFiles } from "../journal/session-files.ts";
import { readSessionTitles } from "../journal/session-title.ts";
import { customTitleLine, type TranscriptFacts } from "../journal/transcript-facts.ts";
import type { IdSource, TranscriptObserver } from "../journal/transcript-writer.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { findChildAnswers } from "../tasks/interrupted-outcome.ts";
import { type HeardAgents, readReportedAgents } from "../tasks/reported-agents.ts";
import { deliveredMail } from "../teams/mailbox.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";

export { waitForFile };

/** Which session a run belongs to, before anything is opened or copied. */
export interface ChosenSession {
  readonly sessionId: string;
  /** The session whose conversation continues; another id than its own where a copy is made. */
  readonly from?: string;
  /** Its id was made for it, so nothing of it is on disk. */
  readonly isNew?: true;
}

/** A session's conversation so far, and the pen that continues with it. */
export interface OpenTranscript {
  readonly history: readonly Message[];
  readonly record: (event: RunEvent) => void;
  /** Resolves when everything said so far would survive a power cut; absent where nothing is kept. */
  readonly commit?: () => Promise<void>;
  /** Absent where nothing is kept. */
  readonly rename?: (title: string) => void;
  /** Says to other processes whether the session works on nothing, so that one of them may continue with it; absent where nothing is kept. */
  readonly setIdle?: (isIdle: boolean) => void;
  /** Brings the rest to the disk and gives the file back. */
  readonly close: () => Promise<void>;
  /** What a resumed conversation has heard of its children. */
  readonly received?: HeardAgents;
  /** The team mail that a resumed conversation has. */
  readonly mail?: ReadonlySet<string>;
}

type SessionChoice = Pick<SessionSetup, "resume" | "continue" | "forkSession" | "sessionId">;

export async function chooseSession(
  choice: SessionChoice,
  transcripts: string,
  ids: IdSource,
): Promise<ChosenSession> {
  const own = choice.sessionId === undefined ? undefined : checkSessionId(choice.sessionId).toLowerCase();
  const from = await findResumed(choice, transcripts);
  if (from === undefined) {
    if (choice.forkSession !== true)
      return own === undefined ? { sessionId: ids.uuid(), isNew: true } : { sessionId: own };
    throw new RetinueError("session-conflict", "There is no session to copy.", {
      advice: "Say which: resume one by id or title, or continue the newest.",
    });
  }
  if (choice.forkSession === true) return { sessionId: own ?? ids.uuid(), from };
  if (own === undefined || own === from) return { sessionId: from, from };
  throw new RetinueError("session-conflict", "A resumed session keeps its id.", {
    advice: "Leave the session id out, or fork the session.",
  });
}

async function findResumed(choice: SessionChoice, transcripts: string): Promise<string | undefined> {
  if (choice.resume === undefined) {
    if (choice.continue !== true) return undefined;
    const latest = await findLatestSession(transcripts);
    if (latest !== undefined) return latest.id;
    throw new RetinueError("session-missing", "There is no session in this folder to continue.", {
      advice: "Start one: leave that option out.",
    });
  }
  const found = await findSession(transcripts, choice.resume);
  if (found.type === "found") return found.session.id;
  const what = JSON.stringify(choice.resume);
  if (found.type === "ambiguous") {
    const ids = found.sessions.map(({ id }) => id).join(", ");
    throw new RetinueError("session-ambiguous", `Several sessions have the title ${what}.`, {
      advice: `Name one by id: ${ids}.`,
    });
  }
  const near = found.nearest === undefined ? "" : ` Did you mean ${JSON.stringify(found.nearest)}?`;
  const missing = isSessionUuid(choice.resume)
    ? `No conversation found with session ID: ${choice.resume}, in this folder.`
    : `There is no session ${what} in this folder.`;
  throw new RetinueError("session-missing", `${missing}${near}`, {
    advice: "Write the id or title of one, or continue the newest.",
  });
}

function isSessionUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

export interface OpenOptions extends ChosenSession {
  /** False reads the conversation so far and writes nothing. */
  readonly isKept: boolean;
  readonly transcripts: string;
  /** Where the session's own transcript is. */
  readonly file: string;
  readonly ids: IdSource;
  readonly now: () => number;
  readonly facts: TranscriptFacts;
  readonly plan: AgentPlan;
  readonly choices: SessionChoices & DecidingOptions;
  readonly keeping: Keeping;
  readonly observer?: TranscriptObserver | undefined;
  /** The line that a resumed conversation ends with; absent means its newest. */
  readonly until?: string | undefined;
  /** The prompt whose turn may be left out by that; absent means anything may. */
  readonly drops?: string | undefined;
}

/** Opens the session's file for writing; only one process may have it. */
export async function openTranscript(options: OpenOptions): Promise<OpenTranscript> {
  const { transcripts, sessionId, from } = options;
  if (!options.isKept) {
    const left =
      from === undefined ? undefined : await load(sessionFiles(transcripts, from).transcript, options);
    reportDamage(from, left?.damage, options.keeping);
    const { messages = [] } = left ?? {};
    return { history: messages, record: () => undefined, close: async () => undefined };
  }
  const { kept, loaded, known } = await readAndKeep(options);
  const { writer, setIdle, close } = kept;
  // A copy gets its title from the session it was made of; that is no news to the one who made it.
  const { custom } = from === sessionId ? readSessionTitles(loaded?.records ?? []) : {};
  if (custom !== undefined) options.observer?.titled?.(custom);
  return {
    history: loaded?.messages ?? [],
    record: writer.record,
    commit: writer.commit,
    rename: writer.rename,
    setIdle,
    close,
    ...(loaded === undefined || from !== sessionId
      ? {}
      : {
          received: { ...readReportedAgents(loaded.records), answered: new Set(known.keys()) },
          mail: deliveredMail(loaded.records),
        }),
  };
}

/** How often a file is read again that its owner has added to meanwhile. */
const readings = 5;

/** Reads the conversation and makes the file this process's own. An idle owner may have begun a turn, or ended one, in between. */
async function readAndKeep(options: OpenOptions, left = readings): Promise<KeptTranscript & SoFar> {
  const { file, sessionId, from, ids } = options;
  const soFar = options.isNew === true ? nothingYet : await loadSoFar(options);
  const { loaded } = soFar;
  const isResumed = from === sessionId;
  try {
    const kept = await keepTranscript(file, {
      loaded,
      ids,
      now: options.now,
      facts: options.facts,
      observer: options.observer,
      keeping: options.keeping,
      takesIdle: isResumed && !hasLiveChild(sessionFiles(options.transcripts, sessionId)),
      begin(logWriter) {
        if (loaded !== undefined) writeUnrecorded(logWriter, loaded);
        logWriter.plan(journalPlan(options.plan), "with-next");
        logWriter.beside(openingLines(options));
      },
    });
    return { kept, ...soFar };
  } catch (error) {
    if (loaded === undefined || loaded.length === 0) throw explainExisting(error, sessionId);
    if (!isResumed || left === 1 || !isRetinueError(error) || error.code !== "file-changed") throw error;
    return readAndKeep(options, left - 1);
  }
}

interface KeptTranscript {
  readonly kept: Awaited<ReturnType<typeof keepTranscript>>;
}

interface SoFar {
  readonly loaded: LoadedSession | undefined;
  /** What is known of children whose calls were cut off. */
  readonly known: Awaited<ReturnType<typeof findChildAnswers>>;
}

const nothingYet: SoFar = { loaded: undefined, known: new Map() };

/** Waits for the file, copies the conversation where it is forked, and reads it. */
async function loadSoFar(options: OpenOptions): Promise<SoFar> {
  const { transcripts, file, sessionId, from, ids } = options;
  await waitForFile(file, options.keeping);
  const fork =
    from !== undefined && from !== sessionId
      ? await forkSession({ transcripts, from, to: sessionId, ids })
      : undefined;
  const read = await (from === undefined ? loadWithoutWords : load)(file, options);
  reportDamage(from, fork?.damage ?? read?.damage, options.keeping);
  const calls = read?.inFlight.map(({ call }) => call) ?? [];
  const known = await findChildAnswers(calls, { transcripts, sessionId });
  if (read === undefined || known.size === 0) return { loaded: read, known };
  // Calls that were cut off while a child worked for them are answered with what is known of that child.
  const rebuilt = rebuildConversation(read.records, { known, ...untilOf(options) });
  return { loaded: { ...read, ...rebuilt }, known };
}

/** What a session was opened with, beside its conversation. */
function openingLines({ sessionId, from, choices, observer }: OpenOptions) {
  const title = from === undefined ? observer?.title : undefined;
  return [
    ...choiceLines(sessionId, choices),
    ...optionLines(sessionId, choices),
    ...(title === undefined ? [] : [customTitleLine(sessionId, title)]),
  ];
}

async function load(file: string, options: LoadOptions): Promise<LoadedSession> {
  const loaded = await loadSession(file, untilOf(options));
  refuseMissingLine(loaded, options);
  return loaded;
}

type LoadOptions = Pick<OpenOptions, "until" | "drops">;

/** A copy has new ids; each of its lines names the one it comes from. */
function untilOf({ until }: LoadOptions): { readonly until?: (record: JsonRecord) => boolean } {
  return until === undefined ? {} : { until: (record) => originOf(record) === until };
}

function originOf({ uuid, forkedFrom }: JsonRecord): unknown {
  return isRecord(forkedFrom) ? forkedFrom["messageUuid"] : uuid;
}

/** The line must be there, and nothing may be left out by it but the turn that was named. */
function refuseMissingLine({ records }: LoadedSession, { until, drops }: LoadOptions): void {
  if (until === undefined) {
    if (drops === undefined) return;
    throw new RetinueError(
      "session-conflict",
      "A turn can only be left out together with the line to resume at.",
    );
  }
  const { lines } = selectChain(records);
  const kept = selectChain(records, untilOf({ until, drops })).lines.at(-1);
  if (kept === undefined || originOf(kept.record) !== until)
    throw new RetinueError("message-missing", `The session has no message ${until} to resume at.`);
  if (drops === undefined) return;
  const at = lines.findIndex(({ uuid }) => uuid === kept.uuid);
  const dropped = at === -1 ? lines : lines.slice(at + 1);
  const foreign = dropped.find(({ record }) => isPrompt(record) && originOf(record) !== drops);
  if (foreign !== undefined)
    throw new RetinueError(
      "resume-rejected",
      `Resume rejected by --resume-drops-turn: the message ${String(originOf(foreign.record))} does not belong to that turn.`,
    );
}

/** A message of a person or a child, not the result of a call. */
function isPrompt({ type, message }: JsonRecord): boolean {
  if (type !== "user" || !isRecord(message)) return false;
  const { content } = message;
  return !(
    Array.isArray(content) && content.some((block) => isRecord(block) && block["type"] === "tool_result")
  );
}

function explainExisting(error: unknown, sessionId: string): unknown {
  if (!isRetinueError(error) || error.code !== "file-changed") return error;
  return new RetinueError("session-exists", `Session ID ${sessionId} is already in use.`, {
    advice: "Resume it, or choose another id.",
    cause: error,
  });
}

/** A crash before the first whole line leaves a file that says nothing; its session can begin again under the same id. */
async function loadWithoutWords(file: string): Promise<LoadedSession | undefined> {
  const left = await load(file, {}).catch(() => undefined);
  return left?.records.length === 0 ? left : undefined;
}

/** What every line of the main conversation says about its session. */
export function transcriptFacts(
  runtime: Pick<RuntimeContext, "entrypoint">,
  plan: AgentPlan,
  branch: string | undefined,
): TranscriptFacts {
  return {
    sessionId: plan.sessionId,
    cwd: plan.directory,
    version,
    entrypoint: runtime.entrypoint,
    permissionMode: plan.policy.mode,
    gitBranch: branch,
  };
}
