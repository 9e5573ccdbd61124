import { createConversationFold } from "../../inspection/conversation-fold.ts";
import { createInspectionSource, createLineSource } from "../../inspection/inspection-source.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { hasLiveOwner } from "../../storage/owner-lock.ts";
import { createRefresher } from "./create-refresher.ts";
import { overviewOf, type SessionOverview } from "./session-overview.ts";
import type { AgentUpdate } from "./studio-messages.ts";
import { watchFolders } from "./watch-folders.ts";

export interface SessionPlace {
  /** The folder of the project's transcripts. */
  readonly transcripts: string;
  readonly sessionId: string;
}

/** A process that is killed writes nothing, so whether a running session still lives is checked this often. */
const livenessMs = 3000;

export interface FollowOptions<T> {
  readonly send: (update: T) => void;
  readonly onError: (error: unknown) => void;
}

/** Sends the overview of a session, and after each change of its files the agents that have changed. */
export function followSession(
  place: SessionPlace,
  { send, onError }: FollowOptions<SessionOverview>,
): () => void {
  const source = createInspectionSource({ ...place, now: Date.now });
  const sent = new Map<string, string>();
  return followFiles(place, onError, async () => {
    const overview = overviewOf(await source.load());
    const changed = overview.agents.filter((agent) => {
      const text = JSON.stringify(agent);
      if (sent.get(agent.id) === text) return false;
      sent.set(agent.id, text);
      return true;
    });
    send({ ...overview, agents: changed });
    return overview.session.isLive;
  });
}

/** The entries sent first; earlier ones are asked for. */
const firstEntries = 400;

/** Sends the conversation of one agent: the newest entries, then each that is added or changes. */
export function followAgent(
  place: SessionPlace & { readonly agentId: string; readonly all?: boolean },
  { send, onError }: FollowOptions<AgentUpdate>,
): () => void {
  const files = sessionFiles(place.transcripts, place.sessionId);
  const isMain = place.agentId === "main";
  const file = isMain ? files.transcript : files.agent(place.agentId).transcript;
  const fold = createConversationFold({ isMain });
  const lines = createLineSource(file, (record) => fold.add(record));
  let from: number | undefined;
  let plan: string | undefined;
  return followFiles(place, onError, async () => {
    const isLive = hasLiveOwner(file);
    await lines.load(isLive);
    from ??= place.all === true ? 0 : Math.max(0, fold.entries.length - firstEntries);
    const first = from;
    const changed = fold.takeChanged().filter((index) => index >= first);
    const planText = JSON.stringify(fold.plan);
    const isNewPlan = planText !== plan;
    plan = planText;
    send({
      isLive,
      from: first,
      count: fold.entries.length,
      entries: changed.flatMap((index) => {
        const entry = fold.entries[index];
        return entry === undefined ? [] : [[index, entry] as const];
      }),
      ...(isNewPlan && fold.plan !== undefined ? { plan: fold.plan } : {}),
    });
    return isLive;
  });
}

function followFiles(
  { transcripts, sessionId }: SessionPlace,
  onError: (error: unknown) => void,
  load: () => Promise<boolean>,
): () => void {
  const files = sessionFiles(transcripts, sessionId);
  let isLive = false;
  const refresher = createRefresher(async () => {
    isLive = await load();
  }, onError);
  const watch = watchFolders(
    [
      { path: transcripts, concerns: (name) => name.startsWith(sessionId) },
      { path: files.directory },
      { path: files.subagents },
    ],
    refresher.request,
  );
  const timer = setInterval(() => {
    if (isLive) refresher.request();
  }, livenessMs).unref();
  refresher.request();
  return () => {
    clearInterval(timer);
    watch.close();
    refresher.close();
  };
}
