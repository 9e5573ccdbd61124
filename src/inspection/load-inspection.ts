import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isRetinueError } from "../foundation/retinue-error.ts";
import { findSession } from "../journal/find-sessions.ts";
import { isAgentId, sessionFiles } from "../journal/session-files.ts";
import { hasLiveOwner } from "../storage/owner-lock.ts";
import type { KnownChild } from "../tasks/child-meta.ts";
import { loadChildMeta } from "../tasks/load-child-meta.ts";
import { type AgentFold, createAgentFold } from "./fold-agent.ts";
import { type AgentParts, inspectSession } from "./inspect-session.ts";
import type { Inspection } from "./inspection.ts";
import { createLineSource, type LineSource } from "./load-lines.ts";
import { createRouter } from "./route-lines.ts";

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
  load(): Promise<Inspection>;
}

interface ChildFile {
  readonly lines: LineSource;
  readonly transcript: string;
  readonly meta: string;
  known?: KnownChild | undefined;
}

const mainId = "main";

/** Holds nothing open between two readings. What cannot be read of a child becomes a note; of the main agent, a Fault. */
export function createInspectionSource(options: InspectionOptions): InspectionSource {
  const { transcripts, sessionId } = options;
  const files = sessionFiles(transcripts, sessionId);
  const folds = new Map<string, AgentFold>([[mainId, createAgentFold()]]);
  const children = new Map<string, ChildFile>();
  const route = createRouter(mainId);
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
    children.set(id, { lines, transcript, meta: `${path}.meta.json` });
    foldOf(id);
  }

  async function findChildren(): Promise<void> {
    const names = await readdir(files.subagents, { recursive: true }).catch(() => []);
    for (const name of names) {
      const id = /^agent-(.+)\.jsonl$/.exec(basename(name))?.[1];
      if (id !== undefined) addChild(id, join(files.subagents, name.slice(0, -".jsonl".length)));
    }
    // Older programs put the files of children beside those of sessions.
    for (const id of startedBy(folds, options.now())) {
      const path = join(transcripts, `agent-${id}`);
      const isThere = !children.has(id) && (await stat(`${path}.jsonl`).catch(() => undefined))?.isFile();
      if (isThere === true) addChild(id, path);
    }
  }

  async function loadChild(child: ChildFile): Promise<readonly string[]> {
    try {
      await child.lines.load(hasLiveOwner(child.transcript));
      child.known ??= await loadChildMeta(child.meta);
      return [];
    } catch (error) {
      if (!isRetinueError(error)) throw error;
      return [error.message];
    }
  }

  return {
    async load() {
      const now = options.now();
      // Asked before reading, so that what an owner writes before it leaves is read.
      const isMainLive = hasLiveOwner(files.transcript);
      await main.load(isMainLive);
      await findChildren();
      const live = new Set(
        [...children].flatMap(([id, { transcript }]) => (hasLiveOwner(transcript) ? [id] : [])),
      );
      const notes: string[] = [];
      for (const child of children.values()) notes.push(...(await loadChild(child)));
      const found = title === undefined ? await findSession(transcripts, sessionId) : undefined;
      if (found?.type === "found") title = found.session.title;
      const agents = [...folds].map(([id, fold]): AgentParts => {
        const child = children.get(id);
        const isLive = child === undefined ? isMainLive : live.has(id);
        return { id, folded: fold.result({ isLive, now }), known: child?.known };
      });
      const flaws = [
        ...describeFlaws(mainId, main),
        ...[...children].flatMap(([id, { lines }]) => describeFlaws(id, lines)),
      ];
      return inspectSession(
        {
          id: sessionId,
          title: title ?? "(no prompt)",
          file: files.transcript,
          agents,
          notes: [...notes, ...flaws],
          now,
        },
        options.agentId,
      );
    },
  };
}

/** Children named by results, whose files may stand elsewhere. */
function startedBy(folds: ReadonlyMap<string, AgentFold>, now: number): readonly string[] {
  const { steps } = folds.get(mainId)?.result({ isLive: false, now }) ?? { steps: [] };
  return steps.flatMap((step) =>
    step.type === "call" && step.agentId !== undefined && isAgentId(step.agentId) ? [step.agentId] : [],
  );
}

function describeFlaws(id: string, { broken, isTorn }: LineSource): readonly string[] {
  return [
    ...(broken > 0 ? [`${id}: ${broken} lines of its transcript cannot be read and are left out.`] : []),
    ...(isTorn ? [`${id}: the last line of its transcript was cut off.`] : []),
  ];
}
