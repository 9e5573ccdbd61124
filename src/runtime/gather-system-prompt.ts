import { gatherEnvironment } from "../context/gather-environment.ts";
import { gatherGitState } from "../context/gather-git-state.ts";
import { instructionsText } from "../context/instructions.ts";
import { loadInstructions } from "../context/load-instructions.ts";
import { mainPrompt } from "../context/main-prompt.ts";
import { buildSystemPrompt } from "../context/system-prompt.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { SessionWorld } from "./open-session.ts";
import type { SessionOptions } from "./runtime-options.ts";

export interface SystemPromptFacts {
  readonly parts: readonly string[];
  readonly branch?: string;
}

/** Gathers what the main agent is told at the start: its prompt, the people's instructions, and where it is. */
export async function gatherSystemPrompt({
  world,
  options,
  definition,
  modelId,
}: {
  readonly world: SessionWorld;
  readonly options: SessionOptions;
  readonly definition?: AgentDefinition;
  readonly modelId: string;
}): Promise<SystemPromptFacts> {
  const { paths, settings } = world.discovered;
  const { environment, trusted } = world;
  const [instructions, facts, git] = await Promise.all([
    loadInstructions({
      ...paths,
      disabled: environment["CLAUDE_CODE_DISABLE_CLAUDE_MDS"] === "1",
      ...(settings.settings.plain.claudeMdExcludes === undefined
        ? {}
        : { excludes: settings.settings.plain.claudeMdExcludes }),
    }),
    gatherEnvironment({
      directory: paths.cwd,
      additionalDirectories: world.additionalDirectories,
      platform: world.platform,
      environment,
      now: world.today(),
      model: modelId,
    }),
    gatherGitState({ directory: paths.cwd, home: paths.home, environment, trusted }),
  ]);
  const own = definition?.prompt === "" ? undefined : definition?.prompt;
  const parts = buildSystemPrompt({
    base: options.systemPrompt ?? own ?? mainPrompt,
    appended: options.appendSystemPrompt,
    instructions: instructionsText(instructions),
    environment: facts,
    git,
    reminder: definition?.criticalSystemReminder_EXPERIMENTAL,
  });
  return git?.branch === undefined ? { parts } : { parts, branch: git.branch };
}
