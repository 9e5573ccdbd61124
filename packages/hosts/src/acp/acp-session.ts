import type {
  ClientCapabilities,
  ContentBlock,
  ElicitationRequestScope,
  McpServer,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import { effortLevels, type PermissionMode, permissionModes } from "@retinue/base/foundation/option-words.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "@retinue/core/conversation/agent-event.ts";
import { textOf, type UserBlock } from "@retinue/core/conversation/message.ts";
import type { Agent, AgentTree } from "@retinue/core/kernel/agent-tree.ts";
import { runPrompt } from "@retinue/core/kernel/agent-tree.ts";
import { modelChoices } from "@retinue/core/kernel/model-choices.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import { thrownError } from "@retinue/core/kernel/turn-driver.ts";
import type { AgentEvent, PromptOutcome } from "@retinue/core/protocol/agent-event.ts";
import { type AgentState, contextAfter } from "@retinue/core/protocol/agent-state.ts";
import type { Answer, Question } from "@retinue/core/protocol/question.ts";
import { answerQuestions } from "../shared/answer-questions.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { createPrintRuntime, openPrintTree, refuseOffline } from "../shared/open-print-session.ts";
import type { PrintRequest } from "../shared/print-options.ts";
import { programCommands, skillCommands } from "../shared/slash-commands.ts";
import { acpHistory, acpUpdates, agentText } from "./acp-updates.ts";
import { answerByEditor, type EditorRequests } from "./answer-by-editor.ts";

export interface AcpSessionOptions extends EditorRequests {
  readonly context: CommandContext;
  readonly options: RunFlags;
  readonly request: PrintRequest;
  readonly mcpServers: readonly McpServer[];
  readonly additionalDirectories: readonly string[];
  /** The session to open again; absent begins a new one. */
  readonly resume: string | undefined;
  readonly send: (sessionId: string, update: SessionUpdate) => void;
  readonly capabilities: ClientCapabilities;
  readonly mayBypass: boolean;
  /** The request of the editor that opens it. */
  readonly requestId: ElicitationRequestScope["requestId"];
}

/** One conversation of an editor. */
export interface AcpSession extends AsyncDisposable {
  readonly id: string;
  modes(): SessionModeState;
  options(): SessionConfigOption[];
  /** Rejects where the option or the value is none of those that were offered. */
  choose(id: string, value: unknown): Promise<void>;
  setMode(mode: string): Promise<void>;
  /** Shows what there is: the commands, and where it is wanted the conversation so far. */
  introduce(showsHistory: boolean): void;
  /** One that comes during a turn waits for its end. */
  prompt(content: readonly ContentBlock[]): Promise<StopReason>;
  /** Ends the turn, and takes back the prompts that wait for it. */
  cancel(): void;
}

export async function openAcpSession(given: AcpSessionOptions): Promise<AcpSession> {
  const { context, options, resume, request } = given;
  const { host } = context;
  const runtime = createPrintRuntime(context, options, {
    entrypoint: "acp",
    mcpServers: serversOf(given.mcpServers),
    additionalDirectories: [...(context.session.addDir ?? []), ...given.additionalDirectories],
  });
  let tree: AgentTree | undefined;
  const view = new EditorView(given, () => tree);
  try {
    const opened = await openPrintTree({
      runtime,
      session: { ...request.session, mentions: true, offlineDemo: true, ...(resume && { resume }) },
      asks: {
        permissions: "program",
        plans: "program",
        elicitations: true,
        forms: isSupported(given.capabilities.elicitation?.form),
      },
      changesRights: "tree",
      mayBypass: () => given.mayBypass,
      directory: () => host.cwd,
      paths: async () => tree?.facts.discovered.paths ?? projectPaths({ ...host, env: host.environment }),
      live: { compactsShort: true },
      onEvent: (event, submit) => view.show(event, submit),
      prepare({ prompt }) {
        const model = tree?.status().model ?? options.model;
        if (tree !== undefined) refuseOffline(tree.facts, { model, environment: host.environment });
        return prompt;
      },
    });
    tree = opened;
    const { main } = opened;
    const setMode = async (mode: string): Promise<void> => {
      // What is no mode is refused by the policy.
      await main.submit({ type: "configure", mode: mode as PermissionMode });
    };
    return {
      id: opened.sessionId,
      modes: () => modesOf(opened, given),
      options: () => configOptions(opened, given),
      setMode,
      async choose(id, value) {
        const chosen = readChoice(configOptions(opened, given), id, value);
        if (id === "mode") return setMode(chosen);
        await main.submit({ type: "configure", [id]: chosen === planned ? null : chosen });
      },
      introduce(showsHistory) {
        if (showsHistory) for (const each of acpHistory(opened.facts.messages())) view.update(each);
        view.update({ sessionUpdate: "available_commands_update", availableCommands: commandsOf(opened) });
      },
      async prompt(content) {
        const outcome = await runPrompt(opened, { content: promptOf(content) });
        return stopReason(outcome, view.isCancelled);
      },
      cancel() {
        void main.submit({ type: "withdraw" });
        void main.submit({ type: "interrupt", reason: "The editor cancelled the turn." });
      },
      async [Symbol.asyncDispose]() {
        await opened.close();
        await runtime.close();
      },
    };
  } catch (error) {
    await runtime.close();
    throw error;
  }
}

/** Shows the editor what happens in a tree, and puts its questions to the person there. */
class EditorView {
  readonly #given: AcpSessionOptions;
  readonly #tree: () => AgentTree | undefined;
  /** A question was closed by the person, which ends the turn that asked it. */
  isCancelled = false;
  readonly #answerQuestions = answerQuestions((question, signal) => this.#answer(question, signal));
  #hasText = false;
  #compactions = 0;
  #firstPrompt: string | undefined;

  constructor(given: AcpSessionOptions, tree: () => AgentTree | undefined) {
    this.#given = given;
    this.#tree = tree;
  }

  update(update: SessionUpdate): void {
    const tree = this.#tree();
    if (tree !== undefined) this.#given.send(tree.sessionId, update);
  }

  show(event: AgentEvent, submit: Agent["submit"]): void {
    const tree = this.#tree();
    if (event.type === "notice") this.#notice(event.text);
    this.#answerQuestions(event, submit);
    if (tree === undefined) return;
    if (event.agentId === mainAgentId) this.#showMain(event, tree);
    else if (event.type === "call-started") this.#showChild(tree.get(event.agentId)?.state());
  }

  #notice(text: string): void {
    const { capabilities, context } = this.#given;
    if (isSupported(capabilities.session?.notices) && this.#tree() !== undefined)
      this.update({ sessionUpdate: "notice", severity: "warning", title: text });
    else context.host.stderr.write(`retinue: ${text}\n`);
  }

  async #answer(question: Question, signal: AbortSignal): Promise<Answer> {
    const tree = this.#tree();
    const { requestId, context } = this.#given;
    const answer = await answerByEditor(question, {
      editor: this.#given,
      scope: tree === undefined ? { requestId } : { sessionId: tree.sessionId },
      directory: tree?.facts.plan.directory ?? context.host.cwd,
      signal,
    });
    this.isCancelled ||= answer.type === "deny" && answer.stop === true;
    return answer;
  }

  /** A call that an agent works for shows what that agent does now. */
  #showChild(state: AgentState | undefined): void {
    if (state?.callId === undefined) return;
    const text = `${state.agentType}: ${state.activity}`;
    const content = [{ type: "content", content: { type: "text", text } } as const];
    this.update({ sessionUpdate: "tool_call_update", toolCallId: state.callId, content });
  }

  #showMain(event: AgentEvent, tree: AgentTree): void {
    if (event.type === "status-changed" && event.status.mode !== undefined) {
      this.update({ sessionUpdate: "current_mode_update", currentModeId: event.status.mode });
      this.update({
        sessionUpdate: "config_option_update",
        configOptions: configOptions(tree, this.#given),
      });
    }
    if (event.type === "prompt-started") {
      this.isCancelled = false;
      this.#hasText = false;
      if (tree.facts.messages().length === 0) this.#firstPrompt ??= titleOf(event.content);
    }
    const shown = [...acpUpdates(event), ...this.#compaction(event), ...usageOf(event, tree)];
    this.#hasText ||= shown.some(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
    for (const each of shown) this.update(each);
    if (event.type !== "run-ended") return;
    // Nothing was asked of a model, as when there was nothing to compact.
    if (!this.#hasText && event.ending.text !== "") this.update(agentText(event.ending.text));
    // A session is called by its first prompt until it is given a title.
    const title = tree.status().title ?? this.#firstPrompt;
    const updatedAt = new Date().toISOString();
    this.update({ sessionUpdate: "session_info_update", updatedAt, title });
  }

  /** A compaction as the editor can show it: as one, or in words. */
  #compaction(event: AgentEvent): readonly SessionUpdate[] {
    const isShown = isSupported(this.#given.capabilities.session?.compaction);
    if (event.type === "compaction-started") this.#compactions += 1;
    const compactionId = `compaction-${this.#compactions}`;
    const about = { sessionUpdate: "compaction_update", compactionId } as const;
    if (event.type === "compaction-started") return isShown ? [{ ...about, status: "in_progress" }] : [];
    if (event.type !== "context-compacted") return [];
    const { preTokens, postTokens, summary } = event;
    if (isShown)
      return [{ ...about, status: "completed", summary: [{ type: "text", text: textOf(summary) }] }];
    return [agentText(`The conversation was compacted from ${preTokens} to ${postTokens} tokens.`)];
  }
}

export function isSupported(capability: object | null | undefined): boolean {
  return capability !== undefined && capability !== null;
}

/** How full the window is after each answer, and what the main agent has cost so far. */
function usageOf(event: AgentEvent, tree: AgentTree): readonly SessionUpdate[] {
  if (event.type !== "assistant-answered" && event.type !== "context-compacted") return [];
  const own = tree.totals().agents.find(({ agentId }) => agentId === mainAgentId);
  const amount = own?.totals.costUsd;
  const cost = amount === undefined ? {} : { cost: { amount, currency: "USD" } };
  const used = contextAfter(event) ?? 0;
  return [{ sessionUpdate: "usage_update", used, size: tree.facts.model.contextWindow, ...cost }];
}

const maxTitle = 200;

function titleOf(content: Extract<AgentEvent, { type: "prompt-started" }>["content"]): string | undefined {
  const text = textOf({ role: "user", content }).replace(/\s+/g, " ").trim();
  if (text === "") return undefined;
  return text.length > maxTitle ? `${text.slice(0, maxTitle - 1)}…` : text;
}

function stopReason(outcome: PromptOutcome, isCancelled: boolean): StopReason {
  if (outcome.outcome === "withdrawn") return "cancelled";
  if (outcome.outcome === "failed") throw thrownError(outcome.error);
  const { status, reason, error } = outcome.ending;
  if (outcome.isInterrupted || isCancelled) return "cancelled";
  if (reason === "refusal") return "refusal";
  if (reason === "max_tokens") return "max_tokens";
  if (reason === "max_turns") return "max_turn_requests";
  if (status === "completed") return "end_turn";
  throw new RetinueError(reason, error ?? `The run was ${status}.`);
}

/** Of the commands of a conversation, an editor has use for `/compact` alone. */
function commandsOf({ facts: { skills } }: AgentTree) {
  const own = programCommands
    .filter(({ name }) => name === "compact")
    .map(({ name, description, argument }) => ({ name, description, argumentHint: argument }));
  return [...own, ...skillCommands(skills)].map(({ name, description, argumentHint: hint }) => ({
    name,
    description,
    input: hint === undefined ? undefined : { hint },
  }));
}

/** Files that an editor names by their address are mentioned by their path; what it embeds is put in. */
function promptOf(content: readonly ContentBlock[]): readonly UserBlock[] {
  if (content.every((block) => block.type === "text" && block.text.trim() === ""))
    throw new RetinueError("no-prompt", "No prompt was given.", {
      advice: "Send at least one block with text, an image or a resource.",
    });
  return content.map((block): UserBlock => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "image")
      return { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } };
    if (block.type === "resource_link") return { type: "text", text: nameOf(block.uri) };
    if (block.type === "resource" && "text" in block.resource)
      return { type: "text", text: `${nameOf(block.resource.uri)}:\n${block.resource.text}` };
    throw new RetinueError(
      "unsupported-content",
      `A prompt cannot contain a block of the type ${block.type}.`,
    );
  });
}

function nameOf(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  try {
    return decodeURIComponent(new URL(uri).pathname);
  } catch {
    throw new RetinueError("unsupported-content", `${JSON.stringify(uri)} is not a file URL.`, {
      advice: "Write file:// and an absolute path, percent-encoded.",
    });
  }
}

/** The servers of an editor in the form of an `.mcp.json`. */
function serversOf(servers: readonly McpServer[]): NonNullable<RuntimeOptions["mcpServers"]> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    servers.map(({ name, ...server }) => [
      name,
      "command" in server
        ? { type: "stdio", command: server.command, args: server.args, env: pairs(server.env) }
        : { type: server.type, url: server.url, headers: pairs(server.headers) },
    ]),
  );
}

const modeNames: ReadonlyMap<PermissionMode, string> = new Map([
  ["default", "Ask before changes"],
  ["acceptEdits", "Accept edits"],
  ["plan", "Plan only"],
  ["dontAsk", "Deny everything that no rule allows"],
  ["bypassPermissions", "Allow everything that no rule denies"],
]);

function modesOf(tree: AgentTree, { mayBypass }: Pick<AcpSessionOptions, "mayBypass">): SessionModeState {
  const availableModes = permissionModes.flatMap((id) => {
    const name = modeNames.get(id);
    return name === undefined || (id === "bypassPermissions" && !mayBypass) ? [] : [{ id, name }];
  });
  return { currentModeId: tree.status().mode, availableModes };
}

/** Means what the session was planned with. */
const planned = "default";

function configOptions(tree: AgentTree, given: Pick<AcpSessionOptions, "mayBypass">): SessionConfigOption[] {
  const { model = planned, effort = planned } = tree.status();
  const { currentModeId, availableModes } = modesOf(tree, given);
  return [
    {
      type: "select",
      id: "mode",
      name: "Permission mode",
      category: "mode",
      currentValue: currentModeId,
      options: availableModes.map(({ id, name }) => ({ value: id, name })),
    },
    {
      type: "select",
      id: "model",
      name: "Model",
      category: "model",
      currentValue: model,
      options: modelChoices(tree.facts).map(({ value, displayName: name, description }) => ({
        value,
        name,
        description,
      })),
    },
    {
      type: "select",
      id: "effort",
      name: "Effort",
      category: "thought_level",
      currentValue: String(effort),
      options: [planned, ...effortLevels].map((value) => ({
        value,
        name: `${value.charAt(0).toUpperCase()}${value.slice(1)}`,
      })),
    },
  ];
}

function readChoice(options: readonly SessionConfigOption[], id: string, value: unknown): string {
  const option = options.find((each) => each.id === id);
  if (option?.type !== "select")
    throw new RetinueError("unknown-option", `There is no option ${JSON.stringify(id)} to set.`);
  const offered = option.options.flatMap((each) => ("value" in each ? [each.value] : []));
  if (typeof value === "string" && offered.includes(value)) return value;
  throw new RetinueError("unknown-value", `${option.name} cannot be ${JSON.stringify(value)}.`, {
    advice: `It is one of ${offered.join(", ")}.`,
  });
}
