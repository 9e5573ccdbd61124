import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { receiptText, unverifiedLine } from "../conversation/receipt.ts";
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
  readonly said: string;
  readonly tokens: number;
}

export function childResult(input: ResultInput): ChildResult {
  const { ending } = input;
  const { usage } = ending.totals;
  const said = asData(ending.text);
  const tokens = contextTokens(usage) + usage.outputTokens;
  const parts = [
    headline(input),
    boundedText(said.trim(), input),
    ...worktreeLines(input),
    vouchedFor(ending, said),
    facts(input, tokens),
  ];
  return { text: parts.filter((part) => part !== "").join("\n\n") || ending.reason, said, tokens };
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
