// @io
import { randomBytes } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentRegistry } from "@retinue/config/agents/agent-registry.ts";
import { joinBackground } from "@retinue/gate/build-policy.ts";
import { isInside, isUnavailableInBackground, withMode } from "@retinue/gate/permission-policy.ts";
import { type AgentPlan, type Decided, startOf } from "../../planning/agent-plan.ts";
import {
  type ChildFacts,
  type ChildPlanned,
  requestsBackground,
  type SpawnRequest,
  withEarlier,
} from "../../planning/agent-request.ts";
import { planAgent } from "../../planning/plan-agent.ts";
import { foldEarlierRun, loadEarlierRun } from "../../tasks/child-run.ts";
import { unknownType } from "../../tasks/create-agent-tool.ts";
import type { RefusedChild } from "../../tasks/run-agent.ts";
import { toolSearchName } from "../../tools/create-tool-search.ts";
import type { Tool } from "../../tools/tool.ts";
import { workflowAgent } from "../../workflows/workflow-agent.ts";
import type { ChildContext } from "../gather-system-prompt.ts";
import type { ChildServers } from "../servers/session-servers.ts";
import { areDeferred, declaredTools } from "./assemble-tools.ts";
import type { ChildSession } from "./child-session.ts";
import { runnerTool } from "./open-runner.ts";

/** What a child would be. Starts nothing and writes nothing. */
export async function planChild(request: SpawnRequest, session: ChildSession): Promise<ChildPlanned> {
  const gathered = await gatherChild(request, session);
  if (gathered.type === "refused") return gathered;
  const { facts } = gathered;
  const { signal } = new AbortController();
  const { connectFor } = session.services.servers;
  const withServers = hasServers(gathered);
  const planned = planGathered(
    gathered,
    await connectFor(facts.definition, { withServers, starts: false, signal }),
  );
  return planned.type === "planned" && planned.plan.task.isolation === undefined
    ? startable(planned)
    : planned;
}

/** A request with everything that was read for it; what has to be made is added before the plan is decided. */
export interface GatheredChild {
  readonly type: "gathered";
  readonly request: SpawnRequest;
  readonly background: boolean;
  readonly context: ChildContext;
  readonly facts: ChildFacts & {
    /** Whether the tools of its own servers are so many that they are loaded on demand. */
    readonly searchesOwn: (tools: readonly Tool[]) => boolean;
  };
}

/** Reads what the request names: the earlier run, the definition, its memory, skills and prompt. Makes nothing. */
export async function gatherChild(
  asked: SpawnRequest,
  session: ChildSession,
): Promise<GatheredChild | RefusedChild> {
  const { services } = session;
  const mode = services.runtime.live?.reading?.mode();
  const { files, asking, runtime } = services;
  const previous = asked.resume === undefined ? undefined : await loadPreviousRun(asked.resume, session);
  if (asked.resume !== undefined && previous === undefined)
    return refused(`There is no agent ${asked.resume} to resume.`);
  const { plan } = session.parent;
  const foreign = previous && refuseForeign(asked, previous.parentId, plan);
  if (foreign !== undefined) return refused(foreign);
  const found = await findAsked(asked, previous?.agentType, session);
  if (found.type === "unknown") return refused(unknownType(asked, found, plan.spawn));
  if (found.type === "denied")
    return refused(`The agent ${found.agent.id} is denied by the rule ${found.rule}.`);
  const { definition } = found.agent;
  const context = await contextOf(definition, session);
  const agentId = asked.resume ?? asked.agentId ?? `a${randomBytes(8).toString("hex")}`;
  const { memory, skills } = context;
  const request = withEarlier(asked, previous ?? {});
  const start = await findStart({ call: request.cwd, definition: definition.cwd }, plan);
  if (start.type === "refused") return start;
  return {
    type: "gathered",
    request,
    background: session.facts.backgroundAllowed && requestsBackground(asked, definition),
    context,
    facts: {
      ...session.facts,
      definition,
      agentId,
      // Under the mode that a person has chosen since it was planned.
      parent: { ...plan, policy: withMode(plan.policy, mode) },
      system: await context.system(
        asked,
        start.cwd?.value ?? (plan.task === undefined ? undefined : startOf(plan)),
      ),
      cwd: start.cwd,
      approved: asking?.rulesFor(agentId) ?? [],
      ...(runtime.keepsTranscripts
        ? {
            transcripts: {
              own: () => files.agent(agentId).transcript,
              parent: files.transcript,
              messages: () => session.messages().length,
            },
          }
        : {}),
      memory: memory?.place,
      skills: skills?.names,
      earlier: previous?.earlier,
      loadedTools: services.loadedTools.get(plan.agent.id)?.() ?? [],
      searchesOwn: (tools) =>
        areDeferred(tools, {
          mode: runtime.variables.toolSearch,
          contextWindow: session.parent.model.facts.contextWindow,
        }),
      notes: [...(memory?.diagnostics.map(({ message }) => message) ?? []), ...(skills?.notes ?? [])],
    },
  };
}

/** The definition that a call names; a step of a workflow has one of its own, which nothing else can name. */
async function findAsked(
  { agentType, workflow }: SpawnRequest,
  earlier: string | undefined,
  session: Pick<ChildSession, "loadRegistry">,
): Promise<ReturnType<AgentRegistry["find"]>> {
  const name = earlier ?? agentType;
  if (workflow !== undefined && (name === undefined || name === workflowAgent.name))
    return { type: "found", agent: { id: workflowAgent.name, definition: workflowAgent, shadowed: [] } };
  return (await session.loadRegistry()).discovered.registry.find(name ?? "general-purpose");
}

/** An agent is resumed by the agent that started it: only there its rights are those it had. */
function refuseForeign(
  { resume = "" }: Pick<SpawnRequest, "resume">,
  parentId: string | undefined,
  { agent, task }: AgentPlan,
): string | undefined {
  if (parentId === (task === undefined ? undefined : agent.id)) return undefined;
  return parentId === undefined
    ? `The agent ${resume} was started by the main agent, and only that agent can resume it.`
    : `The agent ${resume} was started by the agent ${parentId}, and only that agent can resume it; resume ${parentId} instead.`;
}

/** Below a subagent there is no memory that the subagent does not have, so nothing of it is in the prompt either. */
async function contextOf(
  definition: AgentDefinition,
  { context, parent: { plan } }: ChildSession,
): Promise<ChildContext> {
  const own = await context(definition);
  const place = own.memory?.place;
  if (plan.task === undefined || place === undefined || place.directory === plan.memory?.directory)
    return own;
  const { memory: _memory, ...others } = definition;
  const without = await context(others);
  const note = `The memory of ${definition.name} is off: ${plan.agent.name}, which starts it, does not have it.`;
  return { ...without, memory: { diagnostics: [{ severity: "note", code: "memory-off", message: note }] } };
}

type FoundStart =
  | { readonly type: "found"; readonly cwd?: Decided<string> }
  | { readonly type: "refused"; readonly reason: string };

/** The folder that a call or a definition names to start in, as it really is. */
async function findStart(
  { call, definition }: { readonly call: string | undefined; readonly definition: string | undefined },
  above: Pick<AgentPlan, "cwd" | "directory">,
): Promise<FoundStart> {
  const written = call ?? definition;
  if (written === undefined) return { type: "found" };
  const from = call === undefined ? "the definition" : "the call";
  const folder = await realpath(resolve(startOf(above), written)).catch(() => undefined);
  if (folder === undefined)
    return {
      type: "refused",
      reason: `\`cwd\` of ${from} is ${quote(written, 200)}, which does not exist.`,
    };
  return { type: "found", cwd: { value: folder, from } };
}

/** Why an agent cannot start in the folder of its plan: it is no folder, or none of those it works in. */
export async function refuseStart({
  cwd,
  policy,
}: Pick<AgentPlan, "cwd" | "policy">): Promise<string | undefined> {
  if (cwd === undefined) return undefined;
  const { value, from } = cwd;
  const folders = await Promise.all(
    policy.workingDirectories.map((folder) => realpath(folder).catch(() => folder)),
  );
  const named = `\`cwd\` of ${from} is ${value}`;
  const real = await realpath(value).catch(() => undefined);
  const isFolder = real !== undefined && (await stat(real)).isDirectory();
  if (!isFolder) return `${named}, which is not a folder.`;
  if (isInside(real, folders)) return undefined;
  return `${named}, which is outside the folders that the agent works in: ${policy.workingDirectories.join(", ")}.`;
}

/** What an earlier child was, by its id. */
async function loadPreviousRun(agentId: string, { services: { runtime, files }, memory }: ChildSession) {
  return runtime.keepsTranscripts
    ? loadEarlierRun(files.agent(agentId))
    : foldEarlierRun(memory.records(agentId));
}

/** What is made or asked for one child before its plan is final. */
export type MadeFacts = Pick<ChildFacts, "worktree" | "preapproved"> & Partial<Pick<ChildFacts, "system">>;

/** The plan of a child, as far as what is made for it is there. */
export function planGathered(
  { request, facts }: GatheredChild,
  servers: ChildServers,
  made: MadeFacts = {},
): ChildPlanned {
  // The servers of a definition may bring many tools where those of the session are few.
  const added = facts.searchesOwn(servers.tools)
    ? declaredTools([toolSearchName], new Set(facts.available.map(({ name }) => name)))
    : [];
  const runner = facts.definition.runner === undefined ? [] : [runnerTool];
  const planned = planAgent(request, {
    ...facts,
    ...made,
    own: { names: servers.own.names, tools: [...servers.own.tools, ...added, ...runner] },
    serverInstructions: servers.instructions ?? [],
    notes: [...(facts.notes ?? []), ...servers.notes],
  });
  return planned.type === "planned" ? planned : refused([planned.reason, ...servers.notes].join(" "));
}

/** In the background servers are there only where they are kept, and below an agent only where it has them. */
export function hasServers({ background, facts: { parent, backgroundKeeps } }: GatheredChild): boolean {
  const place = joinBackground(parent.policy, { background, backgroundKeeps });
  return !isUnavailableInBackground(place, "mcpTools");
}

/** Whether the folder that a plan starts in is still one it may start in. */
export async function startable(planned: Extract<ChildPlanned, { type: "planned" }>): Promise<ChildPlanned> {
  const reason = await refuseStart(planned.plan);
  return reason === undefined ? planned : refused(reason);
}

function refused(reason: string): RefusedChild {
  return { type: "refused", reason };
}
