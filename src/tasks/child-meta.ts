import { isRecord } from "../foundation/json-record.ts";
import type { ChosenModel } from "../model/select-subagent-model.ts";
import type { ChildPlan } from "../planning/plan-run.ts";

/** What is beside a child's transcript, in the words existing viewers read; enough to take the child up again. */
export interface ChildMeta {
  readonly agentType: string;
  readonly description: string;
  readonly toolUseId?: string;
  readonly spawnDepth: 1;
  readonly name?: string;
  readonly model: string;
  readonly provider?: string;
}

export function metaOf({ task, chosenModel }: Pick<ChildPlan, "task" | "chosenModel">): ChildMeta {
  return {
    agentType: task.agentType,
    description: task.description,
    ...(task.callId === undefined ? {} : { toolUseId: task.callId }),
    spawnDepth: 1,
    ...(task.name === undefined ? {} : { name: task.name }),
    model: chosenModel.id,
    ...(chosenModel.provider === undefined ? {} : { provider: chosenModel.provider }),
  };
}

/** What an existing sidecar says of a child. */
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
  const value = parse(text);
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
