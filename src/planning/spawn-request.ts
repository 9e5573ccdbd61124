import type { AgentLimits } from "../definitions/agent-limits.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { PolicyRule } from "../permissions/permission-policy.ts";
import type { TeamMembership } from "./team-membership.ts";

/** What a skill brings along that runs in an agent of its own. */
export interface SkillOfSpawn {
  readonly name: string;
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  readonly hooks: readonly HookRule[];
  readonly plugin?: { readonly name: string; readonly root: string };
}

/** What a caller wants of a child, before anything is decided. */
export interface SpawnRequest {
  /** The agent type; absent means `general-purpose`. */
  readonly agentType?: string;
  /** A few words for people. */
  readonly description: string;
  readonly prompt: string;
  readonly model?: string;
  /** The id of an earlier child to resume. */
  readonly resume?: string;
  /** The id of a new child, where the program has chosen it. */
  readonly agentId?: string;
  /** False, from a program: the resumed child gets the tools of its definition as it is now, also new ones. */
  readonly keepTools?: boolean;
  readonly background?: boolean;
  readonly maxTurns?: number;
  /** What it may take; only ever narrows what settings and the definition say. */
  readonly limits?: AgentLimits;
  readonly name?: string;
  readonly mode?: PermissionMode;
  readonly isolation?: string;
  readonly effort?: string | number;
  /** From a program: takes the place of the definition's prompt. */
  readonly systemPrompt?: string;
  /** From a program: added to the definition's prompt. */
  readonly appendSystemPrompt?: string;
  /** A program's wishes count as they are; a model's only where they do not widen. */
  readonly origin: "model" | "program";
  /** The skill whose text is the prompt. */
  readonly skill?: SkillOfSpawn;
  /** The call that asked for it, when a model did. */
  readonly callId?: string;
  /** The team that the call names. */
  readonly teamName?: string;
  /** It is a member of a team, as the session has decided. */
  readonly team?: TeamMembership;
}
