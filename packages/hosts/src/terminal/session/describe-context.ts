import {
  estimateMessageTokens,
  estimateRequestTokens,
  estimateTextTokens,
} from "@retinue/core/conversation/estimate-request-tokens.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { formatTokens, plural } from "../../shared/format.ts";

interface ContextPart {
  readonly name: string;
  readonly tokens: number;
  readonly detail?: string;
}

const barWidth = 24;

/** What fills the model's window, as a page: what of it, how much, and what it is made of. */
export async function describeContext(session: TreeFacts): Promise<string> {
  const { model } = session;
  const parts = await contextParts(session);
  const used = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const all = [...parts, { name: "free", tokens: Math.max(0, model.contextWindow - used) }];
  const widest = Math.max(...all.map(({ name }) => name.length));
  const most = Math.max(1, ...parts.map(({ tokens }) => tokens));
  const lines = all.map(({ name, tokens, detail = "" }: ContextPart) => {
    const share = `${((tokens / model.contextWindow) * 100).toFixed(1)} %`;
    const cells = name === "free" ? 0 : Math.ceil((tokens / most) * barWidth);
    const bar = (tokens === 0 ? "" : "█".repeat(cells)).padEnd(barWidth);
    return `${name.padEnd(widest)}  ${formatTokens(tokens).padStart(6)}  ${share.padStart(6)}  ${bar}  ${detail}`.trimEnd();
  });
  return [
    `The window of ${model.id} holds ${formatTokens(model.contextWindow)} tokens; ${formatTokens(used)} of them are taken. Estimates:`,
    "",
    ...lines,
    "",
    "/compact replaces the older part of the conversation by a summary.",
  ].join("\n");
}

async function contextParts(session: TreeFacts): Promise<readonly ContextPart[]> {
  const { plan } = session;
  const memory = plan.system.filter(isMemory);
  const messages = session.messages();
  const results = messages.filter(holdsResults);
  return [
    { name: "system prompt", tokens: textTokens(plan.system.filter((text) => !isMemory(text))) },
    { name: "instructions, memory", tokens: textTokens(memory) },
    ...(await toolParts(session)),
    {
      name: "messages",
      tokens: messageTokens(messages) - messageTokens(results),
      detail: plural(messages.length, "message"),
    },
    { name: "results of tools", tokens: messageTokens(results) },
  ];
}

/** Instructions of the project and of the person, and what agents noted. */
export function isMemory(part: string): boolean {
  return /^#\s.*(instruction|memory)/im.test(part);
}

/** The tools of the program, and those of each server. */
async function toolParts(session: TreeFacts): Promise<readonly ContextPart[]> {
  const found = await session.toolsOf();
  const tools = found.map(({ name, description, inputSchema = {} }) => ({ name, description, inputSchema }));
  const isSearched = tools.some(({ name }) => name === "ToolSearch");
  const groups = Map.groupBy(tools, ({ name }) =>
    name.startsWith("mcp__") ? (name.split("__")[1] ?? "") : "",
  );
  return [...groups].map(([server, own]) => {
    const isWaiting = isSearched && server !== "";
    return {
      name: server === "" ? "tools" : `tools of ${server}`,
      tokens: isWaiting ? 0 : estimateRequestTokens({ system: [], tools: own, messages: [] }),
      detail: `${plural(own.length, "tool")}${isWaiting ? ", found on demand" : ""}`,
    };
  });
}

function textTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + estimateTextTokens(text), 0);
}

function messageTokens(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0);
}

function holdsResults({ content }: Message): boolean {
  return typeof content !== "string" && content.some(({ type }) => type === "tool_result");
}
