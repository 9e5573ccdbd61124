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
  return { name, status: serverStatus(status), source: scope, ...reason };
}

/** What an event looks like on the stream; many events are not shown. */
export function messagesOf(
  event: RunEvent,
  { replay, partial = false }: MessageOptions,
  { sessionId, uuid, parentToolUseId }: MessageContext,
): readonly OutputMessage[] {
  if (event.type !== "user-added" || event.origin !== "prompt")
    return sdkMessages(event, {
      sessionId,
      uuid,
      partial,
      lineIds: () => [],
      isComplete: true,
      ...(parentToolUseId === undefined ? {} : { parentToolUseId }),
    });
  const own = { parent_tool_use_id: parentToolUseId ?? null, session_id: sessionId };
  return replay ? [{ type: "user", message: event.message, isReplay: true, ...own, uuid: uuid() }] : [];
}
