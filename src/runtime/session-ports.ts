import type { Message } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { Model, ServerTool } from "../model/model.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import { type AdmitDependencies, createAdmit } from "./admit.ts";
import type { Children } from "./open-children.ts";
import type { SessionHooks } from "./session-hooks.ts";
import type { TypedOutput } from "./typed-output.ts";

/** Everything a session is made of; putting it together did the I/O. */
export interface SessionParts extends AdmitDependencies {
  readonly discovered: DiscoveredAgents;
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly serverTools?: readonly ServerTool[];
  readonly history: readonly Message[];
  readonly toolContext: (call: {
    readonly callId: string;
    readonly signal: AbortSignal;
    readonly progress: (text: string) => void;
  }) => ToolContext;
  readonly now: () => number;
  /** How many calls run together. */
  readonly atOnce?: number | undefined;
  /** Writes an event down before the next one is asked for. */
  readonly record: (event: RunEvent) => void;
  readonly output?: TypedOutput;
  readonly hooks?: SessionHooks;
  /** Absent for agents that can have none. */
  readonly children?: Children;
  readonly dispose: () => Promise<void>;
}

/** What only the main agent of a session has. */
export interface MainParts extends SessionParts {
  readonly children: Children;
  readonly tasks: TaskManager;
}

export function createPorts(parts: SessionParts): LoopPorts {
  const { output, hooks } = parts;
  const stop = createStopMark(hooks?.takeStop);
  return {
    model: parts.model,
    tools: output === undefined ? parts.tools : [...parts.tools, output.tool],
    ...(parts.serverTools === undefined ? {} : { serverTools: parts.serverTools }),
    admit: stop.watch(admitWithOutput(parts)),
    isStopped: stop.take,
    toolContext: (callId, options) => parts.toolContext({ callId, ...options }),
    takeMessages: () => [...(hooks?.takeMessages() ?? []), ...(parts.children?.takeMessages() ?? [])],
    ...(hooks === undefined ? {} : { afterCall: hooks.afterCall }),
    // Children in the background are waited for before hooks hear that the work is over.
    async beforeEnd(text, options) {
      return (await parts.children?.beforeEnd(options.signal)) ?? (await hooks?.beforeEnd(text, options));
    },
    ...(output === undefined
      ? {}
      : { isFinished: () => output.value() !== undefined || output.hasGivenUp() }),
    ...(parts.atOnce === undefined ? {} : { atOnce: parts.atOnce }),
    now: parts.now,
  };
}

/** Remembers that a person or a hook wants the run to end, until the loop has asked: the next prompt starts anew. */
function createStopMark(takeStop: () => boolean = () => false) {
  let isWanted = false;
  return {
    watch:
      (admit: LoopPorts["admit"]): LoopPorts["admit"] =>
      async (request, options) => {
        const admission = await admit(request, options);
        isWanted ||= admission.type === "denied" && admission.stops === true;
        return admission;
      },
    take(): boolean {
      const wanted = takeStop() || isWanted;
      isWanted = false;
      return wanted;
    },
  };
}

/** Handing in the result is no action in the world and needs no permission. */
function admitWithOutput(parts: SessionParts): LoopPorts["admit"] {
  const { hooks } = parts;
  const own = createAdmit(
    hooks === undefined ? parts : { ...parts, beforeAsk: hooks.beforeAsk, onAsk: hooks.notify },
  );
  const admit = hooks === undefined ? own : hooks.wrapAdmit(own);
  return async (request, options) =>
    request.tool === parts.output?.tool ? { type: "allowed", input: request.input } : admit(request, options);
}
