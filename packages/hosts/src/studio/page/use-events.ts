import type { ConversationEntry } from "@retinue/core/inspection/conversation-fold.ts";
import type { OverviewAgent, SessionOverview } from "@retinue/core/kernel/live/session-overview.ts";
import type {
  ActOutcome,
  ActRequest,
  AgentUpdate,
  ExportedSession,
  InboxQuestion,
  SessionList,
  SessionUpdate,
} from "@retinue/core/kernel/live/session-update.ts";
import { useEffect, useState } from "preact/hooks";
import { timeOfDay } from "./format.ts";
import type { Place } from "./route.ts";
import { mayStream, onStreamTurn } from "./stream-turn.ts";

/** The session that is part of this page, where it is an export. */
export const exported: ExportedSession | undefined = readExported();

function readExported(): ExportedSession | undefined {
  const text = document.getElementById("data")?.textContent;
  return text === undefined || text === null ? undefined : JSON.parse(text);
}

export interface Followed<S> {
  readonly state: S | undefined;
  /** What went wrong last; undefined while all is well. */
  readonly problem: string | undefined;
}

/** Follows server-sent events and folds each into the state, at most once for each picture that is painted. */
export function useEvents<S extends object, U extends object>(
  path: string,
  query: Readonly<Record<string, string>>,
  fold: (before: S | undefined, update: U) => S,
): Followed<S> {
  const [followed, setFollowed] = useState<Followed<S>>({ state: undefined, problem: undefined });
  const address = `${path}?${new URLSearchParams(query)}`;
  useEffect(() => {
    if (exported !== undefined) return;
    let state: S | undefined;
    let before: S | undefined;
    let receivedAt: number | undefined;
    // What is wrong with the connection, and with parts of what comes over it.
    let lost: string | undefined;
    const wrong = new Map<string, string>();
    let forgetPaint: (() => void) | undefined;
    const paint = (): void => {
      forgetPaint ??= soon(() => {
        forgetPaint = undefined;
        // After a reconnection parts come one by one; until each is there, what was known of it stays.
        const shown = state === undefined ? before : { ...before, ...state };
        setFollowed({ state: shown, problem: lost ?? wrong.values().next().value });
      });
    };
    let source: EventSource | undefined;
    const open = (): EventSource => {
      const opened = new EventSource(address);
      opened.onopen = () => {
        // The server begins anew.
        before = state === undefined ? before : { ...before, ...state };
        state = undefined;
      };
      opened.onmessage = take;
      opened.addEventListener("problem", onProblem);
      opened.onerror = () => onEnd(opened);
      return opened;
    };
    const take = ({ data }: MessageEvent): void => {
      const update: U = JSON.parse(String(data));
      state = fold(state, update);
      receivedAt = Date.now();
      lost = undefined;
      for (const part of Object.keys(update)) wrong.delete(part);
      paint();
    };
    const onProblem = ({ data }: MessageEvent): void => {
      const { message, part } = JSON.parse(String(data));
      wrong.set(part, message);
      lost = undefined;
      paint();
    };
    const onEnd = ({ readyState }: EventSource): void => {
      // A connection that was refused is closed; one that was lost is tried again.
      const since = receivedAt === undefined ? "" : ` Shown is what was there at ${timeOfDay(receivedAt)}.`;
      lost = `The studio does not answer. Is it still running?${since}`;
      if (readyState === EventSource.CLOSED)
        void whyRefused(address).then((reason) => {
          lost = reason;
          paint();
        });
      paint();
    };
    const takeTurn = (): void => {
      if (forgetPaint !== undefined) {
        // A requested frame is not painted while the page is hidden.
        forgetPaint();
        forgetPaint = undefined;
        paint();
      }
      if (mayStream()) source ??= open();
      else {
        source?.close();
        source = undefined;
      }
    };
    takeTurn();
    const forget = onStreamTurn(takeTurn);
    return () => {
      forget();
      source?.close();
      forgetPaint?.();
    };
  }, [address]);
  return followed;
}

const hiddenMs = 1000;

/** With the next picture; a tab that is not looked at paints none, and has a title all the same. */
function soon(run: () => void): () => void {
  if (document.hidden) {
    const timer = setTimeout(run, hiddenMs);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(run);
  return () => cancelAnimationFrame(frame);
}

/** A stream that was refused does not say why, so the same is asked for once more. */
async function whyRefused(address: string): Promise<string> {
  const other = "The studio has nothing at this address, or the link is of another studio.";
  try {
    const response = await fetch(address);
    if (response.ok) {
      await response.body?.cancel();
      return "The studio answers again: reload the page.";
    }
    const { message }: { readonly message?: string } = await response.json();
    return message ?? other;
  } catch {
    return other;
  }
}

export interface SessionView {
  readonly overview: SessionOverview;
  readonly agents: ReadonlyMap<string, OverviewAgent>;
}

export interface AgentView {
  readonly from: number;
  readonly entries: readonly ConversationEntry[];
  readonly plan?: Readonly<Record<string, unknown>>;
}

/** By agent, the answer that its model is writing. */
type LiveTexts = ReadonlyMap<string, { readonly answer: string; readonly text: string }>;

export interface SessionState {
  readonly list?: SessionList;
  readonly inbox?: readonly InboxQuestion[];
  readonly session?: SessionView;
  readonly agent?: AgentView;
  /** Null where the session has none. */
  readonly merge?: SessionUpdate["merge"];
  readonly run?: SessionUpdate["run"];
  readonly live: LiveTexts;
}

/** Follows the list of sessions. */
export function useList(): Followed<SessionState> {
  return useEvents<SessionState, SessionUpdate>("api/sessions", {}, foldUpdate);
}

/** Follows a session, and one of its agents with its conversation; `all` from the first entry on. */
export function useSession(
  { project, id }: Place,
  { agentId, all = false }: { readonly agentId?: string; readonly all?: boolean } = {},
): Followed<SessionState> {
  const query = { project, id, ...(agentId === undefined ? {} : { agent: agentId, all: all ? "1" : "0" }) };
  const path = agentId === undefined ? "api/session" : "api/agent";
  const most = all ? Number.POSITIVE_INFINITY : maxEntries;
  const followed = useEvents<SessionState, SessionUpdate>(path, query, (before, update) =>
    foldUpdate(before, update, most),
  );
  if (exported === undefined) return followed;
  const agent = agentId === undefined ? undefined : exported.agents[agentId];
  const session = foldUpdate(undefined, { session: exported.session });
  return { state: agent === undefined ? session : foldUpdate(session, { agent }), problem: undefined };
}

/** Follows the merge of a session's children. */
export function useMerge({ project, id }: Place): Followed<SessionState> {
  const followed = useEvents<SessionState, SessionUpdate>("api/merge", { project, id }, foldUpdate);
  if (exported === undefined) return followed;
  return exportedWith({ merge: exported.merge ?? null });
}

/** Follows one run of a workflow. */
export function useRun({ project, id }: Place, runId: string): Followed<SessionState> {
  const query = { project, id, run: runId };
  const followed = useEvents<SessionState, SessionUpdate>("api/run", query, foldUpdate);
  if (exported === undefined) return followed;
  return exportedWith({ run: exported.runs?.find((run) => run.runId === runId) ?? null });
}

function exportedWith(more: SessionUpdate): Followed<SessionState> {
  const session = exported === undefined ? undefined : foldUpdate(undefined, { session: exported.session });
  return { state: foldUpdate(session, more), problem: undefined };
}

/** The entries that a page keeps of a conversation that it watches from its end. */
const maxEntries = 2000;

function foldUpdate(
  before: SessionState = { live: new Map() },
  update: SessionUpdate,
  most = Number.POSITIVE_INFINITY,
): SessionState {
  const { session, agent, live, list, inbox, merge, run } = update;
  if (list !== undefined) return { ...before, list };
  if (inbox !== undefined) return { ...before, inbox };
  if (merge !== undefined) return { ...before, merge };
  if (run !== undefined) return { ...before, run };
  if (session !== undefined) return { ...before, session: foldOverview(before.session, session) };
  if (agent !== undefined) return { ...before, agent: foldAgent(before.agent, agent, most) };
  return live === undefined ? before : { ...before, live: foldLive(before.live, live) };
}

/** Updates hold only the agents that have changed. */
function foldOverview(before: SessionView | undefined, overview: SessionOverview): SessionView {
  const agents = new Map(before?.agents);
  for (const agent of overview.agents) agents.set(agent.id, agent);
  return { overview, agents };
}

function foldAgent(before: AgentView | undefined, update: AgentUpdate, most: number): AgentView {
  const start = before?.from ?? update.from;
  const entries = [...(before?.entries ?? [])];
  for (const [index, entry] of update.entries) if (index >= start) entries[index - start] = entry;
  const left = Math.max(0, entries.length - most);
  const plan = update.plan ?? before?.plan;
  const kept = left === 0 ? entries : entries.slice(left);
  return { from: start + left, entries: kept, plan };
}

function foldLive(before: LiveTexts, pieces: NonNullable<SessionUpdate["live"]>): LiveTexts {
  const texts = new Map(before);
  for (const { agentId, answer, text, isFirst } of pieces) {
    const known = texts.get(agentId);
    const before = known?.answer === answer && isFirst !== true ? known.text : "";
    if (text !== undefined) texts.set(agentId, { answer, text: before + text });
    else if (known?.answer === answer) texts.delete(agentId);
  }
  return texts;
}

/** The whole result of a call, of which only the beginning was sent. */
export async function loadResult({ project, id }: Place, agentId: string, position: number): Promise<string> {
  const query = new URLSearchParams({ project, id, agent: agentId, index: String(position) });
  const response = await fetch(`api/entry?${query}`);
  if (!response.ok) throw new Error(`The studio answered ${response.status}.`);
  const { result = "" }: { readonly result?: string } = await response.json();
  return result;
}

/** Asks the server to do something; answers with the outcome, or throws with the reason. */
export async function sendAct(request: ActRequest): Promise<ActOutcome> {
  const response = await fetch("api/act", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  const answer: unknown = await response.json().catch(() => undefined);
  const { outcome, sessionId, message, advice } = (answer ?? {}) as Record<string, string | undefined>; // The server's own form.
  if (response.ok) return { outcome: outcome ?? "Done.", sessionId };
  throw new Error([message ?? `The studio answered ${response.status}.`, advice].filter(Boolean).join(" "));
}

export interface Acting {
  readonly status: string;
  readonly isBusy: boolean;
  /** Whether it was done. */
  readonly act: (request: ActRequest) => Promise<ActOutcome | undefined>;
}

/** Sends acts one at a time, with the outcome of the last one in words. */
export function useActs(): Acting {
  const [status, setStatus] = useState("");
  const [isBusy, setBusy] = useState(false);
  return {
    status,
    isBusy,
    async act(request) {
      setBusy(true);
      setStatus("Sending…");
      try {
        const done = await sendAct(request);
        setStatus(done.outcome);
        return done;
      } catch (error) {
        setStatus(error instanceof Error ? error.message : String(error));
        return undefined;
      } finally {
        setBusy(false);
      }
    },
  };
}
