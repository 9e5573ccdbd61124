import type {
  ClientCapabilities,
  ContentBlock,
  McpServer,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import { textOf, type UserBlock, type UserMessage } from "../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { contextTokens } from "../../conversation/usage.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { createLivePolicy, type LivePolicy } from "../../runtime/live/live-policy.ts";
import type { RuntimeOptions } from "../../runtime/options/runtime-options.ts";
import { projectPaths } from "../../runtime/project/create-project.ts";
import type { Session } from "../../runtime/session.ts";
import { createHostPermission } from "../agent-sdk/create-host-permission.ts";
import { createPlanModeTools } from "../agent-sdk/create-plan-mode-tools.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { createPrintRuntime, openPrintSession, refuseOffline } from "../shared/open-print-session.ts";
import type { PrintRequest } from "../shared/print-options.ts";
import { acpHistory, acpUpdates, agentText } from "./acp-updates.ts";
import { type AskEditor, createAskQuestions, createElicit, type EditorForms } from "./ask-editor.ts";
import { createEditorChoices, type EditorChoices } from "./editor-choices.ts";

export interface AcpSessionOptions {
  readonly context: CommandContext;
  readonly options: RunFlags;
  readonly request: PrintRequest;
  readonly mcpServers: readonly McpServer[];
  readonly additionalDirectories: readonly string[];
  /** The session to open again; absent begins a new one. */
  readonly resume?: string;
  readonly send: (sessionId: string, update: SessionUpdate) => void;
  readonly ask: (sessionId: () => string) => AskEditor;
  readonly elicit: EditorForms["elicit"];
  /** What the editor can show. */
  readonly capabilities: ClientCapabilities;
  readonly mayBypass: boolean;
}

/** One conversation of an editor. */
export interface AcpSession extends AsyncDisposable, Pick<EditorChoices, "modes" | "options"> {
  readonly id: string;
  setMode(mode: string): void;
  choose: EditorChoices["choose"];
  /** Shows what there is: the commands, and where it is wanted the conversation so far. */
  introduce(showsHistory: boolean): void;
  /** One that comes during a turn waits for its end. */
  prompt(content: readonly ContentBlock[]): Promise<StopReason>;
  /** Ends the turn, and takes back the prompts that wait for it. */
  cancel(): void;
}

export async function openAcpSession(given: AcpSessionOptions): Promise<AcpSession> {
  let session: Session | undefined;
  const id = (): string => session?.plan.sessionId ?? "";
  const state: SessionState = { isClosed: false, cost: 0, title: undefined };
  const channel = { ask: given.ask(id) };
  const update = (each: SessionUpdate): void => {
    if (session !== undefined) given.send(id(), each);
  };
  const policy = policyOf(given, () => session, {
    modeChanged(mode) {
      update({ sessionUpdate: "current_mode_update", currentModeId: mode });
      update({ sessionUpdate: "config_option_update", configOptions: choices.options() });
    },
  });
  const choices = createEditorChoices({ policy, mayBypass: given.mayBypass, session: () => session });
  const warn = (text: string): void => {
    if (isSupported(given.capabilities.session?.notices) && session !== undefined)
      update({ sessionUpdate: "notice", severity: "warning", title: text });
    else given.context.host.stderr.write(`retinue: ${text}\n`);
  };
  const forms = { sessionId: id, capabilities: given.capabilities.elicitation, elicit: given.elicit };
  const ask = createAskQuestions(forms);
  const runtime = createPrintRuntime(given.context, given.options, {
    entrypoint: "acp",
    onWarning: warn,
    live: {
      policy: policy.apply,
      model: choices.model,
      effort: choices.effort,
      elicit: createElicit(forms),
      compactsShort: true,
      transcript: {
        titled(title) {
          state.title = title;
        },
      },
    },
    ...(ask === undefined ? {} : { host: { ask } }),
    canUseTool: createHostPermission({
      channel,
      policy,
      mainAgentId: () => session?.plan.agent.id ?? "",
      directory: () => session?.plan.directory ?? given.context.host.cwd,
      waiting: () => undefined,
      warn,
      refusedForGood() {
        state.isClosed = true;
      },
    }),
    tools: [
      "default",
      ...createPlanModeTools({
        channel,
        policy,
        waiting: () => undefined,
        before: () => session?.plan.policy.mode ?? "default",
      }),
    ],
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
    session = await openPrintSession(runtime, options, new AbortController().signal);
    return wrap(session, { ...given, policy, choices, state, update, close: () => runtime.close() });
  } catch (error) {
    await runtime.close();
    throw error;
  }
}

interface SessionState {
  /** The person closed a question, which ends the turn that asked it. */
  isClosed: boolean;
  /** US dollars so far; undefined once the price of a model was not known. */
  cost: number | undefined;
  title: string | undefined;
}

function isSupported(capability: object | null | undefined): boolean {
  return capability !== undefined && capability !== null;
}

interface Wrapped extends AcpSessionOptions {
  readonly policy: LivePolicy;
  readonly choices: EditorChoices;
  readonly state: SessionState;
  readonly update: (update: SessionUpdate) => void;
  readonly close: () => Promise<void>;
}

function wrap(session: Session, parts: Wrapped): AcpSession {
  const { policy, choices, update } = parts;
  const turns = new Set<AbortController>();
  let before: Promise<unknown> = Promise.resolve();
  const stop = (code: string, text: string): void => {
    for (const turn of turns) turn.abort(new RetinueError(code, text));
  };
  void watchChildren(session, update);
  return {
    id: session.plan.sessionId,
    modes: choices.modes,
    options: choices.options,
    setMode: (mode) => void policy.setMode(mode),
    choose: choices.choose,
    introduce(showsHistory) {
      if (showsHistory) for (const each of acpHistory(session.messages())) update(each);
      update({ sessionUpdate: "available_commands_update", availableCommands: commandsOf(session) });
    },
    async prompt(content) {
      const turn = new AbortController();
      turns.add(turn);
      const waited = before;
      const { promise, resolve } = Promise.withResolvers<void>();
      before = promise;
      try {
        await waited;
        if (turn.signal.aborted) return "cancelled";
        const { model } = parts.options;
        const { environment } = parts.context.host;
        refuseOffline(session, { model: choices.model() ?? model, environment });
        return await run(session, { content, parts, signal: turn.signal });
      } finally {
        turns.delete(turn);
        resolve();
      }
    },
    cancel: () => stop("aborted", "The editor cancelled the turn."),
    async [Symbol.asyncDispose]() {
      stop("session-closed", "The session was closed.");
      await session.close();
      await parts.close();
    },
  };
}

function commandsOf({ skills }: Session) {
  const own = skills.filter(({ userInvocable }) => userInvocable);
  return [
    {
      name: "compact",
      description: "Replaces the older part of the conversation by a summary.",
      input: { hint: "what the summary should dwell on" },
    },
    ...own.map(({ name, description, argumentHint }) => ({
      name,
      description,
      ...(argumentHint === undefined ? {} : { input: { hint: argumentHint } }),
    })),
  ];
}

interface AcpTurn {
  readonly content: readonly ContentBlock[];
  readonly parts: Wrapped;
  readonly signal: AbortSignal;
}

async function run(session: Session, { content, parts, signal }: AcpTurn): Promise<StopReason> {
  const { state, update } = parts;
  const compaction = createCompactionUpdates(parts.capabilities);
  const prompt = promptOf(content);
  state.isClosed = false;
  // A session is called by its first prompt until it is given a title.
  if (session.messages().length === 0) state.title ??= titleOf(prompt);
  let hasSpoken = false;
  for await (const event of session.stream(prompt, signal)) {
    if (event.type === "run-ended") {
      const { text } = event.ending;
      // Nothing was asked of a model, as when there was nothing to compact.
      if (!hasSpoken && text !== "") update(agentText(text));
      update(infoOf(state));
      return stopReason(event.ending, signal.aborted || state.isClosed);
    }
    const own = [...acpUpdates(event), ...compaction(event), ...usageOf(event, session, state)];
    hasSpoken ||= own.some(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
    for (const each of own) update(each);
  }
  throw new RetinueError("run-without-end", "The run ended without saying how.");
}

/** How full the window is after each answer, and what the session has cost so far. */
function usageOf(event: RunEvent, { model }: Session, state: SessionState): readonly SessionUpdate[] {
  if (event.type !== "assistant-answered" && event.type !== "context-compacted") return [];
  const { costUsd, usage } = event;
  state.cost = costUsd === undefined || state.cost === undefined ? undefined : state.cost + costUsd;
  const used =
    event.type === "context-compacted" ? event.postTokens : contextTokens(usage) + usage.outputTokens;
  const cost = state.cost === undefined ? {} : { cost: { amount: state.cost, currency: "USD" } };
  return [{ sessionUpdate: "usage_update", used, size: model.contextWindow, ...cost }];
}

function infoOf({ title }: SessionState): SessionUpdate {
  const updatedAt = new Date().toISOString();
  return { sessionUpdate: "session_info_update", updatedAt, ...(title === undefined ? {} : { title }) };
}

function titleOf(content: UserMessage["content"]): string | undefined {
  const text = textOf({ role: "user", content }).replace(/\s+/g, " ").trim();
  if (text === "") return undefined;
  return text.length > maxTitle ? `${text.slice(0, maxTitle - 1)}…` : text;
}

const maxTitle = 200;

/** A compaction as the editor can show it: as one, or in words. */
function createCompactionUpdates({ session }: ClientCapabilities) {
  const isShown = isSupported(session?.compaction);
  let count = 0;
  return (event: RunEvent): readonly SessionUpdate[] => {
    if (event.type !== "compaction-started" && event.type !== "context-compacted") return [];
    if (event.type === "compaction-started") count += 1;
    const about = { sessionUpdate: "compaction_update", compactionId: `compaction-${count}` } as const;
    if (event.type === "compaction-started") return isShown ? [{ ...about, status: "in_progress" }] : [];
    const text = textOf(event.summary);
    if (isShown) return [{ ...about, status: "completed", summary: [{ type: "text", text }] }];
    const { preTokens, postTokens } = event;
    return [agentText(`The conversation was compacted from ${preTokens} to ${postTokens} tokens.`)];
  };
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

function stopReason({ status, reason, error }: RunEnding, isCancelled: boolean): StopReason {
  if (isCancelled) return "cancelled";
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

function policyOf(
  given: AcpSessionOptions,
  session: () => Session | undefined,
  { modeChanged }: { readonly modeChanged: (mode: string) => void },
): LivePolicy {
  const { host } = given.context;
  return createLivePolicy({
    directory: () => host.cwd,
    mayBypass: () => given.mayBypass,
    initialMode: () => session()?.plan.policy.mode ?? "default",
    modeChanged,
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
