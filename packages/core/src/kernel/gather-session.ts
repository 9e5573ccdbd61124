import { defined } from "@retinue/base/foundation/defined.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import {
  aliasTable,
  type ChosenModel,
  type ModelLimits,
  type ModelOrigin,
  type ModelSelection,
  refuseModel,
  selectMainModel,
} from "@retinue/config/models/select-subagent-model.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import type { UserMessage } from "../conversation/message.ts";
import { type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import type { LocalModel } from "../models/local-models.ts";
import type { Model } from "../models/model.ts";
import type { Decided } from "../planning/agent-plan.ts";
import { readLimitSettings } from "../planning/limit-plan.ts";
import { commandNotice } from "../tasks/end-notice.ts";
import { findEndedTask } from "../tasks/find-ended-task.ts";
import { createAgentTaskSource } from "../tasks/open-agent-output.ts";
import {
  type ChildLimits,
  createTaskManager,
  readChildLimits,
  type TaskManager,
} from "../tasks/task-manager.ts";
import { controlFiles, watchControl, watchMain } from "../tasks/watch-control.ts";
import type { CommandRecord } from "../tools/command/command-record.ts";
import {
  type CommandRecords,
  createCommandRecords,
  recoverCommands,
} from "../tools/command/recover-commands.ts";
import { type AssembledTools, assembleTools, openSandboxes } from "./agent/assemble-tools.ts";
import { openSkills } from "./agent/session-skills.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { refuseMissingPromptTool, type SessionServers } from "./servers/session-servers.ts";
import { mayLoadIn, rulesOf, type SessionRules } from "./session-rules.ts";

export type GatheredSession = Awaited<ReturnType<typeof gatherSession>>;

/** Everything that is found out before the plan: model, session, skills, prompt, servers, commands, tools. */
export async function gatherSession(
  runtime: RuntimeContext,
  options: SessionSetup,
  {
    definition,
    servers: connecting,
  }: { readonly definition: AgentDefinition | undefined; readonly servers: Promise<SessionServers> },
) {
  const { paths } = runtime.discovered;
  const { model, decided, chosen: chosenModel, notes } = await chooseModel(runtime, options, definition);
  const chosen = await chooseSession(options, paths.transcripts, runtime.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const { tasks, control } = openTasks(runtime, files);
  const rules = rulesOf(runtime, options);
  const { sessionId } = chosen;
  const mayLoad = mayLoadIn(runtime, rules);
  const prompted = await gatherPrompt(runtime, options, { definition, model, sessionId, rules, mayLoad });
  const servers = await connecting;
  const { permissionPromptTool: asked } = options;
  if (options.planOnly !== true && asked !== undefined) refuseMissingPromptTool(asked, servers.tools);
  const commands = await openSessionCommands(runtime, files, options);
  const tools = toolsOf(runtime, options, {
    servers,
    commands,
    deny: rules.deny,
    hasSkills: prompted.skills.areOffered,
    tasks,
    files,
    sessionId,
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
    rules,
    ...prompted,
    servers,
    commands,
    tools,
  };
}

/** The skills there are, and what the main agent is shown at the start. */
async function gatherPrompt(
  runtime: RuntimeContext,
  options: SessionSetup,
  {
    definition,
    model,
    sessionId,
    rules,
    mayLoad,
  }: {
    readonly definition: AgentDefinition | undefined;
    readonly model: Model;
    readonly sessionId: string;
    readonly rules: SessionRules;
    readonly mayLoad: MayLoad | undefined;
  },
) {
  const { id: modelId, contextWindow } = model.facts;
  const skills = await openSkills(runtime, { sessionId, contextWindow, deny: rules.deny, mayLoad });
  const preloaded = skills.preload(definition);
  const shared = { runtime, options, definition, modelId, skills, preloaded, rules, mayLoad };
  return { skills, preloaded, system: await gatherSystemPrompt(shared) };
}

/** The children of the session; where something is written down, other processes reach them and the main agent. */
function openTasks(runtime: RuntimeContext, files: SessionFiles) {
  const manager = createTaskManager({ ...childLimits(runtime), now: runtime.now });
  if (!runtime.keepsTranscripts) return { tasks: manager, control: undefined };
  const control = controlFiles(files);
  return { tasks: watchControl(manager, control), control: watchMain(control) };
}

function toolsOf(
  runtime: RuntimeContext,
  options: SessionSetup,
  {
    servers,
    commands,
    deny,
    hasSkills,
    tasks,
    files,
    sessionId,
  }: {
    readonly servers: SessionServers;
    readonly commands: SessionCommands;
    readonly deny: readonly PolicyRule[];
    readonly hasSkills: boolean;
    readonly tasks: TaskManager;
    readonly files: SessionFiles;
    readonly sessionId: string;
  },
): AssembledTools {
  const { transcripts } = runtime.discovered.paths;
  return assembleTools(runtime, {
    servers,
    commands,
    promptTool: options.permissionPromptTool,
    hasSkills,
    sandboxes: openSandboxes(runtime, deny),
    taskSources: [
      createAgentTaskSource(tasks, {
        outputFile: (id) => (runtime.keepsTranscripts ? files.agent(id).output : undefined),
        recall: (id) => findEndedTask(transcripts, { sessionId, id }),
      }),
    ],
  });
}

function childLimits({ variables, discovered, childLimits: own }: RuntimeContext): ChildLimits {
  return {
    ...readChildLimits(discovered.settings.settings.plain.limits, variables.maxConcurrentSubagents),
    ...defined(own ?? {}),
  };
}

interface ModelForSession {
  readonly model: Model;
  readonly decided: Decided<string>;
  /** The same as a reference, for children that inherit it. */
  readonly chosen: ChosenModel;
  /** What was named and did not count, each as one sentence. */
  readonly notes: readonly string[];
}

/** The program's own model, or the one that the call, the agent, the environment and settings lead to. */
export async function chooseModel(
  runtime: RuntimeContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): Promise<ModelForSession> {
  if (runtime.model !== undefined) {
    return {
      model: runtime.model,
      decided: { value: runtime.model.facts.id, from: "the program" },
      chosen: { id: runtime.model.facts.id },
      notes: budgetNotes(runtime.model, runtime, options),
    };
  }
  const selection = select(runtime, options, definition);
  const served = await findServing(runtime, selection);
  return {
    ...served,
    decided: { value: served.model.facts.id, from: served.from },
    notes: [...unclearNotes(selection), ...served.notes, ...budgetNotes(served.model, runtime, options)],
  };
}

/** What reads the answers of such servers is loaded only where they are asked. */
async function findLocalModel(runtime: RuntimeContext): Promise<LocalModel | undefined> {
  const servers = await runtime.localServers();
  if (servers.length === 0) return undefined;
  const { chooseLocalModel } = await import("../models/local-models.ts");
  return chooseLocalModel(servers);
}

/** The model that a skill asks for; a program that brought its own model has decided already. */
export function modelFinder(
  runtime: RuntimeContext,
  current?: ChosenModel,
): (name: string) => Promise<Model> {
  return async (name) => {
    if (runtime.model !== undefined)
      throw new RetinueError("model-fixed", "the program has chosen the model.");
    const { model, chosen } = await chooseModel(runtime, { model: name }, undefined);
    if (current !== undefined && isServed(runtime, current) && !isServed(runtime, chosen))
      throw new RetinueError("model-unserved", "no provider is configured for it.");
    return model;
  };
}

/** Whether somebody else than the offline model, standing in, would answer. */
export function isServed({ model, models }: RuntimeContext, chosen: ChosenModel): boolean {
  return (
    model !== undefined || chosen.provider === "offline" || models.describe(chosen).adapter !== "offline"
  );
}

/** The offline model answers only where it is named: no program may take what it says for the answer of a real one. */
export function refuseUnserved(
  runtime: RuntimeContext,
  named: string | undefined,
  chosen: ChosenModel,
): void {
  if (!isServed(runtime, chosen)) throw noCredentials(named);
}

export function noCredentials(named: string | undefined): RetinueError {
  const asked =
    named === undefined || named.trim() === ""
      ? ""
      : `, and the model ${JSON.stringify(named)} was asked for`;
  return new RetinueError("no-credentials", `There is no key for a model${asked}.`, {
    advice:
      "Set ANTHROPIC_API_KEY or the key of another provider, or name the offline model, which needs none: `offline`.",
  });
}

type Serving = Pick<ModelForSession, "model" | "chosen" | "notes"> & { readonly from: string };

/** Where nothing is named and nothing configured, a server on this machine goes before the offline model. */
async function findServing(runtime: RuntimeContext, selection: ModelSelection): Promise<Serving> {
  const usual: Serving = {
    model: await runtime.models.model(selection.model),
    chosen: selection.model,
    from: originNames[selection.origin],
    notes: [],
  };
  const isOpen = selection.origin === "default" && usual.model.facts.provider === "offline";
  const local = isOpen ? await findLocalModel(runtime) : undefined;
  if (local === undefined) return usual;
  const { provider, id, server } = local;
  const written = `${provider}/${id}`;
  const found = `${server.name} was found at ${server.address}`;
  const refusal = refuseModel(
    { provider, id },
    modelLimits(runtime),
    aliasTable({ environment: runtime.environment }),
  );
  if (refusal !== undefined)
    return { ...usual, notes: [`${found}, but the offline model answers: ${refusal}`] };
  try {
    const model = await runtime.models.model({ provider, id });
    const note = `No key is set and ${found}, so ${written} answers. RETINUE_LOCAL_MODELS=0 switches this off.`;
    return { model, chosen: { provider, id }, from: `no key is set and ${found}`, notes: [note] };
  } catch (error) {
    if (!isRetinueError(error) || !error.code.startsWith("provider-package-")) throw error;
    const advice = error.advice === undefined ? "" : ` ${error.advice}`;
    return { ...usual, notes: [`${found}, but the offline model answers: ${error.message}${advice}`] };
  }
}

/** What settings say about models, for the main agent and for its children. */
export function modelLimits({ discovered }: RuntimeContext): ModelLimits {
  const { availableModels, deniedModels } = discovered.settings.settings.plain;
  return {
    available: availableModels,
    denied: deniedModels,
  };
}

const originNames: Readonly<Record<ModelOrigin, string>> = {
  call: "the call",
  flag: "the call",
  definition: "the definition",
  "subagent-variable": "CLAUDE_CODE_SUBAGENT_MODEL",
  parent: "the parent",
  variable: "ANTHROPIC_MODEL",
  settings: "settings",
  default: "the default",
};

function select(
  runtime: RuntimeContext,
  options: SessionSetup,
  definition: AgentDefinition | undefined,
): ModelSelection {
  const limits = modelLimits(runtime);
  const aliases = aliasTable({ environment: runtime.environment });
  const selection = selectMainModel({
    flag: options.model,
    definition: definition?.model,
    variable: runtime.environment["ANTHROPIC_MODEL"],
    settings: runtime.discovered.settings.settings.plain.model,
    aliases,
    isPlanning: options.permissionMode === "plan",
  });
  const refusal = refuseModel(selection.model, limits, aliases);
  const unclear = selection.unclear.find(({ origin }) => origin === "flag");
  if (unclear !== undefined) {
    const advice = unclear.nearest === undefined ? {} : { advice: `Did you mean ${unclear.nearest}?` };
    throw new RetinueError("unclear-model", `The model cannot be used: ${unclear.why}.`, advice);
  }
  if (refusal === undefined) return selection;
  throw new RetinueError("model-denied", refusal, {
    advice: "Choose another with --model, or change the setting.",
  });
}

function unclearNotes({ unclear }: ModelSelection): readonly string[] {
  return unclear.map(({ origin, why }) => `The model of ${originNames[origin]} does not count: ${why}.`);
}

function budgetNotes(
  { facts }: Model,
  { discovered }: RuntimeContext,
  { maxBudgetUsd, limits }: SessionSetup,
): readonly string[] {
  if (facts.price !== undefined) return [];
  const { tree, unknownPrice } = readLimitSettings(discovered.settings.settings.plain.limits);
  const isLimited = (maxBudgetUsd ?? limits?.tree?.usd ?? tree.usd) !== undefined;
  if (!isLimited) return [];
  const effect = unknownPrice === "refuse" ? "its calls are refused" : "the budget cannot be kept";
  return [`The price of ${facts.id} is not known, so ${effect}.`];
}

/** The commands of a session, over all processes that have run it. */
export interface SessionCommands {
  /** Absent where nothing is written down. */
  readonly records?: CommandRecords;
  /** Those in the background that ran in earlier processes. */
  readonly earlier: readonly CommandRecord[];
  /** What an agent that continues should know of its commands that ended with it, where it was not reported yet. */
  readonly news: (agentId: string, wasReported: (taskId: string) => boolean) => readonly UserMessage[];
}

/** Ends what a process that is gone has left running in this session, before anything of it continues. */
async function openSessionCommands(
  runtime: Pick<RuntimeContext, "keepsTranscripts" | "epochMs">,
  { commands }: Pick<SessionFiles, "commands">,
  { planOnly }: Pick<SessionSetup, "planOnly">,
): Promise<SessionCommands> {
  if (!runtime.keepsTranscripts || planOnly === true) return { earlier: [], news: () => [] };
  const { background } = await recoverCommands({ folder: commands });
  return {
    records: createCommandRecords(commands, runtime.epochMs),
    earlier: background,
    news: (agentId, wasReported) =>
      background
        .filter(
          (record) => record.agentId === agentId && record.end?.isCutOff === true && !wasReported(record.id),
        )
        .map(commandNotice),
  };
}
