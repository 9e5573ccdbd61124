// @io

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import { type TextBlock, textOf, type UserBlock, type UserMessage } from "../conversation/message.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { maySpawn } from "../planning/plan-tools.ts";
import type { OpenAgent } from "../tasks/run-agent.ts";
import type { AgentSkills } from "./agent/agent-skills.ts";
import { type SlashCommand, withExpansion } from "./agent/session-skills.ts";
import type { SessionParts } from "./conversation.ts";
import { stoppedEnding } from "./run-handle.ts";

type Content = UserMessage["content"];

type ReadyPrompt =
  | { readonly type: "ready"; readonly content: Content }
  /** It reaches no model. */
  | { readonly type: "ended"; readonly ending: RunEnding };

/** What becomes of a prompt before the model sees it: hooks receive it as written, then the skill it calls is put in. */
export async function preparePrompt(
  {
    content,
    first,
    verbatim,
  }: { readonly content: Content; readonly first: Content; readonly verbatim: boolean },
  parts: Pick<SessionParts, "slashCommands" | "mentions" | "agent" | "services"> & {
    readonly opened: OpenAgent;
  },
  signal: AbortSignal,
): Promise<ReadyPrompt> {
  const { skills } = parts.agent;
  const command = parts.slashCommands && !verbatim ? await skills?.findCommand(content) : undefined;
  if (command?.type === "unknown")
    return { type: "ended", ending: unansweredEnding("unknown_command", command.reason) };
  const received = await parts.opened.prepare(first, signal);
  if (received.type === "blocked") {
    const error = `A hook refused the prompt: ${received.reason}`;
    return { type: "ended", ending: unansweredEnding("prompt_blocked", error) };
  }
  if (command !== undefined && skills !== undefined)
    return expand(received.content, { command, skills, parts, signal });
  if (verbatim) return received;
  const { opened } = parts;
  const { discovered } = parts.services.runtime;
  const named =
    parts.mentions || parts.slashCommands ? namedAgents(received.content, { discovered, opened }) : [];
  const attached = parts.mentions ? await attachMentions(received.content, opened, signal) : received.content;
  return {
    type: "ready",
    content: withBlocks(attached, [...named, ...askedWorkflow(received.content, { discovered, opened })]),
  };
}

/** Where what a prompt names is looked for. */
interface NamedParts {
  readonly discovered: DiscoveredAgents;
  readonly opened: OpenAgent;
}

/** A person who writes this word wants the work cut up by a workflow. */
const workflowWord = /\bultracode\b/i;

function askedWorkflow(content: Content, { discovered, opened }: NamedParts): readonly TextBlock[] {
  const isWritten = workflowWord.test(textOf({ role: "user", content }));
  const isOn = discovered.settings.settings.plain.workflowKeywordTriggerEnabled !== false;
  if (!isWritten || !isOn || !opened.plan.tools.some(({ name }) => name === "Workflow")) return [];
  return [
    {
      type: "text",
      text: "<system-reminder>\nThe prompt says ultracode: the person wants this done by a workflow. Write a script for the Workflow tool that cuts the work into steps with checks between them, unless the work is too small for several agents.\n</system-reminder>",
    },
  ];
}

/** The text of the skill that a person called, in the place of the call. */
async function expand(
  content: Content,
  {
    command,
    skills,
    parts,
    signal,
  }: {
    readonly command: Extract<SlashCommand, { type: "call" }>;
    readonly skills: Pick<AgentSkills, "expand">;
    readonly parts: Pick<SessionParts, "agent">;
    readonly signal: AbortSignal;
  },
): Promise<ReadyPrompt> {
  const callId = `slash-${command.skill.name}`;
  const context = parts.agent.parts.toolContext({ callId, signal, progress: () => undefined });
  try {
    const text = await skills.expand(command, context);
    return { type: "ready", content: withExpansion(content, command.written, text) };
  } catch (error) {
    if (signal.aborted) return { type: "ended", ending: stoppedEnding(codeOf(signal.reason)) };
    const why = error instanceof Error ? error.message : String(error);
    return { type: "ended", ending: unansweredEnding("command_failed", why) };
  }
}

/** The model never saw the prompt, and neither will the next run. */
function unansweredEnding(reason: string, error: string): RunEnding {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return {
    status: "failed",
    reason,
    text: "",
    error,
    denials: [],
    totals: { usage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0 },
  };
}

function codeOf(reason: unknown): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}

type PromptContent = UserMessage["content"];

interface Mention {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** More than a person writes into one prompt; the rest stays text. */
const maxMentions = 20;

/**
 * Adds the files of the working directories that a prompt names as `@path` or `@path#L10-20`, as the agent's own Read
 * shows them. Hooks and rules decide about each like about a call of the model; what they refuse stays text.
 */
async function attachMentions(
  content: PromptContent,
  { plan, ports }: { readonly plan: AgentPlan; readonly ports: LoopPorts },
  signal: AbortSignal,
): Promise<PromptContent> {
  const tool = ports.tools.find(({ name }) => name === "Read");
  const mentions = readMentions(textOf({ role: "user", content })).slice(0, maxMentions);
  if (tool === undefined || mentions.length === 0) return content;
  const blocks: UserBlock[] = [];
  for (const [index, mention] of mentions.entries()) {
    const file = await findFile(mention.path, plan);
    if (file === undefined) continue;
    const { path: _path, ...range } = mention;
    const input = { file_path: file, ...range };
    const call = { type: "tool_use", id: `mention-${index + 1}`, name: tool.name, input } as const;
    const authorization = await ports.authorize({ call, tool, input }, { signal });
    if (authorization.type === "denied") continue;
    const { paths, allowedBy } = authorization;
    const context = ports.toolContext(call.id, {
      signal,
      progress: () => undefined,
      allowedBy,
      approvedPaths: paths,
    });
    const outcome = await tool.call(authorization.input, context);
    if (outcome.isError === true) continue;
    const shown =
      typeof outcome.content === "string"
        ? [textBlock(outcome.content)]
        : outcome.content.filter((block) => block.type !== "tool_reference");
    blocks.push(textBlock(`The prompt mentions ${mention.path}. This is what Read shows of it:`), ...shown);
  }
  return withBlocks(content, blocks);
}

function withBlocks(content: PromptContent, blocks: readonly UserBlock[]): PromptContent {
  if (blocks.length === 0) return content;
  return [...(typeof content === "string" ? [textBlock(content)] : content), ...blocks];
}

/** What the model is shown of the agents that a person names; it writes their task. What is no agent stays text. */
function namedAgents(
  content: PromptContent,
  { discovered: { registry }, opened }: NamedParts,
): readonly UserBlock[] {
  const canStart = opened.ports.tools.some(({ name }) => name === "Agent");
  const names = readAgentMentions(textOf({ role: "user", content })).slice(0, maxMentions);
  return names.flatMap((name) => {
    const found = registry.find(name);
    if (found.type === "unknown") return [];
    const { id, definition } = found.agent;
    const asked = `The person asks for the agent ${id}`;
    if (found.type === "denied")
      return [textBlock(`${asked}, which the rule ${found.rule} denies. Say so instead of doing its work.`)];
    if (!canStart || !maySpawn(opened.plan.spawn, definition))
      return [textBlock(`${asked}, which you cannot start here. Say so instead of doing its work.`)];
    return [
      textBlock(
        `${asked}. Start it with the Agent tool (subagent_type ${JSON.stringify(id)}) for what the prompt wants of it, with a task that has all it needs; do not do its work yourself.`,
      ),
    ];
  });
}

/** `@agent-name`, `@agent-plugin:name`, `@"name (agent)"`. */
export function readAgentMentions(text: string): readonly string[] {
  const found = text.matchAll(/(?:^|\s)@(?:agent-([\w:.-]+)|"([^"\n]+) \(agent\)")/g);
  const names = [...found].map(([, bare = "", quoted]) => quoted ?? bare.replace(/[.:-]+$/, ""));
  return [...new Set(names)].filter((name) => name !== "");
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}

/** `@path`, `@"a path"`, either with lines behind it. */
export function readMentions(text: string): readonly Mention[] {
  const found = text.matchAll(/(?:^|\s)@(?:"([^"\n]+)"|([^\s"]+))/g);
  const mentions = [...found].map(([, quoted, bare = ""]) => {
    const written = quoted ?? bare.replace(/[.,;:!?)\]}'`]+$/, "");
    const [, path = written, first, last] = /^(.*?)#L(\d+)(?:-L?(\d+))?$/.exec(written) ?? [];
    if (first === undefined) return { path };
    const offset = Number(first);
    return { path, offset, limit: Math.max(1, Number(last ?? first) - offset + 1) };
  });
  const unique = new Map(mentions.map((mention) => [JSON.stringify(mention), mention]));
  return [...unique.values()].filter(({ path }) => path !== "");
}

async function findFile(path: string, { directory, policy }: AgentPlan): Promise<string | undefined> {
  const home = policy.home ?? homedir();
  const file = resolve(directory, path.replace(/^~(?=\/|$)/, home));
  if (!isInside(file, policy.workingDirectories)) return undefined;
  const isFile = await stat(file).then(
    (stats) => stats.isFile(),
    () => false,
  );
  return isFile ? file : undefined;
}
