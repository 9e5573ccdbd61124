// @io

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { formatRule, type PermissionRule } from "@retinue/gate/rules/parse-rule.ts";
import { type ConversationEntry, createConversationFold } from "../../inspection/conversation-fold.ts";
import type { Inspection } from "../../inspection/inspection.ts";
import { createInspectionSource, createLineSource } from "../../inspection/inspection-source.ts";
import { bounded } from "../../inspection/read-answer.ts";
import { isAgentId, isRunId, isSessionId, sessionFiles, workflowFiles } from "../../journal/session-files.ts";
import { openTeamStore, type TeamPlaces } from "../../teams/team-store.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import { withTeam } from "../teams/mail-of-team.ts";
import { type FoundRun, findRunsOf, readRun } from "../workflows/find-runs.ts";
import { type LivePiece, liveFiles } from "./live-text.ts";
import { type MergeView, readMerge } from "./merge-view.ts";
import { readLiveText } from "./read-live-text.ts";
import { overviewOf, type SessionOverview } from "./session-overview.ts";
import type { AgentUpdate } from "./session-update.ts";
import { studioQuestion } from "./studio-question.ts";
import { createRefresher, type FolderWatch, type WatchedFolder, watchFolders } from "./watch-folders.ts";
import { type WorkflowView, workflowSummary, workflowView } from "./workflow-view.ts";

export interface SessionPlace {
  /** The folder of the project's transcripts. */
  readonly transcripts: string;
  readonly sessionId: string;
  /** Where teams are; absent: none are shown. */
  readonly teams?: TeamPlaces;
}

/** Throws where an id could lead out of the folder of transcripts. */
export function checkPlace({
  sessionId,
  agentId,
  runId,
}: {
  readonly sessionId: string;
  readonly agentId?: string;
  readonly runId?: string;
}): void {
  if (!isSessionId(sessionId))
    throw new RetinueError("misuse", `${JSON.stringify(sessionId)} is not a session id.`);
  if (agentId !== undefined && !isAgentId(agentId))
    throw new RetinueError("misuse", `${JSON.stringify(agentId)} is not the id of an agent.`);
  if (runId !== undefined && !isRunId(runId))
    throw new RetinueError("misuse", `${JSON.stringify(runId)} is not the id of a workflow run.`);
}

/** All that a session did, once. */
export async function inspectSession(place: SessionPlace): Promise<Inspection> {
  checkExists(place);
  return createInspectionSource({ ...place, now: Date.now }).load();
}

/** An unknown id would look like a session without a prompt. */
function checkExists({ transcripts, sessionId }: SessionPlace): void {
  const { transcript, directory } = sessionFiles(transcripts, sessionId);
  if (!existsSync(transcript) && !existsSync(directory))
    throw new RetinueError("session-missing", `There is no session ${sessionId} here.`, {
      advice:
        "It may have been removed, or belong to another folder; `retinue studio --all` shows the sessions of all folders.",
    });
}

/** A process that is killed writes nothing, so whether a running session still lives is checked this often. */
const livenessMs = 3000;

export interface FollowOptions<T> {
  readonly send: (update: T) => void;
  readonly onError: (error: unknown) => void;
}

/** Reads the overview of a session; the next time only what was added to its files. Rejects where there is none. */
export function createOverviewSource(place: SessionPlace): {
  load(budgetMs?: number): Promise<SessionOverview>;
} {
  const source = createInspectionSource({ ...place, now: Date.now });
  const { approvals } = sessionFiles(place.transcripts, place.sessionId);
  return {
    async load(budgetMs) {
      checkExists(place);
      const inspection = await source.load(budgetMs === undefined ? {} : { budgetMs });
      const questions = await Promise.all(readApprovals(approvals, { now: Date.now }).map(studioQuestion));
      const overview = overviewOf(place.teams === undefined ? inspection : withTeam(inspection, place.teams));
      const own = { ...overview, ...summariesOf(await readParts(place)) };
      return questions.length === 0 ? own : { ...own, questions };
    },
  };
}

/** What a session has beside its agents. */
interface SessionParts {
  readonly merge: MergeView | undefined;
  readonly runs: readonly FoundRun[];
}

export async function readParts({ transcripts, sessionId }: SessionPlace): Promise<SessionParts> {
  const [merge, runs] = await Promise.all([
    readMerge(transcripts, sessionId),
    findRunsOf(transcripts, sessionId),
  ]);
  return { merge, runs };
}

export function summariesOf({ merge, runs }: SessionParts): Pick<SessionOverview, "merge" | "workflows"> {
  return {
    merge: merge?.summary,
    ...(runs.length === 0 ? {} : { workflows: runs.map(workflowSummary) }),
  };
}

const firstReadMs = 120;
const nextReadMs = 1500;

/** Sends the overview of a session, and after each change of its files the agents that have changed. */
export function followSession(
  place: SessionPlace,
  { send, onError }: FollowOptions<SessionOverview>,
): () => void {
  const source = createOverviewSource(place);
  const sent = new Map<string, string>();
  // Of a large session a part is sent soon, and more of it each time.
  let budgetMs = firstReadMs;
  const sendNext = async (watch: FolderWatch): Promise<SessionOverview> => {
    const overview = await source.load(budgetMs);
    budgetMs = nextReadMs;
    const changed = overview.agents.filter((agent) => {
      const text = JSON.stringify(agent);
      if (sent.get(agent.id) === text) return false;
      sent.set(agent.id, text);
      return true;
    });
    if (overview.team !== undefined && place.teams !== undefined)
      watch.add(teamFolders(place.teams, overview.team.name));
    for (const { runId } of overview.workflows ?? [])
      watch.add([{ path: workflowFiles(place.transcripts, place.sessionId, runId).transcripts }]);
    send({ ...overview, agents: changed });
    return overview;
  };
  return followFiles(place, onError, async (watch, signal) => {
    let overview = await sendNext(watch);
    while (overview.unread !== undefined && !signal.aborted) overview = await sendNext(watch);
    const { session, merge, workflows = [] } = overview;
    return (
      session.isLive || merge?.state === "running" || workflows.some(({ status }) => status === "running")
    );
  });
}

/** Sends the merge of a session's children, and again after each of its steps; null where there is none. */
export function followMerge(
  place: SessionPlace,
  { send, onError }: FollowOptions<MergeView | null>,
): () => void {
  const sendChanged = changedOnly(send);
  return followFiles(place, onError, async () => {
    const merge = await readMerge(place.transcripts, place.sessionId);
    sendChanged(merge ?? null);
    return merge?.summary.state === "running";
  });
}

/** Sends one run of a workflow, and again when it has come further; null where there is no such run. */
export function followRun(
  { runId, ...place }: SessionPlace & { readonly runId: string },
  { send, onError }: FollowOptions<WorkflowView | null>,
): () => void {
  const sendChanged = changedOnly(send);
  return followFiles(place, onError, async () => {
    const run = await readRun(place.transcripts, place.sessionId, runId);
    sendChanged(run === undefined ? null : workflowView(run));
    return run?.status === "running";
  });
}

function changedOnly<T>(send: (update: T) => void): (update: T) => void {
  let sent: string | undefined;
  return (update) => {
    const text = JSON.stringify(update);
    if (text !== sent) send(update);
    sent = text;
  };
}

/** What changes when something happens in a team. */
export function teamFolders(places: TeamPlaces, name: string): readonly WatchedFolder[] {
  const own = join(places.teams, name);
  const list = openTeamStore(places, name).config()?.taskList ?? name;
  return [own, join(own, "inboxes"), join(places.tasks, list)].map((path) => ({ path }));
}

/** The entries sent first; earlier ones are asked for. */
const firstEntries = 400;
/** The entries that are held: what was sent and can no longer change is let go, however long the session lasts. */
const heldEntries = 2 * firstEntries;

/** Reads the conversation of one agent; the next time only what was added or has changed. */
export function createConversationSource(place: SessionPlace & { readonly agentId: string }): {
  load(options: { readonly all: boolean }): Promise<AgentUpdate>;
} {
  const file = transcriptOf(place);
  const fold = createConversationFold({ isMain: place.agentId === "main" });
  let from: number | undefined;
  let sendsAll = false;
  const lines = createLineSource(file, (record) => {
    fold.add(record);
    // Of what is read before the first update only the end is sent.
    if (from === undefined && !sendsAll && fold.count % heldEntries === 0)
      fold.forget(fold.count - firstEntries);
  });
  let plan: string | undefined;
  return {
    async load({ all }) {
      const isLive = hasLiveOwner(file);
      sendsAll = all;
      await lines.load(isLive);
      from ??= all ? 0 : Math.max(0, fold.count - firstEntries);
      const first = from;
      const changed = fold.takeChanged().filter((index) => index >= first);
      const planText = JSON.stringify(fold.plan);
      const isNewPlan = planText !== plan;
      plan = planText;
      const entries = changed.flatMap((index) => {
        const entry = fold.entry(index);
        return entry === undefined ? [] : [[index, entry] as const];
      });
      fold.forget(fold.count - heldEntries);
      return {
        isLive,
        from: first,
        count: fold.count,
        entries,
        ...(isNewPlan && fold.plan !== undefined ? { plan: withRuleTexts(fold.plan) } : {}),
      };
    },
  };
}

/** Older programs put the files of children beside those of sessions. */
function transcriptOf({
  transcripts,
  sessionId,
  agentId,
}: SessionPlace & { readonly agentId: string }): string {
  const files = sessionFiles(transcripts, sessionId);
  if (agentId === "main") return files.transcript;
  const { transcript } = files.agent(agentId);
  const older = join(transcripts, `agent-${agentId}.jsonl`);
  return !existsSync(transcript) && existsSync(older) ? older : transcript;
}

/** Sends the conversation of one agent: the newest entries, then each that is added or changes. */
export function followAgent(
  place: SessionPlace & { readonly agentId: string; readonly all?: boolean },
  { send, onError }: FollowOptions<AgentUpdate>,
): () => void {
  const source = createConversationSource(place);
  let isFirst = true;
  return followFiles(place, onError, async () => {
    const update = await source.load({ all: place.all === true });
    if (isFirst || update.entries.length > 0 || update.plan !== undefined)
      send({ ...update, entries: update.entries.map(([at, entry]) => [at, withoutLongResult(entry)]) });
    isFirst = false;
    return update.isLive;
  });
}

/** One entry of a conversation as it is kept, for viewers that were sent only its beginning; undefined where there is none. */
export async function readEntry(
  place: SessionPlace & { readonly agentId: string },
  index: number,
): Promise<ConversationEntry | undefined> {
  const { entries } = await createConversationSource(place).load({ all: true });
  return entries.find(([at]) => at === index)?.[1];
}

/** What a call put out is shown on request, so of many long ones only the beginnings are sent. */
const maxSentResult = 8000;

function withoutLongResult(entry: ConversationEntry): ConversationEntry {
  if (entry.type !== "call" || entry.result === undefined || entry.result.length <= maxSentResult)
    return entry;
  const { result } = entry;
  return { ...entry, result: bounded(result, maxSentResult), resultLines: result.split("\n").length };
}

/** Sends what models of the session are writing, while processes write it for viewers. */
export function followLive(
  { transcripts, sessionId }: SessionPlace,
  { send, onError }: FollowOptions<readonly LivePiece[]>,
): () => void {
  const session = sessionFiles(transcripts, sessionId);
  let watch: FolderWatch | undefined;
  const refresher = createRefresher(
    async () => {
      const pieces = await reader.read();
      if (pieces.length > 0) send(pieces);
    },
    onError,
    0,
  );
  const reader = readLiveText(session, () => {
    // A folder that was removed and made again is watched anew.
    watch?.close();
    const concerns = (name: string): boolean => name.endsWith(".jsonl");
    watch = watchFolders([{ path: liveFiles(session).directory, concerns }], refresher.request);
    refresher.request();
  });
  return () => {
    reader[Symbol.dispose]();
    watch?.close();
    refresher.close();
  };
}

function followFiles(
  { transcripts, sessionId }: SessionPlace,
  onError: (error: unknown) => void,
  load: (watch: FolderWatch, signal: AbortSignal) => Promise<boolean>,
): () => void {
  const closed = new AbortController();
  const files = sessionFiles(transcripts, sessionId);
  let isLive = false;
  const refresher = createRefresher(async () => {
    isLive = await load(watch, closed.signal);
  }, onError);
  const watch = watchFolders(
    [
      { path: transcripts, concerns: (name) => name.startsWith(sessionId) },
      { path: files.directory },
      { path: files.subagents },
      { path: files.approvals },
      { path: files.runs },
    ],
    refresher.request,
  );
  const timer = setInterval(() => {
    if (isLive) refresher.request();
  }, livenessMs).unref();
  refresher.request();
  return () => {
    closed.abort();
    clearInterval(timer);
    watch.close();
    refresher.close();
  };
}

const ruleLists = ["allow", "ask", "deny"] as const;

/** A plan whose rules are texts as settings have them; what is not understood stays as it was written down. */
function withRuleTexts(plan: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { policy } = plan;
  if (!isRecord(policy)) return plan;
  const lists = ruleLists.map((list) => {
    const rules = policy[list];
    return [list, Array.isArray(rules) ? rules.map((entry: unknown) => withRuleText(entry)) : rules] as const;
  });
  return { ...plan, policy: { ...policy, ...Object.fromEntries(lists) } };
}

function withRuleText(entry: unknown): unknown {
  if (!isRecord(entry) || !isRecord(entry["rule"])) return entry;
  try {
    // It is refused unless it is one.
    return { ...entry, rule: formatRule(entry["rule"] as unknown as PermissionRule) };
  } catch {
    return entry;
  }
}
