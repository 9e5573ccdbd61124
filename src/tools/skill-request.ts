import type { ToolContext, ToolOutcome } from "./tool.ts";

export interface SkillRequest {
  readonly name: string;
  readonly arguments: string;
}

/** Where the Skill tool finds skills, bound to the agent that calls it. */
export interface SkillToolSource {
  /** One line for each skill that a model may call; the same as long as the session lasts. */
  readonly list: string;
  call(request: SkillRequest, context: ToolContext): Promise<ToolOutcome>;
}
