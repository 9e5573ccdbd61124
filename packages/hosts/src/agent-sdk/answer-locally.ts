import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { textOf } from "@retinue/core/conversation/message.ts";
import { noTotals } from "@retinue/core/conversation/run-event.ts";
import { blocksOf } from "@retinue/core/kernel/prompt-queue.ts";
import { findSlashCommand, readSlashCommand } from "../shared/slash-commands.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import type { QueuedPrompt } from "./queued-prompt.ts";
import { localReason, type SessionTotals } from "./result-message.ts";
import { type SdkMessage, syntheticAnswer } from "./sdk-messages.ts";

/** What a command of the session answers in place of the model. */
export interface LocalAnswer {
  /** The command, where it ran. */
  readonly command?: string;
  /** Absent where there is nothing to say, as for a note. */
  readonly text?: string;
}

export interface LocalFacts {
  readonly totals: SessionTotals;
  readonly model: string;
  readonly apiMs: number;
  readonly wallMs: number;
}

/** The name behind the slash, and the words after it. */
export function commandOf({
  content,
  verbatim,
}: Pick<QueuedPrompt, "content" | "verbatim">): readonly [name: string, words: string] | undefined {
  const [first] = blocksOf(content);
  const text = first?.type === "text" && !verbatim ? first.text.trim() : "";
  const command = readSlashCommand(text);
  return command === undefined ? undefined : [command.name, command.words];
}

/** Undefined where the prompt is one for the model. */
export function answerLocally(
  prompt: QueuedPrompt,
  session: OpenSdkSession,
  facts: LocalFacts,
): LocalAnswer | undefined {
  if (!prompt.asks) return {};
  const [name] = commandOf(prompt) ?? [];
  if (name === "cost") return { command: name, text: describeCost(facts) };
  if (name === "context") return { command: name, text: contextText(session, facts) };
  if (name === undefined || isSkill(name, session)) return undefined;
  if (findSlashCommand(name)?.needsTerminal !== true) return undefined;
  return { text: `/${name} isn't available in this environment.` };
}

/** A word with a slash that names no command here is a prompt like any other. */
export function isUnknownCommand(prompt: QueuedPrompt, session: OpenSdkSession): boolean {
  const [name] = commandOf(prompt) ?? [];
  return name !== undefined && name !== "clear" && name !== "compact" && !isSkill(name, session);
}

function isSkill(name: string, { session }: OpenSdkSession): boolean {
  return session.skills.some((skill) => skill.name === name && skill.userInvocable);
}

/** The ending of a turn that asked no model. */
export function localEnding(text = "") {
  return { status: "completed", reason: localReason, text, denials: [], totals: noTotals } as const;
}

/** What a command says, as an answer that no model gave. */
export function localMessage({ command, text = "" }: LocalAnswer, sessionId: string): SdkMessage {
  const ids = { id: randomUUID(), uuid: randomUUID(), sessionId };
  return {
    ...syntheticAnswer(text, ids, { stop_reason: "end_turn", stop_sequence: null }),
    ...(command === undefined ? {} : { local_command_run: { command, args: "" } }),
  };
}

/** What the session has cost so far, for people. */
export function describeCost({ totals, apiMs, wallMs }: Omit<LocalFacts, "model">): string {
  const { added, removed } = totals.lines();
  const models = Object.entries(totals.modelUsage()).map(([model, sums]) => {
    const { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens } = sums as JsonRecord;
    return `  ${model}: ${inputTokens} input, ${outputTokens} output, ${cacheReadInputTokens} cache read, ${cacheCreationInputTokens} cache write`;
  });
  return [
    `Total cost: $${totals.cost().toFixed(4)}`,
    `Time in requests: ${seconds(apiMs)}; in all: ${seconds(wallMs)}`,
    `Lines: ${added} added, ${removed} removed`,
    ...(models.length === 0 ? [] : ["Tokens by model:", ...models]),
  ].join("\n");
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function contextText(session: OpenSdkSession, { model }: LocalFacts): string {
  const { categories, totalTokens, maxTokens, percentage } = describeContext(session, model);
  const rows = categories.map(({ name, tokens }) => `| ${name} | ${tokens} |`);
  return [
    "## Context Usage",
    "",
    `**Model:** ${model}`,
    `**Tokens:** ${totalTokens} of ${maxTokens} (${percentage}%)`,
    "",
    "| Category | Tokens (estimated) |",
    "|---|---|",
    ...rows,
  ].join("\n");
}

/** What a prompt says, for the one place that needs its words. */
export function promptText({ content }: Pick<QueuedPrompt, "content">): string {
  return textOf({ role: "user", content });
}

/** Estimates: four characters are a token. */
function tokensOf(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4);
}

interface ContextUsage {
  readonly categories: readonly (JsonRecord & { readonly name: string; readonly tokens: number })[];
  readonly totalTokens: number;
  readonly maxTokens: number;
  readonly percentage: number;
}

/** How full the context window is, by what fills it, as far as it can be estimated without asking the provider. */
export function describeContext({ session }: OpenSdkSession, modelName: string): ContextUsage & JsonRecord {
  const { plan, model, discovered } = session;
  const messages = session.messages();
  const servers = plan.tools.filter(({ name }) => name.startsWith("mcp__"));
  const agents = discovered.registry.list().map(({ id, definition }) => ({
    agentType: id,
    source: definition.source.scope,
    tokens: tokensOf([id, definition.description]),
  }));
  const used = [
    ["system_prompt", "System prompt", tokensOf(plan.system)],
    ["mcp_tools", "MCP tools", servers.length === 0 ? 0 : tokensOf(servers)],
    ["custom_agents", "Agents", agents.reduce((sum, { tokens }) => sum + tokens, 0)],
    ["messages", "Messages", messages.length === 0 ? 0 : tokensOf(messages)],
  ] as const;
  const total = used.reduce((sum, [, , tokens]) => sum + tokens, 0);
  const free = Math.max(0, model.contextWindow - total);
  const color = "inactive";
  return {
    categories: [
      ...used.map(([id, name, tokens]) => ({ id, name, tokens, color, kind: "used" })),
      { id: "free_space", name: "Free space", tokens: free, color, kind: "free" },
    ],
    totalTokens: total,
    maxTokens: model.contextWindow,
    rawMaxTokens: model.contextWindow,
    percentage: Math.round((total / model.contextWindow) * 100),
    gridRows: [],
    model: modelName,
    memoryFiles: [],
    mcpTools: servers.map((tool) => ({
      name: tool.name,
      serverName: tool.name.split("__")[1] ?? "",
      tokens: tokensOf(tool),
    })),
    agents,
    isAutoCompactEnabled: true,
    apiUsage: null,
  };
}
