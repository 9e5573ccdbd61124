import { randomUUID } from "node:crypto";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { addTotals, type RunEnding } from "@retinue/core/conversation/run-event.ts";
import { stoppedEnding } from "@retinue/core/kernel/run-handle.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { PlannedStep, StepsElsewhere } from "@retinue/core/kernel/workflows/steps-elsewhere.ts";
import type { LiveWorkflow } from "@retinue/core/kernel/workflows/workflow-runs.ts";
import {
  progressList,
  type WorkflowRunState,
  workflowTotals,
} from "@retinue/core/protocol/workflow-state.ts";
import type { StepShape } from "@retinue/core/workflows/content-key.ts";
import type { AgentContext, ProgramOutcome } from "../agent-program.ts";
import { agentLog, readAgentState, toAgentRecord } from "../agent-records.ts";
import type { JsonValue, LogEntry, Store } from "../store.ts";
import { type WorkspacePlan, workspaceNeeds } from "../workspace/workspace-plan.ts";
import { planNeeds } from "./plan-needs.ts";
import {
  type PlannedChild,
  readTravellingPlan,
  type TravellingWorkflow,
  workflowFormat,
} from "./session-plan.ts";
import { readSessionMessage, type SessionMessage } from "./session-progress.ts";
import { parkedForChildren, runEndingOf } from "./session-work.ts";

interface StoreWorkflow {
  readonly workflow: TravellingWorkflow;
  readonly workspace: WorkspacePlan;
  /** Plans the steps. */
  readonly session: Session;
  readonly store: Store;
  readonly context: AgentContext;
}

/**
 * One activation of a workflow: its script begins anew, gets what its steps came to from the log, starts those that are new as agents
 * of the store, and rests as soon as it only waits for them. So it survives every process that it was in.
 */
export async function runStoreWorkflow(run: StoreWorkflow): Promise<ProgramOutcome> {
  const { workflow, session, store, context } = run;
  const { script, args, continues } = workflow;
  const { workflows } = session;
  if (workflows === undefined)
    return failedWorkflow("Workflows are disabled on the worker that took this one.");
  const known = readSteps(await context.readHistory());
  const earlier = await readEarlier(store, continues);
  const waiting: Waiting = new Map();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const elsewhere = openElsewhere(run, { known, earlier, waiting, broke: broken.reject });
  let changes = 0;
  const forget = workflows.runs.onEvent(() => {
    changes += 1;
  });
  let live: LiveWorkflow;
  try {
    live = await workflows.start({ script, args, elsewhere });
  } catch (error) {
    if (isRetinueError(error) && finalCodes.has(error.code)) return failedWorkflow(error.message);
    throw error;
  }
  try {
    while (true) {
      const seen = changes;
      const ended = await Promise.race([restOrEnd(live, context), broken.promise]);
      context.signal.throwIfAborted();
      if (ended !== undefined) return await conclude(ended, { context, known });
      if (context.draining.aborted) return { type: "yielded" };
      const messages = (await context.receive()).map(({ body }) => readSessionMessage(body));
      for (const message of messages) takeEnd(message, { known, waiting });
      const isResting = seen === changes && messages.length === 0 && waiting.size > 0;
      const running = live.state().steps.filter(({ state }) => state === "running").length;
      if (!isResting || running > waiting.size) continue;
      publish(context, live.state());
      return parkedForChildren([...waiting.keys()].map((id) => `${context.agent}/${id}`));
    }
  } finally {
    forget();
    await live.stop();
  }
}

/** What no worker can change about a script. */
const finalCodes: ReadonlySet<string> = new Set([
  "workflow-broken",
  "workflow-refused",
  "not-portable",
  "invalid-workflow",
]);

/** Ends of steps that come within this time are taken without another activation. */
const restMs = 250;

async function restOrEnd(
  live: LiveWorkflow,
  { signal, draining }: AgentContext,
): Promise<WorkflowRunState | undefined> {
  const stop = AbortSignal.any([signal, draining]);
  const rest = Promise.withResolvers<undefined>();
  const end = (): void => rest.resolve(undefined);
  const timer = setTimeout(end, restMs);
  stop.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([live.ended, rest.promise]);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", end);
  }
}

/** The waiters for the end of a step, by the id of its agent. */
type Waiting = Map<string, (ending: RunEnding) => void>;

/** What a log has of the steps of a run, by the ids of their agents. */
interface KnownSteps {
  readonly ends: Map<string, RunEnding>;
  readonly shapes: Map<string, StepShape>;
}

function noSteps(): KnownSteps {
  return { ends: new Map(), shapes: new Map() };
}

/** The steps of the run that this one continues, and of those that that one continued; the newest counts. */
async function readEarlier({ log }: Store, continues: string | undefined): Promise<KnownSteps> {
  const all = noSteps();
  const seen = new Set<string>();
  for (let next = continues; next !== undefined && !seen.has(next); ) {
    seen.add(next);
    const history = await log.read(agentLog(next));
    for (const [id, ending] of readSteps(history).ends)
      if (all.ends.get(id)?.status !== "completed") all.ends.set(id, ending);
    const { plan } = readAgentState(history);
    const travelling = plan === undefined ? undefined : readTravellingPlan(plan);
    next = travelling?.type === "session" ? travelling.workflow?.continues : undefined;
  }
  return all;
}

function readSteps(history: readonly LogEntry[]): KnownSteps {
  const known = noSteps();
  for (const { record: value } of history) {
    const record = toAgentRecord(value);
    if (record?.type === "received") takeEnd(readSessionMessage(record.message.body), { known });
    if (record?.type === "entry") takeShape(record.entry, known);
  }
  return known;
}

function takeEnd(
  ended: SessionMessage | undefined,
  { known, waiting }: { readonly known: KnownSteps; readonly waiting?: Waiting },
): void {
  if (ended?.type !== "child-ended") return;
  const id = ended.agent.slice(ended.agent.lastIndexOf("/") + 1);
  const ending = runEndingOf(ended);
  known.ends.set(id, ending);
  waiting?.get(id)?.(ending);
  waiting?.delete(id);
}

function takeShape(entry: JsonValue, { shapes }: KnownSteps): void {
  if (!isRecord(entry) || entry["type"] !== "step-shape" || typeof entry["options"] !== "string") return;
  // Written by `keep` below.
  if (!shapes.has(entry["options"])) shapes.set(entry["options"], entry["shape"] as unknown as StepShape);
}

function openElsewhere(
  { workflow, workspace, context }: StoreWorkflow,
  {
    known,
    earlier,
    waiting,
    broke,
  }: {
    readonly known: KnownSteps;
    readonly earlier: KnownSteps;
    readonly waiting: Waiting;
    /** The log cannot be written, or is another worker's by now. */
    readonly broke: (error: unknown) => void;
  },
): StepsElsewhere {
  /** An error of the store is none of the script: the activation ends with it. */
  async function inStore(write: () => Promise<unknown>): Promise<void> {
    try {
      await write();
    } catch (error) {
      broke(error);
      throw error;
    }
  }
  return {
    runId: workflow.runId,
    ended(agentId) {
      const before = earlier.ends.get(agentId);
      return known.ends.get(agentId) ?? (before?.status === "completed" ? before : undefined);
    },
    async run({ plan, output }: PlannedStep, signal) {
      const { id } = plan.agent;
      const planned: PlannedChild = {
        type: "plan",
        sessionId: randomUUID(),
        plan,
        output,
        workspace,
      };
      const end = Promise.withResolvers<RunEnding>();
      waiting.set(id, end.resolve);
      await inStore(() =>
        context.startChild({
          agent: `${context.agent}/${id}`,
          // A plan is made of plain data.
          plan: JSON.parse(JSON.stringify(planned)) as JsonValue,
          needs: [...planNeeds(plan), ...workspaceNeeds(workspace), workflowFormat],
        }),
      );
      return abortable(end.promise, signal);
    },
    shapes: {
      find: (options) => known.shapes.get(options),
      async keep(options, shape) {
        if (known.shapes.has(options)) return;
        known.shapes.set(options, shape);
        const written = JSON.parse(JSON.stringify(shape)) as JsonValue;
        await inStore(() => context.record([{ type: "step-shape", options, shape: written }]));
      },
    },
  };
}

async function conclude(
  state: WorkflowRunState,
  { context, known }: { readonly context: AgentContext; readonly known: KnownSteps },
): Promise<ProgramOutcome> {
  publish(context, state);
  const { logs, failures, errorLine } = state;
  const shown = { logs, failures, errorLine };
  const run = JSON.parse(JSON.stringify({ ...shown, progress: progressList(state) })) as JsonValue;
  await context.record([{ type: "workflow-run", run }]);
  const none = stoppedEnding("workflow-returned");
  const totals = [...known.ends.values()].reduce((sum, ending) => addTotals(sum, ending.totals), none.totals);
  if (state.status === "completed") {
    const output = state.result === undefined ? {} : { output: JSON.parse(state.result) as unknown };
    return ended({ ...none, totals, status: "completed", text: state.result ?? "", ...output });
  }
  const error = state.error ?? "The workflow was stopped.";
  return ended({ ...none, totals, status: "failed", reason: "workflow-failed", error });
}

/** What no worker can carry out. */
export function failedWorkflow(error: string): ProgramOutcome {
  return ended({ ...stoppedEnding("workflow-failed"), status: "failed", error });
}

function ended(ending: RunEnding): ProgramOutcome {
  return {
    type: "ended",
    ending: {
      status: ending.status === "completed" ? "completed" : "failed",
      result: JSON.parse(JSON.stringify(ending)) as JsonValue,
    },
  };
}

/** Shows watchers how far the run has come. */
function publish({ publish: send }: AgentContext, state: WorkflowRunState): void {
  const { agents, done } = workflowTotals(state);
  const count = state.steps.filter((step) => step.state === "failed").length;
  send({ type: "workflow-progressed", agents, done, failed: count });
}

/** What a log has of a run that has ended. */
export function readStoreRun(history: readonly LogEntry[]): JsonValue | undefined {
  const entries = history.flatMap(({ record: value }) => {
    const record = toAgentRecord(value);
    return record?.type === "entry" ? [record.entry] : [];
  });
  const last = entries.findLast((entry) => isRecord(entry) && entry["type"] === "workflow-run");
  return isRecord(last) ? (last["run"] as JsonValue) : undefined;
}
