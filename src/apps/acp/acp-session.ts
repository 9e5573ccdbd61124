import type {
  ContentBlock,
  McpServer,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import type { UserBlock, UserMessage } from "../../conversation/message.ts";
import type { RunEnding } from "../../conversation/run-event.ts";
import { type PermissionMode, permissionModes } from "../../foundation/option-words.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { createLivePolicy, type LivePolicy } from "../../runtime/live/live-policy.ts";
import type { RuntimeOptions } from "../../runtime/options/runtime-options.ts";
import { projectPaths } from "../../runtime/project/create-project.ts";
import type { Session } from "../../runtime/session.ts";
import { createHostPermission } from "../agent-sdk/create-host-permission.ts";
import { createPlanModeTools } from "../agent-sdk/create-plan-mode-tools.ts";
import { createPrintRuntime, openPrintSession, refuseOffline } from "../cli/open-print-session.ts";
import type { PrintOptions, PrintRequest } from "../cli/print-options.ts";
import type { CommandContext } from "../cli/session-options.ts";
import { acpHistory, acpUpdates } from "./acp-updates.ts";
import type { AskEditor } from "./ask-editor.ts";

export interface AcpSessionOptions {
  readonly context: CommandContext;
  readonly options: PrintOptions;
  readonly request: PrintRequest;
  readonly mcpServers: readonly McpServer[];
  readonly additionalDirectories: readonly string[];
  /** The session to open again; absent begins a new one. */
  readonly resume?: string;
  readonly send: (sessionId: string, update: SessionUpdate) => void;
  readonly ask: (sessionId: () => string) => AskEditor;
  readonly mayBypass: boolean;
}

/** One conversation of an editor. */
export interface AcpSession extends AsyncDisposable {
  readonly id: string;
  modes(): SessionModeState;
  setMode(mode: string): void;
  /** Shows what there is: the commands, and the conversation of a session that was opened again. */
  introduce(): void;
  prompt(content: readonly ContentBlock[]): Promise<StopReason>;
  cancel(): void;
}

export async function openAcpSession(given: AcpSessionOptions): Promise<AcpSession> {
  let session: Session | undefined;
  const id = (): string => session?.plan.sessionId ?? "";
  const channel = { ask: given.ask(id) };
  const policy = policyOf(given, () => session);
  const warn = (text: string): void => given.context.host.stderr.write(`retinue: ${text}\n`);
  const runtime = createPrintRuntime(given.context, given.options, {
    entrypoint: "acp",
    onWarning: warn,
    live: { policy: policy.apply },
    canUseTool: createHostPermission({
      channel,
      policy,
      mainAgentId: () => session?.plan.agent.id ?? "",
      directory: () => session?.plan.directory ?? given.context.host.cwd,
      waiting: () => undefined,
      warn,
    }),
    tools: createPlanModeTools({
      channel,
      policy,
      waiting: () => undefined,
      before: () => session?.plan.policy.mode ?? "default",
    }),
    mcpServers: serversOf(given.mcpServers),
    additionalDirectories: [...(given.context.session.addDir ?? []), ...given.additionalDirectories],
  });
  try {
    const { resume } = given;
    const options = {
      ...given.request.session,
      mentions: true,
      offlineDemo: true,
      ...(resume === undefined ? {} : { resume }),
    };
    const opened = await openPrintSession(runtime, options, new AbortController().signal);
    session = opened;
    const { model } = given.options;
    const { environment } = given.context.host;
    return wrap(opened, {
      ...given,
      policy,
      close: () => runtime.close(),
      refuse: (own) => refuseOffline(own, { model, environment }),
    });
  } catch (error) {
    await runtime.close();
    throw error;
  }
}

interface Wrapped extends Pick<AcpSessionOptions, "send" | "resume" | "mayBypass"> {
  readonly policy: LivePolicy;
  readonly close: () => Promise<void>;
  /** Refuses prompts where no real model answers. */
  readonly refuse: (session: Session) => void;
}

function wrap(session: Session, { send, resume, mayBypass, policy, close, refuse }: Wrapped): AcpSession {
  const { sessionId } = session.plan;
  const update = (each: SessionUpdate): void => send(sessionId, each);
  let running: AbortController | undefined;
  void watchChildren(session, update);
  return {
    id: sessionId,
    modes: () => ({
      currentModeId: policy.mode() ?? session.plan.policy.mode,
      availableModes: modesFor(mayBypass),
    }),
    setMode: (mode) => void policy.setMode(mode),
    introduce() {
      if (resume !== undefined) for (const each of acpHistory(session.messages())) update(each);
      const commands = session.skills.filter(({ userInvocable }) => userInvocable);
      update({
        sessionUpdate: "available_commands_update",
        availableCommands: commands.map(({ name, description }) => ({ name, description })),
      });
    },
    async prompt(content) {
      if (running !== undefined)
        throw new RetinueError("session-busy", "The session still works on the prompt before this one.");
      running = new AbortController();
      try {
        refuse(session);
        return await run(session, { content, update, signal: running.signal });
      } finally {
        running = undefined;
      }
    },
    cancel: () => running?.abort(new RetinueError("aborted", "The editor cancelled the turn.")),
    async [Symbol.asyncDispose]() {
      running?.abort(new RetinueError("session-closed", "The session was closed."));
      await session.close();
      await close();
    },
  };
}

interface AcpTurn {
  readonly content: readonly ContentBlock[];
  readonly update: (update: SessionUpdate) => void;
  readonly signal: AbortSignal;
}

async function run(session: Session, { content, update, signal }: AcpTurn): Promise<StopReason> {
  for await (const event of session.stream(promptOf(content), signal)) {
    if (event.type === "run-ended") return stopReason(event.ending, signal);
    for (const each of acpUpdates(event)) update(each);
  }
  throw new RetinueError("run-without-end", "The run ended without saying how.");
}

/** A call that an agent works for shows what that agent does now. */
async function watchChildren(session: Session, update: (update: SessionUpdate) => void): Promise<void> {
  for await (const { event, state } of session.tasks.watch()) {
    if (event.type !== "call-started" || state.callId === undefined) continue;
    const text = `${state.agentType}: ${state.activity}`;
    const content = [{ type: "content", content: { type: "text", text } } as const];
    update({ sessionUpdate: "tool_call_update", toolCallId: state.callId, content });
  }
}

function stopReason({ status, reason, error }: RunEnding, signal: AbortSignal): StopReason {
  if (signal.aborted) return "cancelled";
  if (reason === "refusal") return "refusal";
  if (reason === "max_tokens") return "max_tokens";
  if (reason === "max_turns") return "max_turn_requests";
  if (status === "completed") return "end_turn";
  throw new RetinueError(reason, error ?? `The run was ${status}.`);
}

/** Files that an editor names by their address are mentioned by their path; what it embeds is put in. */
function promptOf(content: readonly ContentBlock[]): UserMessage["content"] {
  return content.map((block): UserBlock => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "image") {
      const { mimeType, data } = block;
      return { type: "image", source: { type: "base64", media_type: mimeType, data } };
    }
    if (block.type === "resource_link") return { type: "text", text: nameOf(block.uri) };
    if (block.type === "resource" && "text" in block.resource)
      return { type: "text", text: `${nameOf(block.resource.uri)}:\n${block.resource.text}` };
    throw new RetinueError("unsupported-content", `A prompt cannot hold a block of the type ${block.type}.`);
  });
}

function nameOf(uri: string): string {
  return uri.startsWith("file://") ? decodeURIComponent(new URL(uri).pathname) : uri;
}

const modeNames: ReadonlyMap<PermissionMode, string> = new Map([
  ["default", "Ask before changes"],
  ["acceptEdits", "Accept edits"],
  ["plan", "Plan only"],
  ["dontAsk", "Deny what no rule allows"],
  ["bypassPermissions", "Allow everything that no rule denies"],
]);

function modesFor(mayBypass: boolean): SessionModeState["availableModes"] {
  return permissionModes.flatMap((id) => {
    const name = modeNames.get(id);
    return name === undefined || (id === "bypassPermissions" && !mayBypass) ? [] : [{ id, name }];
  });
}

function policyOf(given: AcpSessionOptions, session: () => Session | undefined): LivePolicy {
  const { host } = given.context;
  return createLivePolicy({
    directory: () => host.cwd,
    mayBypass: () => given.mayBypass,
    initialMode: () => session()?.plan.policy.mode ?? "default",
    modeChanged(mode) {
      const id = session()?.plan.sessionId;
      if (id !== undefined) given.send(id, { sessionUpdate: "current_mode_update", currentModeId: mode });
    },
    paths: async () => session()?.discovered.paths ?? projectPaths({ ...host, env: host.environment }),
  });
}

/** The servers of an editor in the form of an `.mcp.json`. */
function serversOf(servers: readonly McpServer[]): NonNullable<RuntimeOptions["mcpServers"]> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    servers.map((server) => {
      if ("command" in server) {
        const { name, command, args, env } = server;
        return [name, { type: "stdio", command, args, env: pairs(env) }];
      }
      const { name, type, url, headers } = server;
      return [name, { type, url, headers: pairs(headers) }];
    }),
  );
}
