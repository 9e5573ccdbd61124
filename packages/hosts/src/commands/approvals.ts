import { userInfo } from "node:os";
import { resolve } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { describeBands, quoteRows } from "@retinue/core/inspection/describe-quote.ts";
import { type GivenAnswer, questionTexts } from "@retinue/core/kernel/approvals/answer-question.ts";
import {
  type Approval,
  type ApprovalGrant,
  type Approvals,
  findApprovals,
  type GrantScope,
  siblingFolders,
} from "@retinue/core/kernel/approvals/find-approvals.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { transcriptsOf } from "../shared/find-named-task.ts";
import { plural } from "../shared/format.ts";
import { misuse, refuseAgents } from "../shared/misuse.ts";
import { createPaint } from "../shared/paint.ts";
import { cutTo, stripControlCharacters } from "../shared/strip-control-characters.ts";
import { describeAge } from "./views/describe-age.ts";
import { type Column, renderTable } from "./views/render-table.ts";

interface ListOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `retinue approvals` */
export async function listApprovals({ host }: CommandContext, { all, json }: ListOptions): Promise<number> {
  const found = openApprovals(host, { everywhere: all === true }).list();
  const shown =
    all === true ? found : found.filter(({ state }) => state === "waiting" || state === "allowed");
  return writeApprovals(host, shown, {
    json: json === true,
    none: "Nothing waits for an answer in the sessions of this folder, and no grant holds.",
    rowOf: shownOf,
  });
}

/** A question as the list shows it. */
export interface ShownApproval {
  readonly id: string;
  readonly state: string;
  readonly at: number;
  readonly tool: string;
  /** Of which session of a folder. */
  readonly session?: string;
  /** Whose question it is. */
  readonly agents: string;
  readonly call: string;
}

/** The list of questions, of a folder or of a store. */
export function writeApprovals<Found>(
  host: CliHost,
  found: readonly Found[],
  {
    json,
    none,
    rowOf,
  }: {
    readonly json: boolean;
    /** What is printed where there are none. */
    readonly none: string;
    readonly rowOf: (approval: Found) => ShownApproval;
  },
): number {
  if (json) {
    host.stdout.write(`${JSON.stringify({ version: 1, approvals: found }, undefined, 2)}\n`);
    return 0;
  }
  if (found.length === 0) {
    host.stderr.write(`${none}\n`);
    return 0;
  }
  const now = Date.now();
  const shown = found.map(rowOf);
  // Equal calls of several sessions differ only in that.
  const isOne = new Set(shown.map(({ session }) => session)).size < 2;
  const rows = shown.map(({ id, state, at, tool, session = "", agents, call }) =>
    [id, state, describeAge(now - at), tool, ...(isOne ? [] : [session.slice(0, 8)]), agents, call].map(
      stripControlCharacters,
    ),
  );
  const paint = createPaint(host.stdout.isColourAllowed);
  const columns = isOne ? allColumns.filter(({ heading }) => heading !== "SESSION") : allColumns;
  host.stdout.write(renderTable({ columns, rows, width: host.stdout.columns, paint }));
  return 0;
}

const allColumns: readonly Column[] = [
  { heading: "ID", atLeast: 12, style: "name" },
  { heading: "STATE", atLeast: 7 },
  { heading: "AGE", atLeast: 4 },
  { heading: "TOOL", atLeast: 6, atMost: 20 },
  { heading: "SESSION", atLeast: 8 },
  { heading: "AGENTS", atLeast: 8, atMost: 36 },
  { heading: "CALL", atLeast: 16, elseBelow: 30, style: "dim" },
];

function shownOf(approval: Approval): ShownApproval {
  const { question, state, answer } = approval;
  const { id, at, tool, session, places, input, quote } = question;
  const agents = places.length === 1 ? (places[0]?.path ?? "") : `${places.length} places`;
  const what = answer?.type === "allow" ? `${describeGrant(answer, approval)}: ` : "";
  const call =
    quote === undefined
      ? describeInput(input)
      : `start ${plural(quote.agents.length, "agent")}: ${describeBands(quote.total)}`;
  return { id, state, at, tool, session, agents, call: what + call };
}

export function describeInput(input: unknown): string {
  const fields = isRecord(input) ? input : {};
  const texts = ["command", "file_path", "url", "prompt"].map((key) => fields[key]);
  const main = texts.find((value) => typeof value === "string");
  return cutTo(typeof main === "string" ? main : JSON.stringify(input), 200);
}

/** `this session, until …, 2 of 3 uses, by …`. */
function describeGrant(grant: ApprovalGrant, { uses }: Pick<Approval, "uses">): string {
  const { scope, until, maxUses, maxUsd, rules, by } = grant;
  return [
    `this ${scope}`,
    ...(rules.length === 0 ? [] : [rules.join(" and ")]),
    ...(until === undefined ? [] : [`until ${new Date(until).toISOString()}`]),
    maxUses === undefined ? countUses(uses.length) : `${uses.length} of ${countUses(maxUses)}`,
    ...(maxUsd === undefined ? [] : [`up to $${maxUsd}`]),
    `by ${by}`,
  ].join(", ");
}

function countUses(count: number): string {
  return count === 1 ? "1 use" : `${count} uses`;
}

/** The paths behind the ones that the call names: where links lead, and what a command touches. */
function describePaths({ input, directory, paths }: Approval["question"]): readonly string[] {
  const texts = Object.values(input).filter((value) => typeof value === "string");
  const named = new Set(texts.map((text) => resolve(directory, text)));
  const label = paths.some((path) => named.has(path)) ? "leads to " : "touches  ";
  return [...new Set(paths)].filter((path) => !named.has(path)).map((path) => `${label} ${path}`);
}

/** `retinue approvals show ID` */
export async function showApproval(
  { host }: CommandContext,
  id: string,
  { json }: Pick<ListOptions, "json">,
): Promise<number> {
  const approval = openApprovals(host, { everywhere: true }).find(id);
  if (json === true) {
    host.stdout.write(`${JSON.stringify({ version: 1, approval }, undefined, 2)}\n`);
    return 0;
  }
  const { question, answer, revoked, uses, state } = approval;
  const lines = [
    `${question.id}: ${state}`,
    `session   ${question.session}`,
    `folder    ${question.directory}`,
    `tool      ${question.tool}`,
    ...(question.quote === undefined ? [] : [...quoteRows(question.quote), ""]),
    ...(question.preview === undefined ? [] : [...question.preview.rows, "", question.preview.text, ""]),
    ...JSON.stringify(question.input, undefined, 2).split("\n"),
    ...describePaths(question),
    `reason    ${question.reason}`,
    ...question.places.map(({ path, agent, call }) => `place     ${path} (${agent}, ${call})`),
    ...(question.suggestedRules.length === 0 ? [] : [`rules     ${question.suggestedRules.join(" and ")}`]),
    ...(question.everyTime ? ["It can only be allowed for the call: every such call is asked about."] : []),
    ...(answer === undefined ? [] : [describeAnswer(approval)]),
    ...(revoked === undefined ? [] : [`revoked by ${revoked.by}, ${new Date(revoked.at).toISOString()}`]),
    ...uses.map(
      ({ agent, call, tool, at, by }) =>
        `used      ${new Date(at).toISOString()} ${tool} of ${agent} (${call}), given by ${by}`,
    ),
  ];
  host.stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
  return 0;
}

function describeAnswer({ answer, uses }: Approval): string {
  if (answer?.type === "allow") return `allowed   ${describeGrant(answer, { uses })} (${answer.via})`;
  return `denied    by ${answer?.by} (${answer?.via})${answer?.message === undefined ? "" : `: ${answer.message}`}`;
}

export interface ApproveOptions {
  readonly for: string;
  readonly rule?: readonly string[];
  readonly suggested?: boolean;
  readonly until?: string;
  readonly uses?: string;
  readonly usd?: string;
  readonly answer?: readonly string[];
}

/** `retinue approve ID` */
export async function approve(
  { host }: CommandContext,
  id: string,
  options: ApproveOptions,
): Promise<number> {
  refuseAgents(host);
  const approvals = openApprovals(host, { everywhere: true });
  const { question } = approvals.find(id);
  const rules = [...(options.rule ?? []), ...(options.suggested === true ? question.suggestedRules : [])];
  if (options.suggested === true && question.suggestedRules.length === 0)
    throw misuse("The question suggests no rules, so --suggested cannot be used.");
  const given: GivenAnswer = {
    type: "allow",
    // Another word is refused where the answer is checked.
    scope: options.for as GrantScope,
    rules,
    until: options.until === undefined ? undefined : readTime(options.until, Date.now()),
    maxUses: options.uses === undefined ? undefined : Number(options.uses),
    maxUsd: options.usd === undefined ? undefined : Number(options.usd),
    answers: options.answer === undefined ? undefined : pairAnswers(options.answer, question.input),
  };
  const approval = give(approvals, question.id, { given, digest: question.digest });
  const { answer } = approval;
  const what = answer?.type === "allow" ? describeGrant(answer, approval) : "";
  host.stdout.write(`${stripControlCharacters(`${question.id} is allowed: ${question.tool}, ${what}.`)}\n`);
  return 0;
}

/** By question, in the order in which both were given. */
function pairAnswers(
  answers: readonly string[],
  input: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const texts = questionTexts(input);
  if (answers.length > texts.length)
    throw misuse(`There are ${texts.length} questions, but ${answers.length} answers were given.`);
  return Object.fromEntries(answers.map((answer, at) => [texts[at] ?? "", answer]));
}

/** `retinue deny ID [message]` */
export async function deny({ host }: CommandContext, id: string, message: string): Promise<number> {
  refuseAgents(host);
  const approvals = openApprovals(host, { everywhere: true });
  const { question } = approvals.find(id);
  const given = { type: "deny", ...(message === "" ? {} : { message }) } as const;
  give(approvals, question.id, { given, digest: question.digest });
  host.stdout.write(`${stripControlCharacters(`${question.id} is denied: ${question.tool}.`)}\n`);
  return 0;
}

/** `retinue approvals revoke ID` */
export async function revokeApproval({ host }: CommandContext, id: string): Promise<number> {
  refuseAgents(host);
  const { question } = openApprovals(host, { everywhere: true }).revoke(id, author());
  host.stdout.write(`${question.id} is revoked; calls that it already allowed are not undone.\n`);
  return 0;
}

function give(
  approvals: Approvals,
  id: string,
  { given, digest }: { readonly given: GivenAnswer; readonly digest: string },
): Approval {
  try {
    return approvals.answer(id, given, { ...author(), digest });
  } catch (error) {
    if (error instanceof RetinueError && error.code === "unusable-grant")
      throw misuse(error.message, error.advice);
    throw error;
  }
}

export function openApprovals(host: CliHost, { everywhere }: { readonly everywhere: boolean }): Approvals {
  const transcripts = transcriptsOf(host);
  return findApprovals(() => (everywhere ? siblingFolders(transcripts) : [transcripts]), {
    now: Date.now,
    ignored: (message) => host.stderr.write(`retinue: ${stripControlCharacters(message)}\n`),
  });
}

function author() {
  return { by: userInfo().username, via: "cli" };
}

const msPerUnit: ReadonlyMap<string, number> = new Map([
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** A duration from now, or a time. */
function readTime(text: string, now: number): number {
  const [, number = "", unit = ""] = /^(\d+)([smhd])$/.exec(text.trim()) ?? [];
  const at = number === "" ? Date.parse(text) : now + Number(number) * (msPerUnit.get(unit) ?? 0);
  if (Number.isFinite(at)) return at;
  throw misuse(`--until needs a duration such as 30m or 2h, or a time, but got ${JSON.stringify(text)}.`);
}
