import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { PermissionPolicy } from "@retinue/gate/decide.ts";
import { decideCall } from "@retinue/gate/decide-call.ts";
import { parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import type { ToolUseBlock } from "../../conversation/message.ts";
import type { Price } from "../../conversation/usage.ts";
import { readEarlierPlans } from "../../journal/journaled-plan.ts";
import { lookUpModel } from "../../models/look-up-model.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { SpawnRequest } from "../../planning/agent-request.ts";
import {
  mainAgent,
  type RecordedAgent,
  type RecordedRun,
  type Recording,
  systemOf,
} from "../../replay/recording.ts";
import type { DecisionDifference, ReplayOptions } from "../../replay/replay-recording.ts";
import type { AgentNow } from "../../replay/replay-run.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionOptions } from "../options/runtime-options.ts";
import type { Session } from "../session.ts";

export interface AgentsNow extends Required<Pick<ReplayOptions, "now" | "decisions">>, AsyncDisposable {
  /** What could not be decided again, and is taken as it was recorded, each as one sentence. */
  readonly notes: ReadonlySet<string>;
  /** The rules an agent would have now; undefined where that cannot be decided. */
  policy(agent: RecordedAgent, run: RecordedRun): Promise<PermissionPolicy | undefined>;
}

export interface AgentsNowOptions {
  readonly recording: Recording;
  readonly open: (options: SessionOptions) => Promise<Session>;
  /** What the caller wants to be different. */
  readonly changes?: Pick<SessionOptions, "agent" | "systemPrompt" | "appendSystemPrompt">;
}

interface Decided {
  readonly plan: AgentPlan;
  readonly tools: readonly Tool[];
}

/** Decides the agents of a recording again, by the files and settings there are now. Starts nothing and asks no model. */
export function createAgentsNow({ recording, open, changes = {} }: AgentsNowOptions): AgentsNow {
  const notes = new Set<string>();
  const sessions = new Map<string, Promise<Session>>();
  const decisions = new Map<RecordedRun, Promise<Decided | undefined>>();

  function sessionFor(run: RecordedRun, isMain: boolean): Promise<Session> {
    const asked: SessionOptions = { ...optionsOf(run), ...(isMain ? defined(changes) : {}) };
    const key = JSON.stringify([asked, decidedText(run.plan?.model)]);
    const session = sessions.get(key) ?? open(asked);
    sessions.set(key, session);
    return session;
  }

  async function decideNow(recorded: RecordedAgent, run: RecordedRun): Promise<Decided | undefined> {
    if (run.plan === undefined) return undefined;
    const session = await sessionFor(parentRun(recording, recorded, run), recorded.id === mainAgent);
    if (recorded.id === mainAgent) return { plan: session.plan, tools: await session.toolsOf() };
    const planned = await session.planAgent(requestOf(run.plan));
    if (planned.type === "planned") return { plan: planned.plan, tools: await session.toolsOf(planned.plan) };
    if (isFromFile(run.plan))
      throw new RetinueError(
        "agent-refused",
        `${recorded.name} could not be started with today's files: ${planned.reason}`,
      );
    notes.add(`${recorded.name} is unknown here, so its recorded definition is used: ${planned.reason}`);
    return undefined;
  }

  function decided(agent: RecordedAgent, run: RecordedRun): Promise<Decided | undefined> {
    const known = decisions.get(run) ?? decideNow(agent, run);
    decisions.set(run, known);
    return known;
  }

  return {
    notes,
    policy: async (agent, run) => (await decided(agent, run).catch(unlessRefused))?.plan.policy,
    async now(agent, run) {
      const now = await decided(agent, run).catch(unlessRefused);
      return now === undefined ? { priceOf } : agentNow(recording, run, now);
    },
    async decisions(agent, run) {
      try {
        const now = await decided(agent, run);
        return now === undefined ? [] : await compareDecisions(run, now);
      } catch (error) {
        if (!isRetinueError(error)) throw error;
        return [{ kind: "decision", title: error.message, lines: [], message: run.uuid }];
      }
    },
    async [Symbol.asyncDispose]() {
      const open = await Promise.allSettled(sessions.values());
      for (const session of open) if (session.status === "fulfilled") await session.value.close();
    },
  };
}

/** The options of the session, for one that only plans. */
function optionsOf({ agent, options, plan }: RecordedRun): SessionOptions {
  const { permissionMode, ...given } = options;
  const mode = permissionMode === undefined ? undefined : parsePermissionMode(permissionMode);
  return {
    ...given,
    ...(agent === undefined ? {} : { agent }),
    ...(mode === undefined ? {} : { permissionMode: mode }),
    planOnly: true,
    childrenOnly: true,
    model: substitute(plan),
  };
}

/** An agent that cannot be had now is reported once, as a decision. */
function unlessRefused(error: unknown): undefined {
  if (!isRetinueError(error)) throw error;
  return undefined;
}

/** The run of the main agent whose options and agent a child was started under. */
function parentRun(recording: Recording, agent: RecordedAgent, run: RecordedRun): RecordedRun {
  if (agent.id === mainAgent) return run;
  const task = isRecord(run.plan?.task) ? run.plan.task : {};
  const main = recording.agents.find(({ id }) => id === mainAgent);
  return (
    main?.runs.find((candidate) => startsCall(candidate, task.callId)) ??
    main?.runs[0] ?? { ...run, options: {} }
  );
}

function startsCall({ steps }: RecordedRun, callId: unknown): boolean {
  return steps.some(
    (step) => step.type === "answer" && callsOf(step.answer.message.content).some(({ id }) => id === callId),
  );
}

function callsOf(content: readonly { readonly type: string }[]): readonly ToolUseBlock[] {
  return content.filter((block): block is ToolUseBlock => block.type === "tool_use");
}

function requestOf(plan: JsonRecord): SpawnRequest {
  const [earlier] = readEarlierPlans([{ type: "retinue-plan", plan }]);
  const {
    agentType,
    description = "",
    prompt = "",
    background = false,
    callId,
    name,
    isolation,
  } = earlier ?? {};
  const { maxTurns, effort, mode } = earlier ?? {};
  const isCalls = plan.modeFrom === "the call";
  return {
    description,
    prompt,
    background,
    origin: callId === undefined ? "program" : "model",
    agentType,
    callId,
    name,
    isolation,
    maxTurns,
    effort,
    ...(mode === undefined || !isCalls ? {} : { mode }),
  };
}

function isFromFile({ definition }: JsonRecord): boolean {
  const source = isRecord(definition) && isRecord(definition.source) ? definition.source : {};
  return typeof source.file === "string" || source.scope === "builtin";
}

/** Has the name of the recorded model and is never asked. */
function substitute(plan: JsonRecord | undefined): Model {
  const id = decidedText(plan?.model) ?? "recorded";
  const tools = Array.isArray(plan?.tools) ? plan.tools : [];
  const canSearch = tools.some((tool: unknown) => isRecord(tool) && tool.name === "WebSearch");
  const refuse = () => new RetinueError("no-model", "A replay does not call a model.");
  return {
    facts: { ...lookUpModel(id).facts, id, supportsServerTools: canSearch },
    // biome-ignore lint/correctness/useYield: it never gets that far
    async *stream() {
      throw refuse();
    },
  };
}

function agentNow(recording: Recording, { steps }: RecordedRun, { plan, tools }: Decided): AgentNow {
  const first = steps.find((step) => step.type === "answer")?.request;
  const recorded = first === undefined ? undefined : systemOf(recording, first);
  return {
    system: recorded === undefined ? plan.system : pinned(recorded, plan.system),
    tools,
    effort: plan.effort?.value,
    reminder: plan.reminder,
    maxTurns: plan.maxTurns?.value,
    priceOf,
  };
}

/** What servers cost is not in the catalog, and then the recorded cost is. */
function priceOf(model: string): Price | undefined {
  return lookUpModel(model).facts.price;
}

/** Parts of a prompt that change by themselves: the day and the state of git, the agent's notes, what servers say. */
const changing = ["# Environment\n", "# Your memory\n", "# MCP servers\n"] as const;

/** The prompt of now, with the recorded parts where they change by themselves. */
function pinned(recorded: readonly string[], now: readonly string[]): readonly string[] {
  const kindOf = (part: string): string | undefined => changing.find((heading) => part.startsWith(heading));
  const known = new Map(
    recorded.flatMap((part) => (kindOf(part) === undefined ? [] : [[kindOf(part), part] as const])),
  );
  const parts = now.map((part) => known.get(kindOf(part)) ?? part);
  const instructions = known.get("# MCP servers\n");
  const hasInstructions = parts.some((part) => kindOf(part) === "# MCP servers\n");
  return instructions === undefined || hasInstructions ? parts : [...parts, instructions];
}

/** Decides the recorded calls by the rules of then and of now; hooks and people are not asked. */
async function compareDecisions(
  run: RecordedRun,
  { plan, tools }: Decided,
): Promise<readonly DecisionDifference[]> {
  const { policy: recorded, directory } = run.plan ?? {};
  if (!isRecord(recorded) || typeof directory !== "string") return [];
  // The plan was journaled as JSON, which it survives.
  const then = recorded as unknown as PermissionPolicy;
  const found: DecisionDifference[] = [];
  for (const step of run.steps) {
    if (step.type !== "answer") continue;
    for (const call of callsOf(step.answer.message.content)) {
      const tool = tools.find(({ name }) => name === call.name);
      if (tool === undefined) continue;
      const before = await judge(tool, call, { policy: then, directory });
      const now = await judge(tool, call, { policy: plan.policy, directory });
      if (before.type === now.type) continue;
      const lines = [`- ${before.type}: ${before.reason}`, `+ ${now.type}: ${now.reason}`];
      found.push({ kind: "decision", title: `the call ${describeCall(call)}`, lines, message: step.uuid });
    }
  }
  return found;
}

async function judge(
  tool: Tool,
  { input }: ToolUseBlock,
  { policy, directory }: { readonly policy: PermissionPolicy; readonly directory: string },
) {
  const checked = tool.input?.safeParse(input);
  const read = checked?.success === true ? checked.data : input;
  const paths = tool.pathsOf?.(read, directory, policy.home) ?? [];
  const call = { tool: tool.name, effect: tool.effect, input: read, paths };
  return decideCall(call, policy, { directory, attended: true });
}

const maxInput = 120;

function describeCall({ name, input }: ToolUseBlock): string {
  const text = JSON.stringify(input) ?? "";
  return `${name} ${text.length > maxInput ? `${text.slice(0, maxInput)}…` : text}`;
}

function decidedText(value: unknown): string | undefined {
  return isRecord(value) && typeof value.value === "string" ? value.value : undefined;
}
