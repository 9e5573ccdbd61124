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
import type { Place } from "./route.ts";

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
export function useEvents<S, U>(
  path: string,
  query: Readonly<Record<string, string>>,
  fold: (before: S | undefined, update: U) => S,
): Followed<S> {
  const [followed, setFollowed] = useState<Followed<S>>({ state: undefined, problem: undefined });
  const address = `${path}?${new URLSearchParams(query)}`;
  useEffect(() => {
    if (exported !== undefined) return;
    let state: S | undefined;
    let problem: string | undefined;
    let frame = 0;
    const paint = (): void => {
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        setFollowed({ state, problem });
      });
    };
    const source = new EventSource(address);
    source.onopen = () => {
      // After a lost connection the server begins anew.
      state = undefined;
    };
    source.onmessage = ({ data }) => {
      state = fold(state, JSON.parse(String(data)));
      problem = undefined;
      paint();
    };
    source.addEventListener("problem", (event) => {
      problem = JSON.parse(String((event as MessageEvent).data)).message;
      paint();
    });
    source.onerror = () => {
      // A connection that was refused is closed; one that was lost is tried again.
      problem =
        source.readyState === EventSource.CLOSED
          ? "The studio has nothing at this address, or the link is of another studio."
          : "The studio does not answer. Is it still running?";
      paint();
    };
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [address]);
  return followed;
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

/** Asks the server to do something; answers with what came of it, or throws with the reason. */
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

/** Sends acts one at a time, with what came of the last one in words. */
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
