import type { AgentDefinition } from "../agent-definition.ts";
import { bash } from "./bash.ts";
import { createClaudeCodeGuide, type GuideFacts } from "./create-claude-code-guide.ts";
import { explore } from "./explore.ts";
import { generalPurpose } from "./general-purpose.ts";
import { plan } from "./plan.ts";
import { statuslineSetup } from "./statusline-setup.ts";

export interface BuiltinAgentsOptions {
  /** The value of CLAUDE_CODE_ENTRYPOINT. */
  readonly entrypoint?: string | undefined;
  /** CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS, where it applies. */
  readonly disableBuiltins?: boolean;
  /** CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS. */
  readonly disableExplorePlan?: boolean;
  readonly guide?: GuideFacts;
}

/** A program that embeds the runtime has no user at a terminal who would ask about it. */
const entrypointsWithoutGuide: readonly string[] = ["sdk-ts", "sdk-py", "sdk-cli"];

/** The agents that are there without any file, always in the same order. */
export function builtinAgents(options: BuiltinAgentsOptions = {}): AgentDefinition[] {
  if (options.disableBuiltins === true) return [];
  const withGuide = !entrypointsWithoutGuide.includes(options.entrypoint ?? "");
  return [
    generalPurpose,
    ...(options.disableExplorePlan === true ? [] : [explore, plan]),
    bash,
    statuslineSetup,
    ...(withGuide ? [createClaudeCodeGuide(options.guide ?? noFacts)] : []),
  ];
}

const noFacts: GuideFacts = { agents: [], skills: [], mcpServers: [] };
