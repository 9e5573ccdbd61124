import type { ToolResultBlock, UserBlock } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { version } from "../../foundation/version.ts";
import type { Session } from "../../runtime/session.ts";
import { serverStatus } from "../agent-sdk/init-message.ts";
import { sdkMessages } from "../agent-sdk/sdk-messages.ts";

/** One line of `--output-format stream-json`. */
export type OutputMessage = Readonly<Record<string, unknown>> & { readonly type: string };

export interface MessageContext {
  readonly sessionId: string;
  readonly uuid: () => string;
  /** Set on messages of a child. */
  readonly parentToolUseId?: string;
}

export interface MessageOptions {
  /** The prompts, too. */
  readonly replay: boolean;
  /** Also that a request is made. */
  readonly partial?: boolean;
}

/** The first message of a session: what was decided for it. */
export function initMessage(
  {
    plan,
    model,
    discovered,
    skills,
    mcpServers,
  }: Pick<Session, "plan" | "model" | "discovered" | "skills" | "mcpServers">,
  apiKeySource: string,
  { uuid }: MessageContext,
): OutputMessage {
  return {
    type: "system",
    subtype: "init",
    cwd: plan.directory,
    session_id: plan.sessionId,
    tools: plan.tools.map(({ name }) => name),
    mcp_servers: mcpServers().map(wireServer),
    model: plan.model.value,
    model_provider: model.provider,
    model_reason: plan.model.from,
    permissionMode: plan.policy.mode,
    apiKeySource,
    slash_commands: skills.filter(({ userInvocable }) => userInvocable).map(({ name }) => name),
    agents: discovered.registry.list().map(({ id }) => id),
    skills: skills.filter(({ source }) => source.kind === "skill").map(({ name }) => name),
    plugins: discovered.plugins
      .filter(({ enabled }) => enabled)
      .map(({ name, root }) => ({ name, path: root })),
    output_style: "default",
    ...(plan.effort === undefined ? {} : { effort: plan.effort.value }),
    retinue_version: version,
    uuid: uuid(),
  };
}

function wireServer({ name, scope, status }: ReturnType<Session["mcpServers"]>[number]) {
  const reason = "reason" in status ? { error: status.reason } : {};
  return { name, status: serverStatus[status.type], source: scope, ...reason };
}

/** What an event looks like on the stream; many events are not shown. */
export function messagesOf(
  event: RunEvent,
  options: MessageOptions,
  context: MessageContext,
): readonly OutputMessage[] {
  const own = () => ({
    parent_tool_use_id: context.parentToolUseId ?? null,
    session_id: context.sessionId,
    uuid: context.uuid(),
  });
  const system = () => ({ session_id: context.sessionId, uuid: context.uuid() });
  switch (event.type) {
    case "assistant-answered":
      return sdkMessages(event, { ...context, lineIds: () => [], partial: false });
    case "user-added":
      return userMessages(event, options).map((message) => ({ ...message, ...own() }));
    case "turn-started":
      return options.partial
        ? [{ type: "system", subtype: "status", status: "requesting", ...system() }]
        : [];
    case "model-retried":
      return [{ ...retryMessage(event), ...system() }];
    case "compaction-started":
      return [{ type: "system", subtype: "status", status: "compacting", ...system() }];
    case "context-compacted":
      return [
        { ...boundaryMessage(event), ...system() },
        { type: "system", subtype: "status", status: null, compact_result: "success", ...system() },
      ];
    case "agents-interrupted":
      return [{ type: "system", subtype: "agents_interrupted", agents: event.agents, ...system() }];
    case "call-finished":
      if (event.denied === undefined) return [];
      return [{ ...denialMessage(event, event.denied), ...system() }];
    default:
      return [];
  }
}

/** Each result is a message of its own beside what programs keep of it; everything else follows in one message. */
function userMessages(
  { message, origin, results = {} }: Extract<RunEvent, { type: "user-added" }>,
  { replay }: MessageOptions,
): readonly OutputMessage[] {
  if (origin === "prompt") return replay ? [{ type: "user", message, isReplay: true }] : [];
  const { content } = message;
  const blocks = typeof content === "string" ? [] : content.filter(isResult);
  const rest = typeof content === "string" ? content : content.filter((block) => !isResult(block));
  const answers = blocks.map((block) => ({
    type: "user",
    message: { role: "user", content: [block] },
    ...(Object.hasOwn(results, block.tool_use_id) ? { tool_use_result: results[block.tool_use_id] } : {}),
  }));
  if (rest.length === 0) return answers;
  return [...answers, { type: "user", message: { role: "user", content: rest }, isSynthetic: true }];
}

function isResult(block: UserBlock): block is ToolResultBlock {
  return block.type === "tool_result";
}

function retryMessage(event: Extract<RunEvent, { type: "model-retried" }>): OutputMessage {
  return {
    type: "system",
    subtype: "api_retry",
    attempt: event.attempt,
    max_retries: event.maxAttempts - 1,
    retry_delay_ms: event.delayMs,
    error_status: event.status ?? null,
    error: event.message,
  };
}

function boundaryMessage(event: Extract<RunEvent, { type: "context-compacted" }>): OutputMessage {
  return {
    type: "system",
    subtype: "compact_boundary",
    compact_metadata: {
      trigger: event.trigger,
      pre_tokens: event.preTokens,
      post_tokens: event.postTokens,
      duration_ms: Math.round(event.durationMs),
    },
  };
}

function denialMessage(
  { call }: Extract<RunEvent, { type: "call-finished" }>,
  message: string,
): OutputMessage {
  return {
    type: "system",
    subtype: "permission_denied",
    tool_name: call.name,
    tool_use_id: call.id,
    message,
  };
}
