// @io

import { statSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hasLiveOwner } from "@retinue/base/storage/owner-lock.ts";
import { parseLines, readRange } from "@retinue/base/storage/read-lines.ts";
import { actFile } from "../journal/append-act.ts";
import { readAskedCalls } from "../journal/asked-calls.ts";
import { findSession } from "../journal/find-sessions.ts";
import { isAgentId, sessionFiles } from "../journal/session-files.ts";
import type { KnownChild } from "../tasks/child-meta.ts";
import { loadChildMeta } from "../tasks/child-meta.ts";
import { type AgentFold, createAgentFold } from "./agent-fold.ts";
import { type AgentParts, inspectSession } from "./inspect-session.ts";
import type { InspectedAct, InspectedAgent, Inspection } from "./inspection.ts";
import { bounded, boundedLine, recordField, textField, timeOf } from "./read-answer.ts";

/** Reads a file of JSON lines in pieces, and the next time only what was added. */
export interface LineSource {
  /** Hands over each new line; `isGrowing` leaves an unfinished last line for the next time. */
  load(isGrowing: boolean): Promise<void>;
  readonly broken: number;
  readonly isTorn: boolean;
}

const lineFeed = 0x0a;
const pieceBytes = 8 * 1024 * 1024;

export function createLineSource(file: string, take: (record: JsonRecord) => void): LineSource {
  let at = 0;
  let broken = 0;
  let isTorn = false;

  const takeLines = (bytes: Buffer): void => {
    const lines = parseLines(bytes);
    broken += lines.broken;
    isTorn = lines.torn;
    for (const record of lines.values) take(record);
    at += bytes.length;
  };

  return {
    get broken() {
      return broken;
    },
    get isTorn() {
      return isTorn;
    },
    async load(isGrowing) {
      // Nearly always nothing was added, and opening takes much longer than looking.
      if (at > 0 && statSync(file, { throwIfNoEntry: false })?.size === at) return;
      try {
        await using handle = await open(file, "r");
        const { size } = await handle.stat();
        for (let length = pieceBytes; at < size; ) {
          const bytes = await readRange(handle, at, Math.min(size, at + length));
          const whole = bytes.lastIndexOf(lineFeed) + 1;
          const isLast = bytes.length < length;
          if (whole > 0) takeLines(bytes.subarray(0, whole));
          if (isLast && whole < bytes.length && !isGrowing) takeLines(bytes.subarray(whole));
          if (isLast) return;
          // A line longer than a piece is read in a longer one.
          length = whole === 0 ? length * 2 : pieceBytes;
        }
      } catch (error) {
        if (errorCode(error) !== "ENOENT") throw fileError("read", file, error);
      }
    },
  };
}

export interface InspectionOptions {
  /** The folder of the project's transcripts. */
  readonly transcripts: string;
  readonly sessionId: string;
  /** Only this agent and its children. */
  readonly agentId?: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Reads a session's files, and when asked again only what was added to them. */
export interface InspectionSource {
  /**
   * With `budgetMs` it reads no further child after this time: `unread` of the inspection says how many are missing, and the next
   * call reads on.
   */
  load(options?: { readonly budgetMs?: number }): Promise<Inspection>;
}

interface ChildFile {
  readonly lines: LineSource;
  readonly transcript: string;
  readonly meta: string;
  isRead: boolean;
  known?: KnownChild | undefined;
}

const mainId = "main";

/** Holds nothing open between two readings. What cannot be read of a child becomes a note; of the main agent, a RetinueError. */
export function createInspectionSource(options: InspectionOptions): InspectionSource {
  const { transcripts, sessionId } = options;
  const files = sessionFiles(transcripts, sessionId);
  const folds = new Map<string, AgentFold>([[mainId, createAgentFold()]]);
  const children = new Map<string, ChildFile>();
  const route = createRouter(mainId);
  const acts: InspectedAct[] = [];
  const actLines = createLineSource(actFile(files), (record) => void acts.push(...readAct(record)));
  const main = createLineSource(files.transcript, (record) => foldOf(route(record)).add(record));
  let title: string | undefined;

  function foldOf(id: string): AgentFold {
    const fold = folds.get(id) ?? createAgentFold();
    folds.set(id, fold);
    return fold;
  }

  function addChild(id: string, path: string): void {
    if (!isAgentId(id) || id === mainId || children.has(id)) return;
    const transcript = `${path}.jsonl`;
    const lines = createLineSource(transcript, (record) => foldOf(id).add(record));
    children.set(id, { lines, transcript, meta: `${path}.meta.json`, isRead: false });
    foldOf(id);
  }

  async function findChildren(facts: Parameters<AgentFold["result"]>[0]): Promise<void> {
    for (const { id, path } of await findChildFiles(files.subagents)) addChild(id, path);
    const missing = startedBy(folds, facts).filter((id) => !children.has(id));
    for (const { id, path } of await findOlderFiles(transcripts, missing)) addChild(id, path);
  }

  return {
    async load({ budgetMs = Number.POSITIVE_INFINITY } = {}) {
      const end = performance.now() + budgetMs;
      const now = options.now();
      // Asked before reading, so that what an owner writes before it leaves is read.
      const isMainLive = hasLiveOwner(files.transcript);
      await main.load(isMainLive);
      await findChildren({ isLive: isMainLive, now });
      const live = new Set(
        [...children].flatMap(([id, { transcript }]) => (hasLiveOwner(transcript) ? [id] : [])),
      );
      const notes: string[] = [];
      for (const [id, child] of children)
        if (child.isRead || performance.now() < end) notes.push(...(await loadChild(child, live.has(id))));
      await actLines.load(true);
      title ??= await findTitle(transcripts, sessionId);
      const agents = partsOf({
        folds,
        children,
        isLive: (id) => (id === undefined ? isMainLive : live.has(id)),
        now,
      });
      const session = { id: sessionId, title: title ?? "(no prompt)", file: files.transcript };
      const inspection = inspectSession(
        { ...session, agents, notes: [...notes, ...flawsOf(main, children)], now },
        options.agentId,
      );
      return {
        ...inspection,
        ...(isMainLive ? { agents: withAsked(inspection.agents, readAskedCalls(files)) } : {}),
        ...unreadOf(children),
        ...(acts.length === 0 ? {} : { acts: [...acts] }),
      };
    },
  };
}

function withAsked(
  agents: readonly InspectedAgent[],
  asked: ReadonlyMap<string, number>,
): readonly InspectedAgent[] {
  if (asked.size === 0) return agents;
  return agents.map((agent) => ({
    ...agent,
    inFlight: agent.inFlight.map((one) => {
      const askedSince = one.type === "call" ? asked.get(one.callId) : undefined;
      return askedSince === undefined ? one : { ...one, askedSince };
    }),
  }));
}

function unreadOf(children: ReadonlyMap<string, ChildFile>): Pick<Inspection, "unread"> {
  const unread = [...children.values()].filter(({ isRead }) => !isRead).length;
  return unread === 0 ? {} : { unread };
}

/** Older programs put the files of children beside those of sessions. */
async function findOlderFiles(
  transcripts: string,
  ids: readonly string[],
): Promise<readonly { readonly id: string; readonly path: string }[]> {
  const found: { readonly id: string; readonly path: string }[] = [];
  for (const id of ids) {
    const path = join(transcripts, `agent-${id}`);
    const stats = await stat(`${path}.jsonl`).catch(() => undefined);
    if (stats?.isFile() === true) found.push({ id, path });
  }
  return found;
}

/** Ids of children by their files in a folder and below it; a path has no ending, since several files share it. */
async function findChildFiles(
  folder: string,
): Promise<readonly { readonly id: string; readonly path: string }[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.flatMap((name) => {
    const id = /^agent-(.+)\.jsonl$/.exec(basename(name))?.[1];
    return id === undefined ? [] : [{ id, path: join(folder, name.slice(0, -".jsonl".length)) }];
  });
}

async function findTitle(transcripts: string, sessionId: string): Promise<string | undefined> {
  const found = await findSession(transcripts, sessionId);
  return found?.type === "found" ? found.session.title : undefined;
}

/** Gives what could not be read. */
async function loadChild(child: ChildFile, isLive: boolean): Promise<readonly string[]> {
  child.isRead = true;
  try {
    await child.lines.load(isLive);
    child.known ??= await loadChildMeta(child.meta);
    return [];
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    return [error.message];
  }
}

/** `isLive` is asked for a child by its id, for the main conversation and what is inside it without one. */
function partsOf(found: {
  readonly folds: ReadonlyMap<string, AgentFold>;
  readonly children: ReadonlyMap<string, ChildFile>;
  readonly isLive: (childId?: string) => boolean;
  readonly now: number;
}): readonly AgentParts[] {
  const { folds, children, isLive, now } = found;
  const read = [...folds].filter(([id]) => children.get(id)?.isRead !== false);
  return read.map(([id, fold]) => {
    const child = children.get(id);
    const folded = fold.result({ isLive: isLive(child === undefined ? undefined : id), now });
    return { id, folded, known: child?.known };
  });
}

/** Children named by results, whose files may appear elsewhere. */
function startedBy(
  folds: ReadonlyMap<string, AgentFold>,
  facts: Parameters<AgentFold["result"]>[0],
): readonly string[] {
  const { steps } = folds.get(mainId)?.result(facts) ?? { steps: [] };
  return steps.flatMap((step) =>
    step.type === "call" && step.agentId !== undefined && isAgentId(step.agentId) ? [step.agentId] : [],
  );
}

function flawsOf(main: LineSource, children: ReadonlyMap<string, ChildFile>): readonly string[] {
  const ofChildren = [...children].flatMap(([id, { lines }]) => describeFlaws(id, lines));
  return [...describeFlaws(mainId, main), ...ofChildren];
}

function describeFlaws(id: string, { broken, isTorn }: LineSource): readonly string[] {
  return [
    ...(broken > 0 ? [`${id}: ${broken} lines of its transcript cannot be read and are left out.`] : []),
    ...(isTorn ? [`${id}: the last line of its transcript was cut off.`] : []),
  ];
}

/**
 * Finds the agent to which a line of a main transcript belongs: older programs have written children into it, some without
 * naming them, and those are distinguished by the line their conversation begins with.
 */
function createRouter(main: string): (record: JsonRecord) => string {
  const roots = new Map<string, string>();
  return (record) => {
    if (record.isSidechain !== true) return main;
    const named = textField(record, "agentId");
    if (named !== undefined && isAgentId(named) && named !== main) return named;
    const uuid = textField(record, "uuid") ?? "";
    const root = roots.get(textField(record, "parentUuid") ?? "") ?? sidechainName(uuid);
    roots.set(uuid, root);
    return root;
  };
}

function sidechainName(uuid: string): string {
  return `sidechain-${uuid.replace(/[^A-Za-z0-9]/g, "").slice(0, 8)}`;
}

const maxActText = 2000;

/** One line of the log of acts. */
function readAct(record: JsonRecord): readonly InspectedAct[] {
  const action = textField(record, "action");
  if (record.type !== "retinue-act" || action === undefined) return [];
  const by = recordField(record, "by") ?? {};
  const text = textField(record, "text");
  const reason = textField(record, "reason");
  return [
    defined({
      at: timeOf(record),
      action: boundedLine(action, 40),
      agentId: boundedLine(textField(record, "agentId") ?? "main", 64),
      text: text === undefined ? undefined : bounded(text, maxActText),
      state: boundedLine(textField(record, "state") ?? "unknown", 40),
      reason: reason === undefined ? undefined : bounded(reason, maxActText),
      by: boundedLine(
        `${textField(by, "user") ?? "unknown"} through ${textField(by, "through") ?? "unknown"}`,
        100,
      ),
    }),
  ];
}
