import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { EarlierRun } from "../planning/agent-request.ts";
import type { KnownChild } from "./child-meta.ts";
import { type ChildRun, foldChildRun } from "./child-run.ts";
import { loadChildMeta } from "./find-tasks.ts";

interface KnownRun {
  readonly agentType: string;
  readonly model?: ChosenModel;
  readonly earlier?: EarlierRun;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentId?: string;
}

/** What a child was before, by its files; undefined when there is no such child. */
export async function loadEarlierRun(files: {
  readonly transcript: string;
  readonly meta: string;
}): Promise<KnownRun | undefined> {
  const meta = await loadChildMeta(files.meta);
  const lines = await readLines(files.transcript).catch(() => undefined);
  return foldEarlierRun(lines?.values, meta);
}

/** The same from the lines of its transcript, wherever they are kept. */
export function foldEarlierRun(
  lines: readonly JsonRecord[] | undefined,
  meta?: KnownChild,
): KnownRun | undefined {
  const run = lines === undefined ? undefined : foldChildRun(lines);
  const agentType = meta?.agentType ?? run?.last?.agentType;
  if (agentType === undefined) return undefined;
  // The sidecar is written behind the plan and is not synced, so after a power cut it may be missing.
  const model = meta?.model ?? run?.last?.model;
  return {
    agentType,
    model,
    ...(run?.last?.parentId === undefined ? {} : { parentId: run.last.parentId }),
    earlier: run === undefined ? undefined : earlierOf(run),
  };
}

function earlierOf({ first, last, hasStarted, runnerSession }: ChildRun): EarlierRun {
  const { mode, name, callId, isolation, cwd, env, maxTurns, effort, prompt, keptChecks } = last ?? {};
  return {
    tools: first?.tools,
    mode,
    name,
    callId,
    isolation,
    cwd,
    keptEnv: env,
    maxTurns,
    effort,
    keptChecks,
    runnerSession,
    ...(hasStarted || prompt === undefined ? {} : { unbegun: prompt }),
  };
}
