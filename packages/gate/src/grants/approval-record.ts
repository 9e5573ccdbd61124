import { createHash } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type CallPreview, readPreview } from "../approver.ts";
import { type BatchQuote, readBatchQuote } from "../batch-quote.ts";
import { decide, type PermissionPolicy, type PermissionRequest } from "../decide.ts";
import { parseRule } from "../rules/parse-rule.ts";
import { inOrder } from "./session-approvals.ts";

/** What a grant covers besides the calls that were asked about: nothing more, or further calls of these agents. */
export const grantScopes = ["call", "agent", "tree", "session"] as const;
export type GrantScope = (typeof grantScopes)[number];

/** A call as it was judged. Whatever differs in it is another call. */
export interface JudgedCall {
  readonly tool: string;
  readonly input: JsonRecord;
  /** The folder it starts in. */
  readonly directory: string;
  /** Every form of the paths it touches. */
  readonly paths: readonly string[];
  /** The files whose text it runs, each as `<digest> <path>`; absent means none. */
  readonly scripts?: readonly string[];
}

/** One agent's call that waits for the answer. */
export interface AskedPlace {
  readonly agent: string;
  /** From the main agent to this one, for people. */
  readonly path: string;
  readonly call: string;
  readonly at: number;
}

/** A question on disk. Equal calls of several agents are one question with several places. */
export interface ApprovalQuestion extends JudgedCall {
  readonly version: 1;
  readonly id: string;
  readonly session: string;
  readonly digest: string;
  readonly reason: string;
  /** Rules that together would have allowed the call. */
  readonly suggestedRules: readonly string[];
  /** Settings, a guard or a hook wants every such call to be asked about: no grant reaches beyond the places. */
  readonly everyTime: boolean;
  /** Of a batch of agents: what was quoted for it. It is shown, and is no part of what the answer is bound to. */
  readonly quote?: BatchQuote;
  /** What the call would do, as people were shown it; likewise. */
  readonly preview?: CallPreview;
  readonly places: readonly AskedPlace[];
  readonly at: number;
}

/** What a grant is limited to; absent limits nothing. */
export interface GrantLimits {
  /** Milliseconds since 1970. */
  readonly until?: number;
  readonly maxUses?: number;
  /** US dollars that the agents of the session may spend from the answer on. */
  readonly maxUsd?: number;
}

interface AnswerFacts {
  readonly version: 1;
  /** The id of the question, which is also the id of the grant. */
  readonly question: string;
  readonly digest: string;
  /** The agents of the places that were answered; one that is named twice may make the call twice. */
  readonly agents: readonly string[];
  readonly by: string;
  readonly via: string;
  readonly at: number;
}

export interface ApprovalGrant extends AnswerFacts, GrantLimits {
  readonly type: "allow";
  readonly scope: GrantScope;
  /** Further calls that it covers, within its scope; without any, the same call again. */
  readonly rules: readonly string[];
  /** Where the agent asked for more than a yes: by question, what the person answers. */
  readonly answers?: Readonly<Record<string, string>>;
}

interface ApprovalRefusal extends AnswerFacts {
  readonly type: "deny";
  readonly message?: string;
}

/** An answer on disk. */
export type ApprovalRecord = ApprovalGrant | ApprovalRefusal;

/** One call that an answer decided; written before the call runs. */
export interface GrantUse {
  readonly version: 1;
  readonly grant: string;
  readonly agent: string;
  readonly call: string;
  readonly tool: string;
  readonly digest: string;
  readonly by: string;
  readonly at: number;
  /** The process that used it, and what its agents had spent since it knew the grant. */
  readonly run: string;
  readonly usd: number;
}

export function digestOf({ tool, input, directory, paths, scripts = [] }: JudgedCall): string {
  const bound = [tool, inOrder(input), directory, paths.toSorted()];
  const text = JSON.stringify(scripts.length === 0 ? bound : [...bound, scripts.toSorted()]);
  return createHash("sha256").update(text).digest("hex");
}

/** Undefined for what is no question, or one whose call is not the one its digest was made of. */
export function readQuestion(value: unknown): ApprovalQuestion | undefined {
  if (!isRecord(value) || value["version"] !== 1 || !isRecord(value["input"])) return undefined;
  const isWhole =
    areTexts(value, ["session", "digest", "tool", "directory", "reason"]) &&
    isQuestionId(value["id"]) &&
    isTextList(value["paths"]) &&
    (value["scripts"] === undefined || isTextList(value["scripts"])) &&
    isTextList(value["suggestedRules"]) &&
    typeof value["everyTime"] === "boolean" &&
    typeof value["at"] === "number" &&
    Array.isArray(value["places"]) &&
    value["places"].every(isPlace);
  if (!isWhole) return undefined;
  const { quote: shown, preview: previewed, ...asked } = value;
  const quote = readBatchQuote(shown);
  const preview = readPreview(previewed);
  // Every field was looked at above.
  const question = {
    ...asked,
    ...(quote === undefined ? {} : { quote }),
    ...(preview === undefined ? {} : { preview }),
  } as unknown as ApprovalQuestion;
  return digestOf(question) === question.digest ? question : undefined;
}

export function readAnswer(value: unknown): ApprovalRecord | undefined {
  if (!isRecord(value) || value["version"] !== 1) return undefined;
  const isWhole =
    isQuestionId(value["question"]) &&
    areTexts(value, ["digest", "by", "via"]) &&
    isTextList(value["agents"]) &&
    typeof value["at"] === "number";
  if (!isWhole) return undefined;
  if (value["type"] === "deny") {
    const { message } = value;
    if (message !== undefined && typeof message !== "string") return undefined;
    return value as unknown as ApprovalRefusal;
  }
  const isScope = grantScopes.some((scope) => scope === value["scope"]);
  if (value["type"] !== "allow" || !isScope || !isTextList(value["rules"])) return undefined;
  const { answers = {} } = value;
  if (!isRecord(answers) || !isTextList(Object.values(answers))) return undefined;
  const limits = [value["until"], value["maxUses"], value["maxUsd"]];
  // A limit that cannot be read must not become none.
  if (!limits.every((limit) => limit === undefined || (typeof limit === "number" && limit >= 0)))
    return undefined;
  return value as unknown as ApprovalGrant;
}

export function readUse(value: unknown): GrantUse | undefined {
  if (!isRecord(value) || value["version"] !== 1) return undefined;
  const isWhole =
    areTexts(value, ["grant", "agent", "call", "tool", "digest", "by", "run"]) &&
    typeof value["at"] === "number" &&
    typeof value["usd"] === "number";
  return isWhole ? (value as unknown as GrantUse) : undefined;
}

function isQuestionId(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{12}$/.test(value);
}

function isPlace(value: unknown): boolean {
  return isRecord(value) && areTexts(value, ["agent", "path", "call"]) && typeof value["at"] === "number";
}

function areTexts(value: JsonRecord, keys: readonly string[]): boolean {
  return keys.every((key) => typeof value[key] === "string");
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

/** A call that asks for a grant. */
export interface CoveredCall {
  readonly digest: string;
  /** The agents from the main one to the one whose call it is, by id. */
  readonly path: readonly string[];
  readonly now: number;
  /** Whether the rules of a grant, or the same call once more, would pass all rules of settings. */
  readonly passes: (grant: ApprovalGrant) => boolean;
  /** US dollars spent since the grant, in this process; undefined where a price is not known. */
  readonly usd: number | undefined;
  readonly run: string;
}

/** What has become of a grant. */
export interface GrantState {
  readonly uses: readonly GrantUse[];
  readonly isRevoked: boolean;
}

/** Whether an answer decides a call: the calls it was given for, each once, and further calls in its scope. */
export function coversCall(answer: ApprovalRecord, state: GrantState, call: CoveredCall): boolean {
  const end = answer.type === "allow" ? grantEnd(answer, state, call) : undefined;
  if (end !== undefined && end !== "spent") return false;
  // The calls that were asked about were allowed as they are; money limits what follows.
  if (coversPlace(answer, state, call)) return true;
  if (end !== undefined || answer.type === "deny" || answer.scope === "call") return false;
  const inScope =
    answer.scope === "session" ||
    (answer.scope === "agent"
      ? answer.agents.includes(call.path.at(-1) ?? "")
      : call.path.some((agent) => answer.agents.includes(agent)));
  const isSame = answer.digest === call.digest;
  return inScope && (isSame || answer.rules.length > 0) && call.passes(answer);
}

/** Why a grant holds no more, or undefined while it does. */
export function grantEnd(
  { until, maxUses, maxUsd }: ApprovalGrant,
  { uses, isRevoked }: GrantState,
  { now, usd, run }: Pick<CoveredCall, "now" | "usd" | "run">,
): "revoked" | "expired" | "used up" | "spent" | undefined {
  if (isRevoked) return "revoked";
  if (until !== undefined && now >= until) return "expired";
  if (maxUses !== undefined && uses.length >= maxUses) return "used up";
  if (maxUsd === undefined) return undefined;
  // What other processes had spent when they last used it.
  const byRun = new Map<string, number>();
  for (const use of uses) if (use.run !== run) byRun.set(use.run, Math.max(byRun.get(use.run) ?? 0, use.usd));
  const before = [...byRun.values()].reduce((sum, usd) => sum + usd, 0);
  return usd === undefined || before + usd >= maxUsd ? "spent" : undefined;
}

/** Each place that was answered may make its call once. */
function coversPlace({ digest, agents }: ApprovalRecord, { uses }: GrantState, call: CoveredCall): boolean {
  if (digest !== call.digest) return false;
  const agent = call.path.at(-1);
  const granted = agents.filter((id) => id === agent).length;
  return uses.filter((use) => use.agent === agent && use.digest === digest).length < granted;
}

/**
 * Whether allow rules would let a call through: deny rules, ask rules, guards and the mode still decide before them. Without
 * rules the question is whether any rule for the tool could.
 */
export function rulesPass(
  request: PermissionRequest,
  policy: PermissionPolicy,
  { rules, anchor }: { readonly rules: readonly string[]; readonly anchor: string },
): boolean {
  const readings = (rules.length === 0 ? [request.tool] : rules).map((text) =>
    parseRule(text, { list: "allow" }),
  );
  const added = readings.flatMap((reading) =>
    reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [],
  );
  if (added.length !== readings.length) return false;
  return decide(request, { ...policy, allow: [...policy.allow, ...added] }).type === "allow";
}
