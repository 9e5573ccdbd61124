import type { ModelEvent } from "../../conversation/model-event.ts";
import type { HookWatch } from "../../hooks/hook-runner.ts";
import type { TranscriptObserver } from "../../journal/transcript-writer.ts";
import type { McpConnectionOptions } from "../../mcp/mcp-connections.ts";
import type { Model } from "../../model/model.ts";
import { ModelError } from "../../model/model-error.ts";
import type { PermissionPolicy } from "../../permissions/permission-policy.ts";
import type { SeenFile } from "../../tools/file-ledger.ts";
import type { TaskView } from "../../tools/task-source.ts";
import type { Capability } from "./capability.ts";

/** What a host may change while a session runs. Each part is read again whenever it matters. */
export interface LiveControls {
  /** The policy by which the next call of any agent of the session is decided. */
  readonly policy?: (planned: PermissionPolicy) => PermissionPolicy;
  /** The model that answers the main agent from the next request on; undefined means the one of the plan. */
  readonly model?: () => string | undefined;
  /** The model that answers a request which the chosen one could not. */
  readonly fallbackModel?: string | undefined;
  /** Called when that happens. */
  readonly fellBack?: (fallback: {
    readonly from: string;
    readonly to: string;
    readonly code: string;
  }) => void;
  /** The effort of the next request; undefined means that of the plan. */
  readonly effort?: () => string | number | undefined;
  /** Names under which the main agent's model may call tools, and what they mean. */
  readonly toolAliases?: ReadonlyMap<string, string> | undefined;
  /** Whether the run of the main agent must end after this turn; forgotten once asked. */
  readonly takeStop?: () => boolean;
  /** Answers what MCP servers want to know of the person; absent means that no one can be asked. */
  readonly elicit?: McpConnectionOptions["ask"];
  /** Files that the main agent knows without having read them, by real path. */
  readonly seenFile?: (path: string) => SeenFile | undefined;
  /** The host answers for children in the background too, so they may ask and have the tools of its servers. */
  readonly attendsBackground?: boolean;
  /** A child whose call does not say where it runs, runs in the background. */
  readonly childrenInBackground?: boolean;
  /** Follows hooks of settings, plugins and definitions. */
  readonly watchHook?: HookWatch | undefined;
  /** Called when a command in the background has started, and when it has ended. */
  readonly commandChanged?: (command: TaskView, stop: () => Promise<void>) => void;
  /** A compaction that was asked for happens however short the conversation is. */
  readonly compactsShort?: boolean;
  /** Gives ids to lines of the main transcript, and is notified of them. */
  readonly transcript?: TranscriptObserver;
}

/** What of it reaches every agent of the session: a child is decided about by the same policy. */
export function livePolicyCapability({ policy }: LiveControls): Capability {
  return policy === undefined ? {} : { policy };
}

/** What of it goes around the model of a child, which keeps its own model and effort. */
export function liveChildCapability(
  { fallbackModel, fellBack, toolAliases }: LiveControls,
  find: (name: string) => Promise<Model>,
): Capability {
  if (fallbackModel === undefined && toolAliases === undefined) return {};
  return {
    model: (planned) =>
      createLiveModel(planned, { fallbackModel, toolAliases, ...(fellBack && { fellBack }) }, find),
  };
}

/** What of it reaches the main agent alone. */
export function liveMainCapability(live: LiveControls, find: (name: string) => Promise<Model>): Capability {
  const { takeStop } = live;
  return {
    model: (planned) => createLiveModel(planned, live, find),
    ...(takeStop === undefined ? {} : { takeStop }),
  };
}

/** The model of the plan, unless the host has chosen another one meanwhile. */
function createLiveModel(
  planned: Model,
  live: Pick<LiveControls, "model" | "effort" | "toolAliases" | "fallbackModel" | "fellBack">,
  find: (name: string) => Promise<Model>,
): Model {
  let current = planned;
  return {
    get facts() {
      return current.facts;
    },
    async *stream(request, options) {
      const name = live.model?.();
      current = name === undefined ? planned : await find(name);
      const effort = live.effort?.();
      const asked = effort === undefined ? request : { ...request, effort };
      let hasBegun = false;
      try {
        for await (const event of current.stream(asked, options)) {
          hasBegun ||= event.type !== "attempt-failed";
          yield withoutAliases(event, live.toolAliases);
        }
      } catch (error) {
        const { fallbackModel } = live;
        if (
          hasBegun ||
          fallbackModel === undefined ||
          !(error instanceof ModelError) ||
          !mayAnotherAnswer(error)
        )
          throw error;
        live.fellBack?.({ from: current.facts.id, to: fallbackModel, code: error.code });
        current = await find(fallbackModel);
        for await (const event of current.stream(asked, options))
          yield withoutAliases(event, live.toolAliases);
      }
    },
  };
}

/** Whether it is the model that cannot answer now, and not the request that no model could. */
function mayAnotherAnswer(error: ModelError): boolean {
  return error.mayPass || error.code === "not-found";
}

function withoutAliases(event: ModelEvent, aliases: LiveControls["toolAliases"]): ModelEvent {
  if (aliases === undefined || event.type !== "message-ended") return event;
  const content = event.message.content.map((block) =>
    block.type === "tool_use" ? { ...block, name: aliases.get(block.name) ?? block.name } : block,
  );
  return { ...event, message: { ...event.message, content } };
}
