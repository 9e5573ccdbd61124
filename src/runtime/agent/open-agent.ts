import type { CompactionPort, LoopPorts } from "../../loop/loop-ports.ts";
import type { Model, ServerTool } from "../../model/model.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { Capability } from "./capability.ts";
import { type AuthorizeDependencies, type AuthorizeWithHooks, createAuthorize } from "./create-authorize.ts";

/** Everything an agent is made of besides its plan. */
export interface AgentParts extends Pick<AuthorizeDependencies, "canUseTool" | "askPerson" | "directory"> {
  readonly model: Model;
  readonly capabilities: readonly Capability[];
  /** Tools that the provider runs itself. */
  readonly serverTools?: readonly ServerTool[];
  readonly toolContext: (
    call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
  ) => ToolContext;
  readonly now: () => number;
  /** Absent: the conversation is never compacted. */
  readonly compaction?: CompactionPort | undefined;
  /** How many calls run together. */
  readonly concurrency?: number | undefined;
  /** Resolves when what was recorded so far would survive a power cut. */
  readonly commit?: (() => Promise<void>) | undefined;
  /** Whether a tool is still there at the next turn; absent means it is. */
  readonly isOffered?: LoopPorts["isOffered"];
  /** Takes down what the model is asked; absent where nothing is recorded. */
  readonly recordRequest?: LoopPorts["recordRequest"] | undefined;
}

export interface OpenAgent {
  readonly plan: RunPlan;
  readonly ports: LoopPorts;
  readonly prepare: NonNullable<Capability["prepare"]>;
  /** Ends what its capabilities hold, in the order of the list. */
  readonly end: (stopped?: AbortSignal) => Promise<void>;
}

/** An agent as its loop sees it, from its plan and a list of capabilities: main agent, child, forked skill, resumed agent. */
export function openAgent(plan: RunPlan, parts: AgentParts): OpenAgent {
  const { capabilities } = parts;
  const stop = createStopMark(capabilities);
  const own = createAuthorize({ ...parts, plan, ...foldAsking(capabilities) });
  const whole = capabilities.reduce((next, { beforeCall }) => beforeCall?.(next) ?? next, own);
  const authorize = stop.watch(whole);
  const ask = stop.watch(own);
  for (const { attach } of capabilities) attach?.({ authorize, ask });
  const finishing = capabilities.flatMap(({ isFinished }) => isFinished ?? []);
  const limits = capabilities.find((capability) => capability.limits !== undefined)?.limits;
  const { serverTools = [], isOffered, commit, compaction, concurrency, recordRequest } = parts;
  return {
    plan,
    ports: {
      model: capabilities.reduceRight((model, { model: around }) => around?.(model) ?? model, parts.model),
      tools: toolsOf(capabilities),
      ...(serverTools.length === 0 ? {} : { serverTools }),
      ...(isOffered === undefined ? {} : { isOffered }),
      authorize,
      isStopped: stop.take,
      toolContext: (callId, options) => parts.toolContext({ callId, ...options }),
      takeMessages: () => capabilities.toReversed().flatMap(({ messages }) => messages?.() ?? []),
      ...foldAfterCall(capabilities),
      ...(commit === undefined ? {} : { commit }),
      ...(recordRequest === undefined ? {} : { recordRequest }),
      beforeEnd: foldBeforeEnd(capabilities),
      ...(finishing.length === 0 ? {} : { isFinished: () => finishing.some((isFinished) => isFinished()) }),
      ...(limits === undefined ? {} : { limits }),
      ...(compaction === undefined ? {} : { compaction }),
      ...(concurrency === undefined ? {} : { concurrency }),
      now: parts.now,
    },
    prepare: foldPrepare(capabilities),
    async end(stopped) {
      for (const { dispose } of capabilities) await dispose?.(stopped);
    },
  };
}

/** Every tool of an agent, as its model sees them. */
export function toolsOf(capabilities: readonly Capability[]): readonly Tool[] {
  const tools = capabilities.flatMap((capability) => capability.tools ?? []);
  const around = capabilities.flatMap(({ tool }) => tool ?? []);
  return around.length === 0
    ? tools
    : tools.map((tool) => around.reduceRight((inner, wrap) => wrap(inner), tool));
}

/** What changes how rules and people decide: another policy, added rules, and answers in place of a person. */
function foldAsking(
  capabilities: readonly Capability[],
): Pick<AuthorizeDependencies, "beforeAsk" | "onAsk" | "rights" | "livePolicy"> {
  const answering = capabilities.flatMap(({ beforeAsk }) => beforeAsk ?? []);
  return {
    livePolicy: (planned) => capabilities.reduce((last, { policy }) => policy?.(last) ?? last, planned),
    rights() {
      const rights = capabilities.flatMap((capability) => capability.rights?.() ?? []);
      const mode = rights.findLast((one) => one.mode !== undefined)?.mode;
      return {
        allow: rights.flatMap(({ allow }) => allow),
        deny: rights.flatMap(({ deny }) => deny),
        ...(mode === undefined ? {} : { mode }),
      };
    },
    onAsk(request) {
      for (const { onAsk } of capabilities) onAsk?.(request);
    },
    ...(answering.length === 0
      ? {}
      : {
          async beforeAsk(request, options) {
            for (const beforeAsk of answering) {
              const answer = await beforeAsk(request, options);
              if (answer !== undefined) return answer;
            }
            return undefined;
          },
        }),
  };
}

function foldAfterCall(capabilities: readonly Capability[]): Pick<LoopPorts, "afterCall"> {
  const hearing = capabilities.flatMap(({ afterCall }) => afterCall ?? []);
  if (hearing.length === 0) return {};
  return {
    async afterCall(request, outcome, options) {
      let last = outcome;
      for (const afterCall of hearing) last = await afterCall(request, last, options);
      return last;
    },
  };
}

function foldBeforeEnd(capabilities: readonly Capability[]): NonNullable<LoopPorts["beforeEnd"]> {
  return async (text, options) => {
    for (const { beforeEnd } of capabilities) {
      const message = await beforeEnd?.(text, options);
      if (message !== undefined) return message;
    }
    return undefined;
  };
}

function foldPrepare(capabilities: readonly Capability[]): OpenAgent["prepare"] {
  return async (content, signal) => {
    let last = content;
    for (const { prepare } of capabilities) {
      const prepared = (await prepare?.(last, signal)) ?? { type: "ready", content: last };
      if (prepared.type === "blocked") return prepared;
      last = prepared.content;
    }
    return { type: "ready", content: last };
  };
}

/** Remembers that a person or a hook wants the run to end, until the loop has asked: the next prompt starts anew. */
function createStopMark(capabilities: readonly Capability[]) {
  let isWanted = false;
  return {
    watch:
      (authorize: AuthorizeWithHooks): AuthorizeWithHooks =>
      async (request, options) => {
        const authorization = await authorize(request, options);
        isWanted ||= authorization.type === "denied" && authorization.stops === true;
        return authorization;
      },
    take(): boolean {
      const taken = capabilities.map(({ takeStop }) => takeStop?.() === true);
      const wanted = isWanted || taken.includes(true);
      isWanted = false;
      return wanted;
    },
  };
}
