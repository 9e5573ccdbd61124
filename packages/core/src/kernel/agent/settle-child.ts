// @io
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { type AppendLog, openAppendLog } from "@retinue/base/storage/append-log.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import type { RunEnding } from "../../conversation/run-event.ts";
import { loadSession } from "../../journal/session-choices.ts";
import type { TranscriptFacts } from "../../journal/transcript-facts.ts";
import { sumTranscriptUsage } from "../../journal/transcript-usage.ts";
import { createTranscriptWriter, type IdSource } from "../../journal/transcript-writer.ts";
import type { PlannedDefinition } from "../../planning/agent-plan.ts";
import { interruptedReason } from "../../protocol/agent-state.ts";
import { queueMarkFile } from "../../tasks/child-meta.ts";
import { foldChildRun, loadEarlierRun } from "../../tasks/child-run.ts";
import { foldTranscript } from "../../tasks/transcript-task.ts";
import { openSessionHooks } from "../hooks/session-hooks.ts";
import type { ChildSession } from "./child-session.ts";

/** How long hooks may take over the stop of a child whose process died. */
const hookLimitMs = 60_000;

/** Settles how the last run of a child ended whose process died: its stop hooks run once. */
export async function settleChild(
  agentId: string,
  {
    services,
    loadRegistry,
    parent: { plan, model },
    takeOver,
  }: Pick<ChildSession, "services" | "loadRegistry" | "parent" | "takeOver">,
  {
    definition,
    signal,
  }: {
    /** Its definition, where that was found already. */
    readonly definition?: PlannedDefinition;
    /** Cuts hooks short. */
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const { runtime } = services;
  if (!runtime.keepsTranscripts) return;
  const files = services.files.agent(agentId);
  const known = await loadEarlierRun(files);
  if (known === undefined) return;
  const { agentType } = known;
  const find = async (): Promise<PlannedDefinition | undefined> => {
    const found = (await loadRegistry()).discovered.registry.find(agentType);
    return found.type === "found" ? found.agent.definition : undefined;
  };
  const hooks = await openSessionHooks({
    runtime,
    looking: services,
    plan: { ...plan, agent: { id: agentId, name: agentType } },
    model,
    definition: definition ?? (await find()),
    source: "resume",
    directory: () => plan.directory,
    child: { agentId, agentType, transcript: files.transcript, isOver: true },
  });
  try {
    await writeRecovery({
      file: files.transcript,
      durability: runtime.durability,
      takeOver,
      ids: runtime.ids,
      now: runtime.epochMs,
      facts: {
        sessionId: plan.sessionId,
        agentId,
        cwd: plan.directory,
        version,
        entrypoint: runtime.entrypoint,
      },
      ...(hooks === undefined
        ? {}
        : {
            async reportStop(text) {
              const limit = AbortSignal.timeout(hookLimitMs);
              await hooks.beforeEnd(text, {
                signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
              });
            },
          }),
    });
  } finally {
    await hooks?.end();
  }
}

interface RecoveryOptions {
  readonly file: string;
  readonly ids: IdSource;
  readonly now: () => number;
  readonly facts: TranscriptFacts;
  readonly durability?: Durability;
  /** Takes the file also from a process that holds it. */
  readonly takeOver?: boolean;
  /** Notifies hooks that the child has stopped; absent where there are no hooks. */
  readonly reportStop?: (lastText: string) => Promise<void>;
}

/**
 * Settles how a child whose process died has ended: hooks are notified of its stop once, and its transcript shows it. The process that holds
 * the file does it; a child that another process has or another program wrote, or that has ended well, is left alone.
 */
export async function writeRecovery(options: RecoveryOptions): Promise<"settled" | "left"> {
  const { file, ids, now, facts } = options;
  const loaded = await loadSession(file, { sidechain: true });
  const log = openUnlessInUse(file, loaded.length, options);
  if (log === undefined) return "left";
  try {
    const { records, leaf } = loaded;
    const { isStopOwed, lastText, last: plan } = foldChildRun(records);
    if (plan === undefined) return "left";
    const isOpen = foldTranscript(records).state === undefined;
    const writer = createTranscriptWriter({ log, ids, now, facts, leaf });
    if (isStopOwed && options.reportStop !== undefined) {
      // Written first: after a second crash hooks must not be notified twice.
      await writer.reported("SubagentStop");
      await options.reportStop(lastText);
    }
    if (isOpen) writer.record({ type: "run-ended", ending: interruptedEnding(records, lastText) });
    // What the process that died had beside the transcript; only the process that holds the transcript writes these.
    removeIfPossible(queueMarkFile(file));
    const begin = basename(file).replace(/\.jsonl$/, ".meta.json.");
    for (const name of readdirSync(dirname(file)))
      if (name.startsWith(begin) && name.endsWith(".tmp")) removeIfPossible(join(dirname(file), name));
    await log.sync();
    return isOpen || isStopOwed ? "settled" : "left";
  } finally {
    log.close();
  }
}

function openUnlessInUse(
  file: string,
  expectLength: number,
  { durability = "os", takeOver = false }: RecoveryOptions,
): AppendLog | undefined {
  try {
    return openAppendLog(file, { expectLength, durability, takeOver });
  } catch (error) {
    if (isRetinueError(error) && (error.code === "file-in-use" || error.code === "file-changed"))
      return undefined;
    throw error;
  }
}

/** What the run that was cut off took, as far as it was written down. */
function interruptedEnding(records: readonly JsonRecord[], text: string): RunEnding {
  const begin = records.findLastIndex(({ type }) => type === "retinue-plan");
  const own = records.slice(Math.max(begin, 0));
  const { startedAt = 0, lastSignAt = startedAt } = foldTranscript(own);
  const { usage, answers, toolUses, costUsd: cost } = sumTranscriptUsage(own);
  return {
    status: "stopped",
    reason: interruptedReason,
    text,
    denials: [],
    totals: {
      usage,
      turns: answers,
      toolUses,
      durationMs: lastSignAt - startedAt,
      modelMs: 0,
      costUsd: cost,
    },
  };
}
