// @io
import { readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { type ChildPlan, levelOf } from "../planning/agent-plan.ts";

/** What is beside a child's transcript, in the words existing viewers read; enough to take the child up again. */
interface ChildMeta {
  readonly agentType: string;
  readonly description: string;
  readonly toolUseId?: string;
  readonly spawnDepth: number;
  readonly workflowPhase?: string;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentAgentId?: string;
  readonly name?: string;
  readonly model: string;
  readonly provider?: string;
}

export function childMeta({ task, chosenModel }: Pick<ChildPlan, "task" | "chosenModel">): ChildMeta {
  return {
    agentType: task.agentType,
    description: task.description,
    toolUseId: task.callId,
    spawnDepth: levelOf({ task }),
    ...(task.ancestors === undefined ? {} : { parentAgentId: task.parentId }),
    name: task.name,
    workflowPhase: task.workflow?.phase,
    model: chosenModel.id,
    provider: chosenModel.provider,
  };
}

/** What an existing sidecar has about a child. */
export interface KnownChild {
  readonly agentType: string;
  readonly description?: string;
  readonly name?: string;
  readonly model?: ChosenModel;
  /** The call that asked for it. */
  readonly toolUseId?: string;
  /** Absent for a child of the main agent. */
  readonly parentAgentId?: string;
}

/** What a sidecar says, however it was written; undefined when it names no agent type. */
export function readChildMeta(text: string): KnownChild | undefined {
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const { agentType, description, name, model, provider, toolUseId, parentAgentId } = value;
  if (typeof agentType !== "string") return undefined;
  return {
    agentType,
    ...(typeof description === "string" ? { description } : {}),
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof toolUseId === "string" ? { toolUseId } : {}),
    ...(typeof parentAgentId === "string" ? { parentAgentId } : {}),
    ...(typeof model === "string"
      ? { model: typeof provider === "string" ? { id: model, provider } : { id: model } }
      : {}),
  };
}

/** What is beside a child's transcript; undefined when there is no such child. */
export async function loadChildMeta(file: string): Promise<KnownChild | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? undefined : readChildMeta(text);
}

/** Where other processes see that a child waits for a place; the number orders those of one session. */
export function queueMarkFile(transcript: string): string {
  return transcript.replace(/\.jsonl$/, ".queued");
}

interface QueueMark {
  enterQueue(): void;
  leaveQueue(): void;
}

/** The mark is for people who look; a disk that takes none does not keep the child from its place. */
export function openQueueMark(file: string, nextNumber: () => number): QueueMark {
  let isSet = false;
  return {
    enterQueue() {
      try {
        writeFileSync(file, `${nextNumber()}\n`, { mode: 0o600 });
        isSet = true;
      } catch {
        isSet = false;
      }
    },
    leaveQueue() {
      if (isSet) removeIfPossible(file);
      isSet = false;
    },
  };
}

/** The number of a child that waits; undefined for one that does not. */
export function loadQueueNumber(file: string): number | undefined {
  try {
    const number = Number(readFileSync(file, "utf8").trim());
    return Number.isSafeInteger(number) && number > 0 ? number : undefined;
  } catch {
    return undefined;
  }
}
