import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import type { CompactionPort, LoopLimits, LoopPorts } from "../loop/loop-ports.ts";
import type { RunWatch } from "../loop/watch-run.ts";
import type { Model, ServerTool } from "../model/model.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import type { AgentSkills } from "./agent-skills.ts";
import { type AuthorizeDependencies, type AuthorizeWithHooks, createAuthorize } from "./create-authorize.ts";
import type { LiveControls } from "./live-controls.ts";
import type { Children } from "./open-children.ts";
import type { SessionHooks } from "./session-hooks.ts";
import type { SessionServers } from "./session-servers.ts";
import type { TurnRights } from "./skill-turn.ts";
import type { TypedOutput } from "./typed-output.ts";

/** Everything a session is made of; putting it together did the I/O. */
export interface SessionParts extends AuthorizeDependencies {
  readonly discovered: DiscoveredAgents;
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  readonly history: readonly Message[];
  readonly toolContext: (
    call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
  ) => ToolContext;
  readonly now: () => number;
  /** What the loop must heed besides its turns. */
  readonly limits?: LoopLimits;
  /** Absent: the conversation is never compacted. */
  readonly compaction?: CompactionPort | undefined;
  /** How many calls run together. */
  readonly concurrency?: number | undefined;
  /** Writes an event down before the next one is asked for. */
  readonly record: (event: RunEvent) => void;
  /** Resolves when what was written down so far would survive a power cut. */
  readonly commit?: (() => Promise<void>) | undefined;
  readonly output?: TypedOutput;
  readonly hooks?: SessionHooks;
  /** Absent where there are no skills. */
  readonly skills?: AgentSkills;
  /** Absent for agents that can have none. */
  readonly children?: Children;
  /** What the host of the main agent changes while it runs. */
  readonly live?: LiveControls | undefined;
  /** Whether a tool is still there at the next turn; absent means it is. */
  readonly isOffered?: LoopPorts["isOffered"];
  readonly dispose: () => Promise<void>;
}

/** What only the main agent of a session has. */
export interface MainParts extends SessionParts {
  readonly children: Children;
  readonly tasks: TaskManager;
  readonly mcpServers: SessionServers["states"];
  /** Whether `/name` in a prompt calls a skill. */
  readonly slashCommands: boolean;
  /** Called before each prompt is worked on: makes what opening a session alone does not. */
  readonly begin?: () => Promise<void>;
  /** Called once, before the first prompt: takes up what a crash has left, and tells of it. */
  readonly recover?: (signal: AbortSignal) => Promise<readonly InterruptedAgent[]>;
  /** The clocks of its runs; absent limits nothing. */
  readonly watch?: RunWatch;
}

export function createPorts(parts: SessionParts): LoopPorts {
  const { output, hooks } = parts;
  const stop = createStopMark(hooks?.takeStop);
  const { own, whole } = authorizations(parts);
  const authorize = stop.watch(whole);
  parts.skills?.attach({ authorize, ask: stop.watch(own) });
  parts.children?.attach(authorize);
  return {
    model: parts.skills?.model(parts.model) ?? parts.model,
    tools: output === undefined ? parts.tools : [...parts.tools, output.tool],
    ...(parts.serverTools === undefined || parts.serverTools.length === 0
      ? {}
      : { serverTools: parts.serverTools }),
    ...(parts.isOffered === undefined ? {} : { isOffered: parts.isOffered }),
    authorize,
    isStopped: stop.take,
    toolContext: (callId, options) => parts.toolContext({ callId, ...options }),
    takeMessages: () => [
      ...(hooks?.takeMessages() ?? []),
      ...(parts.skills?.takeMessages() ?? []),
      ...(parts.children?.takeMessages() ?? []),
      ...(parts.live?.takeMessages?.() ?? []),
    ],
    ...afterCallOf(parts),
    ...(parts.commit === undefined ? {} : { commit: parts.commit }),
    // Children in the background are waited for before hooks hear that the work is over.
    async beforeEnd(text, options) {
      const waits = parts.live?.waitsForChildren !== false;
      const report = waits ? await parts.children?.beforeEnd(options.signal) : undefined;
      return report ?? (await hooks?.beforeEnd(text, options));
    },
    ...(output === undefined
      ? {}
      : { isFinished: () => output.value() !== undefined || output.hasGivenUp() }),
    ...(parts.limits === undefined ? {} : { limits: parts.limits }),
    ...(parts.compaction === undefined ? {} : { compaction: parts.compaction }),
    ...(parts.concurrency === undefined ? {} : { concurrency: parts.concurrency }),
    now: parts.now,
  };
}

/** An agent that can load skills is told of those that are for the files it has used. */
function afterCallOf({ hooks, skills, tools, directory, plan }: SessionParts): Pick<LoopPorts, "afterCall"> {
  if (skills === undefined || !tools.includes(skills.tool))
    return hooks === undefined ? {} : { afterCall: hooks.afterCall };
  return {
    async afterCall(request, outcome, options) {
      const { tool, input } = request;
      if (outcome.isError !== true)
        await skills.touch(tool.pathsOf?.(input, directory(), plan.policy.home) ?? []);
      return hooks?.afterCall(request, outcome, options) ?? outcome;
    },
  };
}

/** Remembers that a person or a hook wants the run to end, until the loop has asked: the next prompt starts anew. */
function createStopMark(takeStop: () => boolean = () => false) {
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
      const wanted = takeStop() || isWanted;
      isWanted = false;
      return wanted;
    },
  };
}

function joinRights(...all: readonly (TurnRights | undefined)[]): TurnRights {
  return {
    allow: all.flatMap((rights) => rights?.allow ?? []),
    deny: all.flatMap((rights) => rights?.deny ?? []),
  };
}

/** How calls are decided about: by rules and people alone, and with the hooks that speak before them. */
function authorizations(parts: SessionParts): {
  readonly own: AuthorizeWithHooks;
  readonly whole: AuthorizeWithHooks;
} {
  const { hooks, skills } = parts;
  const own = createAuthorize({
    ...parts,
    ...(hooks === undefined ? {} : { beforeAsk: hooks.beforeAsk, onAsk: hooks.notify }),
    rights: () => joinRights(skills?.rights(), hooks?.rights()),
  });
  const authorize = hooks === undefined ? own : hooks.wrapAuthorize(own);
  // Handing in the result is no action in the world and needs no permission.
  const whole: AuthorizeWithHooks = async (request, options) =>
    request.tool === parts.output?.tool
      ? { type: "allowed", input: request.input }
      : authorize(request, options);
  return { own, whole };
}
