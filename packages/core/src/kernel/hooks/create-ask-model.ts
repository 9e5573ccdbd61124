import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { textOf } from "../../conversation/message.ts";
import type { AskModel } from "../../hooks/hook-runner.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import { runAgentLoop } from "../../loop/run-agent-loop.ts";
import { takeModelTurn } from "../../loop/take-model-turn.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import { createAuthorize } from "../agent/create-authorize.ts";

/** What an `agent` hook looks at the work with: the tools of the session, each call in a context of its own. */
export interface HookTools {
  readonly tools: { readonly tools: readonly Tool[] };
  readonly toolContext: (
    plan: AgentPlan,
    directory: () => string,
  ) => (call: Parameters<LoopPorts["toolContext"]>[1] & { readonly callId: string }) => ToolContext;
}

interface AskFacts {
  readonly plan: AgentPlan;
  /** The model of the agent, or the one that a hook names; each call is paid for by the agent. */
  readonly modelFor: (name: string | undefined) => Promise<Model>;
  readonly directory: () => string;
  readonly now: () => number;
  /** The transcripts that events name; an agent hook may read them. */
  readonly transcripts: readonly string[];
  readonly looking: HookTools;
}

const system = ["You judge one event in the work of a coding agent for the person who set up this check."];

/** Puts a hook's prompt to a model: a `prompt` hook is one question, an `agent` hook may look at files first. */
export function createAskModel(facts: AskFacts): AskModel {
  return async (prompt, { kind, model: named, signal }) => {
    const model = await facts.modelFor(named);
    if (kind === "agent") return answerWithTools(prompt, { facts, model, signal });
    const request = { system, tools: [], messages: [{ role: "user", content: prompt } as const] };
    const turn = takeModelTurn({ model, request, signal, onLost: () => undefined });
    for (let step = await turn.next(); ; step = await turn.next()) {
      if (step.done === true) return textOf(step.value.message);
    }
  };
}

/** The tools that an agent hook has. It changes nothing and starts nothing, whatever the agent around it may do. */
const lookingTools: ReadonlySet<string> = new Set(["Read", "Glob", "Grep"]);

const maxTurns = 50;

/** Hooks do not fire for what a hook does, so that none can call itself. */
async function answerWithTools(
  prompt: string,
  { facts, model, signal }: { readonly facts: AskFacts; readonly model: Model; readonly signal: AbortSignal },
): Promise<string> {
  const { looking, directory, now } = facts;
  const plan = lookingPlan(facts);
  const contextOf = looking.toolContext(plan, directory);
  const ports: LoopPorts = {
    model,
    tools: looking.tools.tools.filter(({ name, effect }) => lookingTools.has(name) && effect === "read"),
    authorize: createAuthorize({ plan, directory }),
    toolContext: (callId, options) => contextOf({ callId, ...options }),
    takeMessages: () => [],
    now,
  };
  const input = {
    system: [
      ...system,
      "Look at what you need with your tools. Your last message is the answer, as JSON alone.",
    ],
    history: [],
    prompt: { role: "user", content: prompt } as const,
    maxTurns,
    lastTurn: true,
    askWhenSilent: true,
  };
  for await (const event of runAgentLoop(input, ports, signal)) {
    if (event.type !== "run-ended") continue;
    const { status, text, error, reason } = event.ending;
    if (status === "completed" || text !== "") return text;
    throw new RetinueError("agent-hook-failed", error ?? `the agent ended without an answer (${reason})`);
  }
  throw new RetinueError("agent-hook-failed", "the agent did not end");
}

/** Deny rules hold and there are no questions; what the agent around it was given or denied as tools says nothing about it. */
function lookingPlan({ plan, transcripts }: AskFacts): AgentPlan {
  const { toolScopes: _scopes, outerModes: _modes, ...policy } = plan.policy;
  const reading = transcripts.flatMap((path) => {
    const read = parseRule(`Read(/${path})`);
    return read.type === "rule" ? [{ rule: read.rule, anchor: plan.directory }] : [];
  });
  return { ...plan, policy: { ...policy, mode: "dontAsk", allow: [...policy.allow, ...reading] } };
}
