import { type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import { type ChildLimits, readChildLimits } from "../tasks/child-limits.ts";
import { controlFiles } from "../tasks/control-files.ts";
import { createAgentTaskSource } from "../tasks/create-agent-task-source.ts";
import { findEndedTask } from "../tasks/recovery/find-ended-task.ts";
import { createTaskManager, type TaskManager } from "../tasks/task-manager.ts";
import { watchControl, watchMain } from "../tasks/watch-control.ts";
import { type AssembledTools, assembleTools } from "./agent/assemble-tools.ts";
import { openSandboxes } from "./agent/open-sandboxes.ts";
import { chooseModel } from "./choose-model.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { mayLoadIn } from "./may-load-in.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-setup.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { refuseMissingPromptTool } from "./servers/create-prompt-tool.ts";
import type { SessionServers } from "./servers/session-servers.ts";
import { openSessionCommands, type SessionCommands } from "./session-commands.ts";
import { denyRules } from "./session-rules.ts";
import { openSkills } from "./skills/session-skills.ts";

export type GatheredSession = Awaited<ReturnType<typeof gatherSession>>;

/** Everything that is found out before the plan: model, session, skills, prompt, servers, commands, tools. */
export async function gatherSession(
  world: RuntimeContext,
  options: SessionSetup,
  connecting: Promise<SessionServers>,
) {
  const { paths } = world.discovered;
  const definition = findMainAgent(world.discovered, options.agent);
  const { model, decided, chosen: chosenModel, notes } = await chooseModel(world, options, definition);
  const chosen = await chooseSession(options, paths.transcripts, world.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const manager = createTaskManager({ ...childLimits(world), now: world.now });
  const tasks = world.keepsTranscripts ? watchControl(manager, controlFiles(files)) : manager;
  const control = world.keepsTranscripts ? watchMain(controlFiles(files)) : undefined;
  const skills = await openSkills(world, {
    sessionId: chosen.sessionId,
    contextWindow: model.facts.contextWindow,
    deny: denyRules(world, options),
    mayLoad: mayLoadIn(world, options),
  });
  const preloaded = skills.preload(definition);
  const system = await gatherSystemPrompt({
    world,
    options,
    definition,
    modelId: model.facts.id,
    skills,
    preloaded,
  });
  const servers = await connecting;
  if (options.planOnly !== true) refuseMissingPromptTool(options.permissionPromptTool, servers.tools);
  const commands = await openSessionCommands(world, files, options);
  const tools = toolsOf(world, options, {
    servers,
    commands,
    hasSkills: skills.areOffered,
    tasks,
    files,
    sessionId: chosen.sessionId,
  });
  return {
    definition,
    model,
    decidedModel: decided,
    modelNotes: notes,
    chosenModel,
    chosen,
    files,
    tasks,
    control,
    skills,
    preloaded,
    system,
    servers,
    commands,
    tools,
  };
}

function toolsOf(
  world: RuntimeContext,
  options: SessionSetup,
  {
    servers,
    commands,
    hasSkills,
    tasks,
    files,
    sessionId,
  }: {
    readonly servers: SessionServers;
    readonly commands: SessionCommands;
    readonly hasSkills: boolean;
    readonly tasks: TaskManager;
    readonly files: SessionFiles;
    readonly sessionId: string;
  },
): AssembledTools {
  const { transcripts } = world.discovered.paths;
  return assembleTools(world, {
    servers,
    commands,
    promptTool: options.permissionPromptTool,
    hasSkills,
    sandboxes: openSandboxes(world, options),
    taskSources: [
      createAgentTaskSource(tasks, {
        outputFile: (id) => agentOutputFile(files, id),
        recall: (id) => findEndedTask(transcripts, { sessionId, id }),
      }),
    ],
  });
}

function childLimits({ environment, discovered, childLimits: own }: RuntimeContext): ChildLimits {
  const { maxConcurrentSubagents } = readEnvironment(environment).options;
  return { ...readChildLimits(discovered.settings.settings.plain.limits, maxConcurrentSubagents), ...own };
}
