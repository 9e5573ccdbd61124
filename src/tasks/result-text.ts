import { escapeControlTags } from "../conversation/escape-control-tags.ts";
import type { RunEnding } from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import { pageLength, pageOf } from "../tools/text-page.ts";

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
  return escapeControlTags(text.trim());
}

/** The child's final text as data, followed by one line of facts that the runtime vouches for. */
export function resultText(input: ResultInput): string {
  const { ending } = input;
  const parts = [headline(input), boundedText(input), ...worktreeLines(input), facts(input)];
  return parts.filter((part) => part !== "").join("\n\n") || ending.reason;
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

function boundedText({ ending, file }: ResultInput): string {
  const text = wholeText(ending);
  if (text === "") return "(it said nothing)";
  const page = pageOf(text);
  if (page.next === undefined) return text;
  const where = file === undefined ? "" : ` The whole text is in ${file}.`;
  return `${page.text}\n\n[cut at ${page.next} of ${text.length} characters.${where} TaskOutput with its id and offset ${page.next} reads on.]`;
}

function worktreeLines({ worktree }: ResultInput): string[] {
  if (worktree === undefined) return [];
  return [`Its changes are in the worktree ${worktree.path} on the branch ${worktree.branch}.`];
}

function facts({ agentId, ending }: ResultInput): string {
  const { totals } = ending;
  const tokens = contextTokens(totals.usage) + totals.usage.outputTokens;
  const cost = totals.costUsd === undefined || totals.costUsd === 0 ? "" : `, $${totals.costUsd.toFixed(4)}`;
  const seconds = (totals.durationMs / 1000).toFixed(1);
  const denied = ending.denials.length === 0 ? "" : `; ${ending.denials.length} calls were not allowed`;
  return `[agent id ${agentId} (resume it with this id); ${tokens} tokens, ${totals.toolUses} tool uses, ${seconds} s${cost}${denied}]`;
}
