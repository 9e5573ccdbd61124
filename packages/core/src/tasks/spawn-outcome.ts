import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { receiptText, unverifiedLine } from "../conversation/receipt.ts";
import { noTotals, type RunEnding } from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import { interruptedReason, type TaskState } from "../protocol/agent-state.ts";
import { pageLength, pageOf } from "../tools/text-page.ts";
import type { KeptWorktree } from "./run-agent.ts";
import type { TaskStarted } from "./task-manager.ts";

/** Outcome of a spawn. */
export type SpawnOutcome =
  | { readonly type: "refused"; readonly reason: string }
  | { readonly type: "ended"; readonly text: string; readonly isError: boolean; readonly data: unknown }
  | { readonly type: "launched"; readonly text: string; readonly data: unknown };

export type Spawn = (
  request: SpawnRequest,
  options: { readonly signal: AbortSignal },
) => Promise<SpawnOutcome>;

/** The result of a child that has ended, as its parent reads it. */
export function textOfEnd(
  { id: agentId, description, ending }: TaskState,
  file: string | undefined,
  worktree?: KeptWorktree,
): string {
  return ending === undefined ? "" : resultText({ agentId, description, ending, file, worktree });
}

/** A child that works on without the caller. */
export function launchedOutcome(
  { agent, task, model }: ChildPlan,
  outputFile: string | undefined,
): SpawnOutcome {
  const followed = outputFile === undefined ? undefined : `What it does can be followed in ${outputFile}`;
  const { team, description, prompt } = task;
  const data = {
    isAsync: true,
    agentId: agent.id,
    description,
    resolvedModel: model.value,
    prompt,
    outputFile,
  };
  if (team !== undefined)
    return {
      type: "launched",
      text: [
        `The teammate ${JSON.stringify(team.member)} of the team ${JSON.stringify(team.team)} works now; its id is ${agent.id}.`,
        "It reports by message and is idle when it is done; SendMessage to its name gives it more work.",
        ...(followed === undefined ? [] : [`${followed}.`]),
      ].join("\n"),
      data: {
        status: "teammate_spawned",
        teammate_id: `${team.member}@${team.team}`,
        name: team.member,
        team_name: team.team,
        ...data,
      },
    };
  return {
    type: "launched",
    text: [
      `The agent ${JSON.stringify(description)} works in the background; agentId: ${agent.id}.`,
      "You are notified when it has ended, with its result; continue with other work meanwhile.",
      `${followed === undefined ? "" : `${followed}; `}TaskOutput with its id shows how it is doing, TaskStop ends it.`,
    ].join("\n"),
    data: { status: "async_launched", ...data },
  };
}

/** A child that has ended while its caller waited: its text, and what programs and transcripts keep of it. */
export function endedOutcome(
  { agent, task, model, notes }: ChildPlan,
  { id: agentId, description, ending }: TaskState,
  {
    outputFile: file,
    worktree,
  }: { readonly outputFile: string | undefined; readonly worktree: KeptWorktree | undefined },
): SpawnOutcome {
  if (ending === undefined) return { type: "refused", reason: "The agent ended without reporting a result." };
  const { text, output, tokens } = childResult({ agentId, description, ending, file, worktree });
  const { usage, toolUses, durationMs, costUsd } = ending.totals;
  return {
    type: "ended",
    text: `${notes.length === 0 ? "" : `${notes.join("\n")}\n\n`}${text}`,
    isError: ending.status === "failed" || ending.status === "stopped",
    data: {
      // A child that has its parent's conversation was entered rather than asked.
      status: task.forksContext ? "sub_agent_entered" : "completed",
      agentId: agent.id,
      agentType: task.agentType,
      content: [{ type: "text", text: output }],
      endStatus: ending.status,
      stopReason: ending.reason,
      resolvedModel: model.value,
      totalToolUseCount: toolUses,
      totalDurationMs: Math.round(durationMs),
      totalTokens: tokens,
      usage: {
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        cache_creation_input_tokens: usage.cacheWriteTokens,
        cache_read_input_tokens: usage.cacheReadTokens,
      },
      totalCostUsd: costUsd,
      receipt: ending.receipt,
      quote: ending.quote,
      description: task.description,
      prompt: task.prompt,
      ...(worktree === undefined ? {} : { worktreePath: worktree.path, worktreeBranch: worktree.branch }),
    },
  };
}

/** What the call that waited for a child is answered with when both were stopped. */
export function interruptedOutcome({ agent, task }: ChildPlan): SpawnOutcome {
  return {
    type: "ended",
    text: interruptedText(agent.id, task.agentType),
    isError: true,
    data: { status: interruptedStatus, agentId: agent.id, agentType: task.agentType, prompt: task.prompt },
  };
}

/** Marks results that do not show how a child ended. */
export const interruptedStatus = "interrupted";

/** The child of a call that was cut off, and how to resume it. */
export function interruptedText(agentId: string, agentType: string): string {
  return `Interrupted: the session ended while the agent ${agentId} (${agentType}) was running. It is stopped, and what it did is kept. Continue with it: call Agent with resume: ${JSON.stringify(agentId)}; do not start another for the same task.`;
}

/** The ending of a child that was planned and found no place; one that came too late for its session can be resumed. */
export function notStarted({ reason: error, isOver }: Extract<TaskStarted, { type: "refused" }>): RunEnding {
  const reason = isOver === true ? interruptedReason : "not-started";
  return { status: "stopped", reason, text: "", error, denials: [], totals: noTotals };
}

/** What a parent reads of a child's end. */
export interface ResultInput {
  readonly agentId: string;
  readonly description: string;
  readonly ending: RunEnding;
  /** Where the whole text is, when it was too long to be given whole. */
  readonly file?: string;
  readonly worktree?: { readonly path: string; readonly branch: string };
}

/** The most characters of a child's text that its parent's model gets. */
export const maxResult = pageLength;

/** A child's text as its parent reads it, whole. */
export function wholeText({ text }: Pick<RunEnding, "text">): string {
  return asData(text.trim());
}

/** What a child says can't pose as what the runtime vouches for below it. */
function asData(text: string): string {
  return escapeControlTags(text).replace(ownLines, "$&\\");
}

/** How the lines begin that the runtime adds to what a child says. */
const ownLines =
  /^(?:[^\p{L}\p{N}\n[]*result(?=:[ \t]*(?:verified|failed-check|unverified)\b)|(?=\[agent id ))/gimu;

/** What is reported of a child's end. */
export interface ChildResult {
  /** Its final text as data, followed by one line of facts that the runtime vouches for. */
  readonly text: string;
  /** All that it said at its end, as its parent may read it. */
  readonly output: string;
  readonly tokens: number;
}

export function childResult(input: ResultInput): ChildResult {
  const { ending } = input;
  const { usage } = ending.totals;
  const output = asData(ending.text);
  const tokens = contextTokens(usage) + usage.outputTokens;
  const parts = [
    headline(input),
    boundedText(output.trim(), input),
    ...worktreeLines(input),
    vouchedFor(ending, output),
    facts(input, tokens),
  ];
  return { text: parts.filter((part) => part !== "").join("\n\n") || ending.reason, output: output, tokens };
}

/** Nothing where no checks are named, unless the child itself says that there were some. */
function vouchedFor({ receipt, text }: RunEnding, said: string): string {
  const about = receipt === undefined ? "" : escapeControlTags(receiptText(receipt));
  return about === "" && said !== escapeControlTags(text) ? unverifiedLine : about;
}

/** The text alone. */
export function resultText(input: ResultInput): string {
  return childResult(input).text;
}

function headline({ ending, description }: ResultInput): string {
  switch (ending.status) {
    case "completed":
      return "";
    case "partial":
      return `The agent ${JSON.stringify(description)} handed in a partial result (${ending.reason}): ${ending.error ?? ""}`.trim();
    case "failed":
      return `The agent ${JSON.stringify(description)} failed (${ending.reason}): ${ending.error ?? "no reason was given"}. What it said last:`;
    case "stopped":
      return `The agent ${JSON.stringify(description)} was stopped (${ending.reason}). What it said last:`;
  }
}

function boundedText(text: string, { file }: ResultInput): string {
  if (text === "") return "(it said nothing)";
  if (text.length <= maxResult) return text;
  const page = pageOf(text);
  const where = file === undefined ? "" : ` The whole text is in ${file}.`;
  return `${page.text}\n\n[cut at ${page.next} of ${text.length} characters.${where} TaskOutput with its id and offset ${page.next} reads on.]`;
}

function worktreeLines({ worktree }: ResultInput): string[] {
  if (worktree === undefined) return [];
  return [`Its changes are in the worktree ${worktree.path} on the branch ${worktree.branch}.`];
}

function facts({ agentId, ending }: ResultInput, tokens: number): string {
  const { totals } = ending;
  const cost = totals.costUsd === undefined || totals.costUsd === 0 ? "" : `, $${totals.costUsd.toFixed(4)}`;
  const seconds = (totals.durationMs / 1000).toFixed(1);
  const denied = ending.denials.length === 0 ? "" : `; ${ending.denials.length} calls were not allowed`;
  const { fallbacks = [] } = ending;
  const answeredBy = fallbacks
    .map(({ from, to, code }) => `; ${to} answered in place of ${from} (${code})`)
    .join("");
  return `[agent id ${agentId} (resume it with this id); ${tokens} tokens, ${totals.toolUses} tool uses, ${seconds} s${cost}${denied}${answeredBy}]`;
}
