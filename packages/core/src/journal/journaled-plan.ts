import { createHash } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { GrantedTool } from "@retinue/config/tools/tool-grants.ts";
import { type PermissionMode, parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import type { AgentPlan, ChildPlan, PlannedCheck } from "../planning/agent-plan.ts";

/**
 * A plan as it is kept: the prompt's texts only by length and hash, because they are long and made anew each time, and of
 * the definition only where it is, because its server configurations may hold secrets.
 */
export type JournaledPlan = Omit<AgentPlan | ChildPlan, "system" | "definition"> & {
  readonly system: readonly { readonly length: number; readonly sha256: string }[];
  readonly definition?: Pick<ChildPlan["definition"], "name" | "source">;
};

export function journalPlan(plan: AgentPlan | ChildPlan): JournaledPlan {
  const { definition, ...rest } = { definition: undefined, ...plan };
  return {
    ...rest,
    ...(definition === undefined ? {} : { definition: { name: definition.name, source: definition.source } }),
    system: plan.system.map((text) => ({
      length: text.length,
      sha256: createHash("sha256").update(text).digest("hex"),
    })),
  };
}

/** The parts of a plan in a transcript that matter for continuing the run. */
export interface EarlierPlan {
  readonly agentType?: string;
  readonly description?: string;
  readonly prompt?: string;
  readonly background: boolean;
  /** The subagent that started it; absent for a child of the main agent. */
  readonly parentId?: string;
  /** Its level below the main agent; absent for a child of the main agent. */
  readonly depth?: number;
  readonly callId?: string;
  readonly name?: string;
  readonly isolation?: "worktree";
  /** The folder and the variables that the call named. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Only where it was not simply the parent's. */
  readonly mode?: PermissionMode;
  readonly tools?: readonly GrantedTool[];
  readonly maxTurns?: number;
  readonly effort?: string | number;
  readonly model?: ChosenModel;
  /** The checks that the call named. */
  readonly keptChecks?: readonly PlannedCheck[];
}

/** The plans of a child's runs, oldest first. Total: what cannot be read is left out. */
export function readEarlierPlans(records: readonly JsonRecord[]): readonly EarlierPlan[] {
  return records.flatMap(({ type, plan }) =>
    type === "retinue-plan" && isRecord(plan) ? [readPlan(plan)] : [],
  );
}

function readPlan(plan: JsonRecord): EarlierPlan {
  const { tools, maxTurns, effort } = plan;
  const task = isRecord(plan.task) ? plan.task : {};
  const mode = ownMode(plan);
  const granted = Array.isArray(tools) ? readTools(tools) : undefined;
  const turns = fromCall(maxTurns);
  const own = fromCall(effort);
  const cwd = fromCall(plan.cwd);
  return {
    ...textFields(task, ["agentType", "description", "prompt", "callId", "name"]),
    background: task.background === true,
    ...(Array.isArray(task.ancestors) && task.ancestors.length > 0
      ? { ...textFields(task, ["parentId"]), depth: task.ancestors.length + 1 }
      : {}),
    ...(task.isolation === "worktree" ? { isolation: "worktree" } : {}),
    ...(mode === undefined ? {} : { mode }),
    ...(granted === undefined ? {} : { tools: granted }),
    ...(typeof turns === "number" ? { maxTurns: turns } : {}),
    ...(typeof own === "number" || typeof own === "string" ? { effort: own } : {}),
    ...(typeof cwd === "string" ? { cwd } : {}),
    ...readEnv(plan.env),
    ...readModel(plan.chosenModel),
    ...readChecks(plan.verify),
  };
}

function readEnv(value: unknown): Pick<EarlierPlan, "env"> {
  const entries = Object.entries(isRecord(value) ? value : {}).flatMap(
    ([name, entry]): [string, string][] => {
      const text = fromCall(entry);
      return typeof text === "string" ? [[name, text]] : [];
    },
  );
  return entries.length === 0 ? {} : { env: Object.fromEntries(entries) };
}

function readModel(value: unknown): Pick<EarlierPlan, "model"> {
  if (!isRecord(value) || typeof value.id !== "string") return {};
  const { id, provider } = value;
  return { model: typeof provider === "string" ? { id, provider } : { id } };
}

/** Only those of the call: settings and definition are read again. */
function readChecks(value: unknown): Pick<EarlierPlan, "keptChecks"> {
  const all = isRecord(value) && Array.isArray(value.checks) ? value.checks.filter(isRecord) : [];
  const keptChecks = all.flatMap(({ run, timeoutSeconds, from, ofModel }): PlannedCheck[] => {
    if (typeof run !== "string" || from !== "the call") return [];
    return [
      {
        run,
        from,
        ...(typeof timeoutSeconds === "number" ? { timeoutSeconds } : {}),
        ...(ofModel === true ? { ofModel } : {}),
      },
    ];
  });
  return keptChecks.length === 0 ? {} : { keptChecks };
}

function ownMode({ policy, modeFrom }: JsonRecord): PermissionMode | undefined {
  if (modeFrom === "the parent" || !isRecord(policy) || typeof policy.mode !== "string") return undefined;
  return parsePermissionMode(policy.mode);
}

/** What is in the definition is read from the definition again. */
function fromCall(decided: unknown): unknown {
  return isRecord(decided) && decided.from === "the call" ? decided.value : undefined;
}

function readTools(tools: readonly unknown[]): readonly GrantedTool[] {
  return tools.flatMap((tool): GrantedTool[] => {
    if (!isRecord(tool) || typeof tool.name !== "string") return [];
    const allowOnly = textsIn(tool.allowOnly);
    const deny = textsIn(tool.deny);
    return [
      {
        name: tool.name,
        allowOnly,
        deny,
        ...(tool.confinedTo === "memory" ? { confinedTo: "memory" } : {}),
        ...(tool.alsoIn === "memory" ? { alsoIn: "memory" } : {}),
      },
    ];
  });
}

function textsIn(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((text): text is string => typeof text === "string") : undefined;
}

function textFields<Name extends string>(
  record: JsonRecord,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const found = names.filter((name) => typeof record[name] === "string").map((name) => [name, record[name]]);
  // The keys are the asked ones and the values texts, as just checked.
  return Object.fromEntries(found) as Partial<Record<Name, string>>;
}
