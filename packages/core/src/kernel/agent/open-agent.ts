import type { PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { CallRequest, CompactionPort, LoopLimits, LoopPorts, QuotaPort } from "../../loop/loop-ports.ts";
import type { Model, ServerTool } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { OpenAgent, PreparedPrompt } from "../../tasks/run-agent.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { SessionPorts } from "../session-ports.ts";
import {
  type AuthorizeDependencies,
  type AuthorizeWithHooks,
  type BeforeAsk,
  createAuthorize,
  type TurnRights,
} from "./create-authorize.ts";
import { createLiveModel, type LiveModel, type LiveModelOptions } from "./create-live-model.ts";

/** Everything an agent is made of besides its plan. */
export interface AgentParts
  extends Pick<
    AuthorizeDependencies,
    "canUseTool" | "askPerson" | "directory" | "acceptedFiles" | "searchPath"
  > {
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
  /** What the model sees of its tools; absent means all of each. */
  readonly present?: LoopPorts["present"];
  /** Takes down what the model is asked; absent where nothing is recorded. */
  readonly recordRequest?: LoopPorts["recordRequest"] | undefined;
}

/** For what a context says whatever the call is. */
const noCall = { callId: "", signal: new AbortController().signal, progress: () => undefined };

/**
 * An agent as its loop sees it, from its plan and a list of capabilities: main agent, child, forked skill, resumed agent.
 * Each port is folded from what the capabilities add to it; a port that none adds to is absent.
 */
export function openAgent(plan: AgentPlan, parts: AgentParts): OpenAgent {
  const { capabilities } = parts;
  const stop = createStopMark(capabilities);
  const takesQuestions = () => parts.toolContext(noCall).host.ask !== undefined;
  const own = createAuthorize({ ...parts, plan, takesQuestions, ...foldAsking(capabilities) });
  const whole = capabilities.reduce((next, { beforeCall }) => beforeCall?.(next) ?? next, own);
  const authorize = stop.watch(whole);
  const ask = stop.watch(own);
  for (const { attach } of capabilities) attach?.({ authorize, ask });
  const beforeCalls = capabilities.flatMap((capability) => capability.beforeCalls ?? []);
  const afterCall = capabilities.flatMap((capability) => capability.afterCall ?? []);
  const isFinished = capabilities.flatMap((capability) => capability.isFinished ?? []);
  const { serverTools = [] } = parts;
  return {
    plan,
    ports: {
      model: capabilities.reduceRight((model, { model: around }) => around?.(model) ?? model, parts.model),
      tools: toolsOf(capabilities),
      serverTools: serverTools.length === 0 ? undefined : serverTools,
      isOffered: parts.isOffered,
      present: parts.present,
      beforeCalls:
        beforeCalls.length === 0
          ? undefined
          : (calls) => {
              for (const see of beforeCalls) see(calls);
            },
      authorize,
      isStopped: stop.take,
      toolContext: (callId, options) => parts.toolContext({ callId, ...options }),
      takeMessages: () => capabilities.toReversed().flatMap(({ messages }) => messages?.() ?? []),
      afterCall:
        afterCall.length === 0
          ? undefined
          : async (request, outcome, options) => {
              let last = outcome;
              for (const add of afterCall) last = await add(request, last, options);
              return last;
            },
      commit: parts.commit,
      recordRequest: parts.recordRequest,
      async beforeEnd(text, options) {
        for (const { beforeEnd } of capabilities) {
          const message = await beforeEnd?.(text, options);
          if (message !== undefined) return message;
        }
        return undefined;
      },
      verify: capabilities.find(({ verify }) => verify !== undefined)?.verify,
      continueAnswer: capabilities.find(({ continueAnswer }) => continueAnswer !== undefined)?.continueAnswer,
      handsInValue: () => capabilities.some((capability) => capability.handsInValue === true),
      isFinished: isFinished.length === 0 ? undefined : () => isFinished.some((isDone) => isDone()),
      limits: capabilities.find(({ limits }) => limits !== undefined)?.limits,
      quota: capabilities.find(({ quota }) => quota !== undefined)?.quota,
      compaction: parts.compaction,
      concurrency: parts.concurrency,
      now: parts.now,
    },
    async prepare(content, signal) {
      let last = content;
      for (const { prepare } of capabilities) {
        const prepared = (await prepare?.(last, signal)) ?? { type: "ready", content: last };
        if (prepared.type === "blocked") return prepared;
        last = prepared.content;
      }
      return { type: "ready", content: last };
    },
    // In the order of the list.
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
        mode,
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

/**
 * What one part of the runtime adds to an agent: skills, hooks, servers, limits, children. Opening an agent folds a list of
 * these; everything is optional, and the order of the list is the order in which they are asked.
 */
export interface Capability {
  readonly tools?: readonly Tool[];
  /** Around each tool of the agent; the last of the list is closest to the tool. */
  readonly tool?: (tool: Tool) => Tool;
  /** Around the agent's model; the last of the list is closest to the provider. */
  readonly model?: (model: Model) => Model;
  readonly limits?: LoopLimits;
  /** How it continues where a quota comes to an end; the first of the list has it. */
  readonly quota?: QuotaPort;
  /** The policy as it is now, made from that of the plan. */
  readonly policy?: (planned: PermissionPolicy) => PermissionPolicy;
  /** Rules that hold beside those of the plan now. */
  readonly rights?: () => TurnRights;
  /** Sees the calls of one answer together, before the first of them is decided about. */
  readonly beforeCalls?: NonNullable<LoopPorts["beforeCalls"]>;
  /** Around the decision about each call; the last of the list comes first. */
  readonly beforeCall?: (next: AuthorizeWithHooks) => AuthorizeWithHooks;
  /** May answer in place of the person who would be asked. */
  readonly beforeAsk?: BeforeAsk;
  /** Called when a person is about to be asked. */
  readonly onAsk?: (request: CallRequest) => void;
  readonly afterCall?: NonNullable<LoopPorts["afterCall"]>;
  /** Sees a prompt before the model does, and may add to it or refuse it. */
  readonly prepare?: (content: UserMessage["content"], signal: AbortSignal) => Promise<PreparedPrompt>;
  /** Messages that arrived since the last turn; those of the last of the list come first. */
  readonly messages?: () => readonly UserMessage[];
  /** Sees the final text; a message given back makes the agent continue with it. */
  readonly beforeEnd?: NonNullable<LoopPorts["beforeEnd"]>;
  /** Checks the result and keeps its receipt; one of the list has it. */
  readonly verify?: NonNullable<LoopPorts["verify"]>;
  /** Sees an answer without calls, and may make the model continue it; the first of the list decides. */
  readonly continueAnswer?: NonNullable<LoopPorts["continueAnswer"]>;
  /** Whether the run must end after this turn; forgotten once asked. */
  readonly takeStop?: () => boolean;
  /** Whether the result is there, so that no further turn is needed. */
  readonly isFinished?: () => boolean;
  /** It reminds the agent at its end of a value that is due. */
  readonly handsInValue?: true;
  /** Gives it the decision about calls that it makes on the agent's behalf. */
  readonly attach?: (authorization: AgentAuthorization) => void;
  readonly dispose?: (stopped?: AbortSignal) => Promise<void>;
}

/** How calls of one agent are decided about. */
export interface AgentAuthorization {
  /** With hooks, as for a call of the model. */
  readonly authorize: LoopPorts["authorize"];
  /** Rules and people only. */
  readonly ask: AuthorizeWithHooks;
}

/** What of it reaches every agent of the session: a child is decided about by the same policy. */
export function livePolicyCapability({ policy }: SessionPorts): Capability {
  return policy === undefined ? {} : { policy };
}

/** What goes around the models of an agent besides what the host changes. */
export interface LiveModels {
  readonly find: (name: string) => Promise<Model>;
  readonly fallbacks: readonly string[];
}

/** What of it goes around the model of a child, which keeps its own model and effort. */
export function liveChildCapability({ toolAliases }: SessionPorts, models: LiveModels): Capability {
  if (models.fallbacks.length === 0 && toolAliases === undefined) return {};
  return liveModelCapability({ toolAliases, ...models });
}

/** What of it reaches the main agent alone. */
export function liveMainCapability(live: SessionPorts, models: LiveModels): Capability {
  const { model, effort, toolAliases, takeStop, continueAnswer } = live;
  return { ...liveModelCapability({ model, effort, toolAliases, ...models }), continueAnswer, takeStop };
}

/** With each prompt the chosen model is asked again. */
function liveModelCapability(options: LiveModelOptions): Capability {
  let live: LiveModel | undefined;
  return {
    model(planned) {
      live = createLiveModel(planned, options);
      return live;
    },
    async prepare(content) {
      live?.restart();
      return { type: "ready", content };
    },
  };
}
