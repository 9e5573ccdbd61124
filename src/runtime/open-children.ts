import { randomBytes } from "node:crypto";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { Model, ModelFacts } from "../model/model.ts";
import { aliasTable } from "../model/model-aliases.ts";
import { lookUpModel } from "../model/model-catalog.ts";
import { findOverride, readModelOverrides } from "../model/model-overrides.ts";
import type { ChosenModel } from "../model/select-model.ts";
import type { Approver } from "../permissions/approver.ts";
import type { LimitFacts } from "../planning/plan-limits.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { readEnvironment } from "../settings/environment.ts";
import { replaceWholeFile } from "../storage/create-whole-file.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import { createAgentTool } from "../tasks/agent-tool.ts";
import type { TreeBudget } from "../tasks/budget.ts";
import type { ChildClocks, ChildHost, ChildRecord, Isolated } from "../tasks/child-host.ts";
import { createChildMail } from "../tasks/child-mail.ts";
import { metaOf } from "../tasks/child-meta.ts";
import { findTasks } from "../tasks/find-tasks.ts";
import { inWorktree } from "../tasks/in-worktree.ts";
import { loadEarlierRun } from "../tasks/load-earlier-run.ts";
import { lostMessageNotice } from "../tasks/notice.ts";
import { makeWorktree } from "../tasks/run-worktree.ts";
import { createMessenger } from "../tasks/send-message.ts";
import { createSendMessageTool } from "../tasks/send-message-tool.ts";
import { createSpawner, type Spawner } from "../tasks/spawner.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import { hasEnded } from "../tasks/task-state.ts";
import { readWorktreeSettings } from "../tasks/worktree-settings.ts";
import { openAgentOutput } from "../tasks/write-agent-output.ts";
import { openQueueMark, queueMarkFile } from "../tasks/write-queue-mark.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import type { Tool } from "../tools/tool.ts";
import { authorizeStarts } from "./authorize-starts.ts";
import { isServed, modelLimits } from "./choose-model.ts";
import type { ChildPrompt } from "./gather-system-prompt.ts";
import { listedAgents } from "./listed-agents.ts";
import { openChildTranscript } from "./open-child-transcript.ts";
import { preapprove } from "./preapprove.ts";
import { runChildRecovery } from "./run-child-recovery.ts";
import type { SessionCommands } from "./run-session-commands.ts";
import type { SessionServers } from "./session-servers.ts";
import type { SessionSkills } from "./session-skills.ts";
import type { RuntimeContext } from "./session-world.ts";

/** What the children of a session share with it. */
export interface ChildrenParts {
  readonly world: RuntimeContext;
  /** Looks at the agents anew, so that a changed file counts at the next start. */
  readonly look: () => Promise<RuntimeContext>;
  readonly tasks: TaskManager;
  readonly parent: { readonly plan: RunPlan; readonly model: Model; readonly chosenModel: ChosenModel };
  readonly messages: () => readonly Message[];
  readonly tools: readonly Tool[];
  readonly available: readonly AvailableTool[];
  readonly prompt: ChildPrompt;
  readonly memory: NonNullable<ChildHost["memory"]>;
  readonly skills: Pick<SessionSkills, "preload">;
  readonly servers: Pick<SessionServers, "connectFor" | "servers">;
  readonly prepare: ChildHost["prepare"];
  readonly release: (agentId: string) => Promise<void>;
  readonly commands: Pick<SessionCommands, "news">;
  readonly limitFacts: LimitFacts;
  readonly tree: TreeBudget;
  readonly clocks: ChildClocks;
  /** Whether there is a parent that reads what children in the background tell. */
  readonly readsNotices: boolean;
}

/** The children of a session: the tool that starts them, what they tell their parent, and the wait for the last one. */
export interface Children {
  readonly tool: Tool;
  /** Writes to children, by id or name. */
  readonly messageTool: Tool;
  readonly spawner: Spawner;
  /** From now on a child that is resumed by a message is decided about like a call of the Agent tool. */
  readonly attach: (authorize: LoopPorts["admit"]) => void;
  /** Settles how a child ended whose process died. */
  readonly recover: (agentId: string, signal?: AbortSignal) => Promise<void>;
  /** Tells the parent something between its turns. */
  readonly notify: (message: UserMessage) => void;
  readonly takeMessages: () => readonly UserMessage[];
  /** Before the parent ends: waits for children in the background, and gives their news. */
  readonly beforeEnd: (signal: AbortSignal) => Promise<UserMessage | undefined>;
}

export function openChildren(parts: ChildrenParts): Children {
  const { world, tasks, parent } = parts;
  const options = readEnvironment(world.environment).options;
  const mail = createChildMail(parts.readsNotices ? undefined : 0);
  let queued = 0;
  const nextQueued = (): number => {
    queued += 1;
    return queued;
  };
  const recover: Children["recover"] = (agentId, signal) =>
    runChildRecovery(agentId, { world, look: parts.look, plan: parent.plan, model: parent.model, signal });
  const facts = planningFacts(parts);
  const spawner = createSpawner({
    tasks,
    parent: () => ({ plan: parent.plan, messages: parts.messages() }),
    host: {
      registry: async () => (await parts.look()).discovered.registry,
      model: (chosen) => modelOf(chosen, parts),
      facts,
      budget: parts.tree,
      clocks: parts.clocks,
      systemPrompt: parts.prompt,
      memory: parts.memory,
      skills: (definition) => parts.skills.preload(definition),
      servers: parts.servers.connectFor,
      open: (plan) => openRecord(plan, world, nextQueued),
      recall: (agentId) =>
        loadEarlierRun(
          sessionFiles(world.discovered.paths.transcripts, parent.plan.sessionId).agent(agentId),
        ),
      recover: (agentId) => recover(agentId),
      news: parts.commands.news,
      prepare: parts.prepare,
      ...(world.approver === undefined ? {} : { preapprove: preapproveWith(world.approver, parts) }),
      isolate: (plan, definition, { signal }) => isolate(plan, definition, { parts, signal }),
      newAgentId: () => `a${randomBytes(8).toString("hex")}`,
      release: parts.release,
      ...(world.notice === undefined ? {} : { report: world.notice }),
      notify: mail.put,
    },
  });
  const tool = createAgentTool({
    agents: listedAgents(
      world.discovered.registry.list().map(({ definition }) => definition),
      parent.plan,
      facts,
    ),
    background: options.backgroundTasksDisabled !== true,
    // Those that have to wait do so in the queue, where they can be seen.
    concurrency: Number.MAX_SAFE_INTEGER,
    spawn: spawner.spawn,
  });
  const starts = authorizeStarts(tool, spawner.spawn);
  const { transcripts } = world.discovered.paths;
  const messenger = createMessenger({
    tasks,
    find: () =>
      world.keepsTranscripts
        ? findTasks(transcripts, { sessionId: parent.plan.sessionId })
        : Promise.resolve([]),
    resume: starts.start,
    onLost: ({ id }, reason) => mail.put(lostMessageNotice(id, reason)),
  });
  return {
    spawner,
    recover,
    attach: starts.attach,
    notify: mail.put,
    tool,
    messageTool: createSendMessageTool(messenger),
    takeMessages: mail.takeAll,
    async beforeEnd(signal) {
      const isBusy = (): boolean => tasks.list().some((task) => task.background && !hasEnded(task));
      if (mail.isEmpty() && isBusy()) await mail.wait(signal, options.printBackgroundWaitMs ?? defaultWaitMs);
      return mail.takeOne();
    },
  };
}

/** How long a run waits at its end for children in the background. */
const defaultWaitMs = 600_000;

function planningFacts(parts: ChildrenParts): ChildHost["facts"] {
  const { world, parent } = parts;
  const options = readEnvironment(world.environment).options;
  return {
    aliases: aliasTable({ environment: world.environment }),
    modelLimits: modelLimits(world),
    ...(options.subagentModel === undefined ? {} : { subagentModel: options.subagentModel }),
    subagentModelForced: options.subagentModelForced === true,
    available: parts.available,
    servers: parts.servers.servers,
    trusted: world.trusted,
    backgroundAllowed: options.backgroundTasksDisabled !== true,
    parentModel: parent.chosenModel,
    limits: parts.limitFacts,
    isPriced: (chosen) => knownFacts(chosen, parts).price !== undefined,
    canSearch: (chosen) => knownFacts(chosen, parts).supportsServerTools,
    isServed: (chosen) => isServed(world, chosen),
  };
}

/** Without asking any provider: as far as the catalog and settings know it. */
function knownFacts(
  chosen: ChosenModel,
  { world, parent }: ChildrenParts,
): Pick<ModelFacts, "price" | "supportsServerTools"> {
  const isParents = chosen.id === parent.chosenModel.id && chosen.provider === parent.chosenModel.provider;
  if (isParents || world.model !== undefined) return parent.model.facts;
  const overrides = readModelOverrides(world.discovered.settings.settings.plain);
  if (chosen.provider !== undefined && chosen.provider !== "anthropic")
    return { ...findOverride(overrides, chosen), supportsServerTools: false };
  return lookUpModel(chosen.id, overrides.facts).facts;
}

/** A program's own model serves its children too, unless they name another. */
async function modelOf(chosen: ChosenModel, { world, parent }: ChildrenParts): Promise<Model> {
  const isParents = chosen.id === parent.chosenModel.id && chosen.provider === parent.chosenModel.provider;
  return isParents || world.model !== undefined ? parent.model : world.models.model(chosen);
}

/** A person who does not answer, or an approver that fails, grants nothing; the child starts all the same. */
function preapproveWith(approver: Approver, { parent, tools }: ChildrenParts) {
  return (plan: ChildPlan): Promise<ChildPlan> =>
    preapprove(plan, { approver, main: parent.plan, tools }).catch(() => plan);
}

/** Makes the child's own working tree, until whoever starts it is stopped, and within a limit. */
async function isolate(
  plan: ChildPlan,
  definition: AgentDefinition,
  { parts, signal }: { readonly parts: ChildrenParts; readonly signal: AbortSignal },
): Promise<Isolated> {
  const { world } = parts;
  const settings = readWorktreeSettings(world.discovered.settings.settings.plain.worktree);
  if (settings.type === "refused") return settings;
  const made = await makeWorktree({
    directory: plan.directory,
    agentId: plan.agent.id,
    agentName: plan.agent.name,
    settings: settings.settings,
    environment: world.environment,
    signal: AbortSignal.any([signal, AbortSignal.timeout(worktreeLimitMs)]),
    resume: plan.task.resumed,
  });
  if (made.type === "refused") return made;
  const { worktree } = made;
  const place = { ...worktree, root: world.discovered.paths.projectRoot };
  const system = await parts.prompt(definition, plan.task.prompt, worktree.directory);
  const move = (own: ChildPlan): ChildPlan => inWorktree(own, place, system);
  return {
    type: "isolated",
    plan: move(plan),
    move,
    begun: worktree.begun,
    async finish() {
      const { kept, path, branch } = await worktree.finish();
      return kept ? { path, branch } : undefined;
    },
  };
}

const worktreeLimitMs = 120_000;

async function openRecord(
  plan: ChildPlan,
  world: RuntimeContext,
  nextQueued: () => number,
): Promise<ChildRecord> {
  const files = sessionFiles(world.discovered.paths.transcripts, plan.sessionId);
  const own = files.agent(plan.agent.id);
  const outputFile = agentOutputFile(files, plan.agent.id);
  const transcript = await openChildTranscript({
    file: own.transcript,
    isKept: world.keepsTranscripts,
    isResumed: plan.task.resumed,
    plan,
    ids: world.ids,
    now: () => world.today().getTime(),
    facts: () => ({
      sessionId: plan.sessionId,
      cwd: plan.directory,
      entrypoint: world.entrypoint,
      agentId: plan.agent.id,
      permissionMode: plan.policy.mode,
    }),
  });
  if (!world.keepsTranscripts) return { ...transcript, outputFile };
  replaceWholeFile(own.meta, `${JSON.stringify(metaOf(plan))}\n`);
  const output = openAgentOutput(outputFile);
  return {
    ...transcript,
    ...openQueueMark(queueMarkFile(own.transcript), nextQueued),
    outputFile,
    record(event) {
      transcript.record(event);
      output.record(event);
    },
    close() {
      transcript.close();
      output.close();
    },
  };
}
