import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { findLatestSession, findSession } from "../journal/find-sessions.ts";
import { forkSession } from "../journal/fork-session.ts";
import { hasLiveChild } from "../journal/has-live-child.ts";
import { selectChain } from "../journal/select-chain.ts";
import { choiceLines, type LoadedSession, loadSession, optionLines } from "../journal/session-choices.ts";
import { checkSessionId, sessionFiles } from "../journal/session-files.ts";
import { readSessionTitles } from "../journal/session-title.ts";
import { customTitleLine } from "../journal/transcript-facts.ts";
import type { IdSource } from "../journal/transcript-writer.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { type AgentRecord, openRecord, waitForFile } from "../tasks/open-record.ts";
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
    throw new RetinueError("session-conflict", "No session to copy was given.", {
      advice: "Resume one by id or title, or continue the latest.",
    });
  }
  if (choice.forkSession === true) return { sessionId: own ?? ids.uuid(), from };
  if (own === undefined || own === from) return { sessionId: from, from };
  throw new RetinueError(
    "session-conflict",
    "A resumed session keeps its id, so it cannot be given another.",
    {
      advice: "Leave the session id out, or fork the session.",
    },
  );
}

async function findResumed(choice: SessionChoice, transcripts: string): Promise<string | undefined> {
  if (choice.resume === undefined) {
    if (choice.continue !== true) return undefined;
    const latest = await findLatestSession(transcripts);
    if (latest !== undefined) return latest.id;
    throw new RetinueError("session-missing", "There is no session in this folder to continue.", {
      advice: "Leave out that option to start one.",
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
    advice: "Pass a session id or title, or use --continue for the latest session.",
  });
}

function isSessionUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

interface TranscriptOptions {
  readonly chosen: ChosenSession;
  readonly options: SessionSetup;
  readonly branch: string | undefined;
  readonly signal: AbortSignal;
}

/** Opens the record of a main agent; a session that is copied is copied first. */
export async function openTranscript(
  plan: AgentPlan,
  runtime: RuntimeContext,
  { chosen, options, branch, signal }: TranscriptOptions,
): Promise<AgentRecord> {
  const { transcripts } = runtime.discovered.paths;
  const { sessionId, from } = chosen;
  const { resumeAt: until, resumeDrops: drops } = options;
  const isKept = runtime.keepsTranscripts && options.childrenOnly !== true;
  const isResumed = from === sessionId;
  const files = sessionFiles(transcripts, sessionId);
  const file = files.transcript;
  const observer = runtime.live?.transcript;
  const load = async (): Promise<LoadedSession | undefined> => {
    if (from === undefined) {
      // A crash before the first whole line leaves a file that says nothing; its session can begin again under the same id.
      const left = await loadSession(file).catch(() => undefined);
      return left?.records.length === 0 ? left : undefined;
    }
    if (!isKept) return loadUntil(sessionFiles(transcripts, from).transcript, { until, drops });
    const fork = isResumed
      ? undefined
      : await forkSession({ transcripts, from, to: sessionId, ids: runtime.ids });
    const read = await loadUntil(file, { until, drops });
    return { ...read, damage: fork?.damage ?? read.damage };
  };
  const isNew = chosen.isNew === true || (!isKept && from === undefined);
  const title = from === undefined ? observer?.title : undefined;
  try {
    const record = await openRecord(plan, {
      session: runtime,
      transcripts,
      target: isKept ? { file } : undefined,
      load: isNew ? undefined : load,
      reading: untilOf({ until }),
      name: from,
      takeOver: options.takeOver === true,
      takesIdle: () => isResumed && !hasLiveChild(files),
      rereads: isResumed,
      signal,
      gitBranch: branch,
      observer,
      beside: [
        ...choiceLines(sessionId, options),
        ...optionLines(sessionId, options),
        ...(title === undefined ? [] : [customTitleLine(sessionId, title)]),
      ],
    });
    // A copy gets its title from the session it was made of; the copying command has named it already.
    const { custom } = isResumed && isKept ? readSessionTitles(record.earlier?.records ?? []) : {};
    if (custom !== undefined) observer?.titled?.(custom);
    return record;
  } catch (error) {
    throw from === undefined ? explainExisting(error, sessionId) : error;
  }
}

async function loadUntil(file: string, options: LoadOptions): Promise<LoadedSession> {
  const loaded = await loadSession(file, untilOf(options));
  refuseMissingLine(loaded, options);
  return loaded;
}

interface LoadOptions {
  /** The line that a resumed conversation ends with; absent means its newest. */
  readonly until?: string | undefined;
  /** The prompt whose turn may be left out by that; absent means anything may. */
  readonly drops?: string | undefined;
}

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
      "A turn can be dropped only together with the message to resume at.",
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
