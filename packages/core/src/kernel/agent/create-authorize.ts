import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { AskingAgent, CallPreview } from "@retinue/gate/approver.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import type { DecideOptions, Decision, PermissionPolicy, PermissionRequest } from "@retinue/gate/decide.ts";
import { type CallMemory, createCallMemory, decideCall } from "@retinue/gate/decide-call.ts";
import { inOrder } from "@retinue/gate/grants/session-approvals.ts";
import { isInside, type PermissionMode, type PolicyRule } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { type CallSeal, findUnsealed, sealCall } from "@retinue/gate/seal-call.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import type { Authorization, AuthorizeOptions, CallRequest } from "../../loop/loop-ports.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { Tool } from "../../tools/tool.ts";
import type { AskPerson } from "./ask-person.ts";

/** A program's own answer to a call that rules leave open. */
export type CanUseTool = (
  toolName: string,
  input: Readonly<Record<string, unknown>>,
  context: {
    readonly signal: AbortSignal;
    readonly sessionId: string;
    readonly agentId: string;
    /** From the main agent to the one whose call it is. */
    readonly agentPath: readonly AskingAgent[];
    readonly callId: string;
    /** The same as `callId`, as the Claude Agent SDK calls it. */
    readonly toolUseID: string;
    readonly reason: string;
    /** Whose tool it is, where it is one of an MCP server. */
    readonly server?: { readonly name: string; readonly source: string } | undefined;
    /** Rules that together would have allowed this call; none where no rule can. */
    readonly suggestedRules: () => readonly string[];
    /** Paths of the call that lie outside the working directories. */
    readonly outsidePaths: () => readonly string[];
    /** Of a batch of agents that is asked about before it starts: what it may take, and what its agents may do. */
    readonly quote?: BatchQuote | undefined;
    /** What the call would do, where its input does not say that by itself. */
    readonly preview?: CallPreview | undefined;
  },
) => Promise<ProgramAnswer>;

type ProgramAnswer =
  | {
      readonly behavior: "allow";
      readonly updatedInput?: Readonly<Record<string, unknown>> | undefined;
      /** Rules that hold for this agent until the session ends: `{ type: "addRules", destination: "session", … }`. */
      readonly updatedPermissions?: readonly object[] | undefined;
    }
  /** `interrupt`: the run is to end after this turn. */
  | {
      readonly behavior: "deny";
      readonly message?: string | undefined;
      readonly interrupt?: boolean | undefined;
    }
  /** Leaves it to the approver; without one the call is refused. */
  | { readonly behavior: "ask" };

/** An answer in the place of the program and the person; undefined leaves the call to them. */
export type BeforeAsk = (
  request: CallRequest,
  options: { readonly signal: AbortSignal },
) => Promise<
  | { readonly behavior: "allow"; readonly updatedInput?: Readonly<Record<string, unknown>> }
  | { readonly behavior: "deny"; readonly message: string; readonly stops?: boolean }
  | undefined
>;

export type AuthorizeWithHooks = (
  request: CallRequest,
  options: AuthorizeOptions & {
    readonly hooks?: DecideOptions["hooks"];
    /** It is asked about whatever rules and mode say. */
    readonly question?: BatchAsked | undefined;
  },
) => Promise<Authorization>;

/** Why a batch of agents is asked about, and what was quoted for it. */
interface BatchAsked {
  readonly reason: string;
  readonly quote: BatchQuote;
}

export interface AuthorizeDependencies {
  readonly plan: AgentPlan;
  /** The policy as a host has changed it since the plan was made. */
  readonly livePolicy?: (planned: PermissionPolicy) => PermissionPolicy;
  /** Rules that hold beside those of the plan as long as a turn lasts. */
  readonly rights?: () => TurnRights;
  readonly beforeAsk?: BeforeAsk;
  /** Called when a person is about to be asked. */
  readonly onAsk?: (request: CallRequest) => void;
  readonly canUseTool?: CanUseTool;
  /** Puts to a person what rules and the program leave open; absent when the session is unattended. */
  readonly askPerson?: AskPerson;
  /** Whether the program takes questions that tools put to people; then such a tool needs no other answer. */
  readonly takesQuestions?: () => boolean;
  /** The folder calls start in now; a shell may have moved it. */
  readonly directory: () => string;
  /** Files that steer programs, and whose change was allowed before. */
  readonly acceptedFiles?: AgentFiles;
  /** Where commands look for programs now; absent means that of this process. */
  readonly searchPath?: () => string | undefined;
}

type Judged = Decision & {
  readonly request: PermissionRequest;
  readonly policy: PermissionPolicy;
  readonly hooks: DecideOptions["hooks"];
  readonly question: BatchAsked | undefined;
};
type Judge = (tool: Tool, input: unknown) => Promise<Judged>;

/** Decides about the calls of one run by its plan; what rules leave open is asked of the program, or refused. */
export function createAuthorize(dependencies: AuthorizeDependencies): AuthorizeWithHooks {
  const { plan } = dependencies;
  const grants = createRuleGrants(plan.directory, "canUseTool");
  const memory = createCallMemory();
  return async (call, { signal, turn, onlyRules, hooks, question }) => {
    const judge: Judge = (tool, input) =>
      judgeCall(tool, input, { dependencies, hooks, question, grants, memory });
    await turn?.();
    const { tool, input } = call;
    const judged = await judge(tool, input);
    const { type, reason, allowedBy, run, request, rule } = judged;
    if (onlyRules === true && rule === undefined) return { type: "allowed", input, reason };
    if (type === "allow")
      return {
        type: "allowed",
        input,
        reason,
        allowedBy,
        run,
        ...approvedPaths(request, plan.policy),
        recheck: async () => {
          const now = await judge(tool, input);
          return now.type === "allow" && now.run?.command === run?.command
            ? undefined
            : changedMeanwhile(tool, now.type === "allow" ? "it would run as another command" : now.reason);
        },
      };
    if (type === "deny") return denied(tool, reason, wayOutOf(judged, plan.directory));
    return ask(call, { dependencies, judged, decided: reason, judge, signal, grants });
  };
}

async function judgeCall(
  tool: Tool,
  input: unknown,
  {
    dependencies,
    hooks,
    question,
    grants,
    memory,
  }: {
    readonly dependencies: AuthorizeDependencies;
    readonly hooks: DecideOptions["hooks"];
    readonly question: BatchAsked | undefined;
    readonly grants: RuleGrants;
    readonly memory: CallMemory;
  },
): Promise<Judged> {
  const { plan, canUseTool, askPerson, beforeAsk, directory } = dependencies;
  const { name, effect } = tool;
  const attended =
    canUseTool !== undefined ||
    askPerson !== undefined ||
    beforeAsk !== undefined ||
    (effect === "interact" && dependencies.takesQuestions?.() === true);
  const planned = askPerson?.policy() ?? plan.policy;
  const live = dependencies.livePolicy?.(planned) ?? planned;
  const granted = withRights(withRights(live, dependencies.rights?.()), grants.rights());
  const acceptedFiles = dependencies.acceptedFiles?.list() ?? [];
  const policy = acceptedFiles.length === 0 ? granted : { ...granted, acceptedFiles };
  const paths = tool.pathsOf?.(input, directory(), policy.home) ?? [];
  const mcp = tool.mcp ?? tool.mcpOf?.(input);
  const call = { tool: name, effect, input, paths, mcp };
  const decided = await decideCall(call, policy, {
    directory: directory(),
    searchPath: dependencies.searchPath?.(),
    memory,
    attended,
    parks: askPerson?.parks === true,
    hooks,
    question: question?.reason,
  });
  return { ...decided, policy, hooks, question };
}

interface Asking {
  readonly dependencies: AuthorizeDependencies;
  readonly judged: Judged;
  /** Why it is asked about, as it was decided. */
  readonly decided: string;
  readonly judge: Judge;
  readonly signal: AbortSignal;
  /** What the program has added to the rules. */
  readonly grants: RuleGrants;
  /** What the call would do. */
  readonly preview?: CallPreview;
}

/**
 * Asks, and judges the call again once there is an answer: time has passed, and it may have become another call. It runs
 * where nothing refuses it now and the answer covers what it touches now; otherwise the new state of things is asked about.
 */
async function ask(call: CallRequest, first: Asking): Promise<Authorization> {
  const { tool, input } = call;
  const { judge } = first;
  let asking: SealedAsking = { ...first, seal: await sealOf(first.judged, first.dependencies) };
  const preview = await previewOf(call, first.judged);
  if (preview !== undefined) asking = { ...asking, preview };
  let changed = "";
  for (let round = 1; round <= maxRounds; round += 1) {
    const answer = await askOnce(call, asking);
    // An answer that changes the input has been judged with it.
    if (answer.type !== "allowed" || answer.input !== input) return answer;
    const covered = asking;
    const judged = await judge(tool, input);
    if (judged.type === "deny") return { ...denied(tool, judged.reason), asked: true };
    const seal = await sealOf(judged, asking.dependencies);
    const other = findChange({ judged, seal }, covered);
    if (other === undefined) {
      const recheck = async (): Promise<string | undefined> => {
        const now = await judge(tool, input);
        const sealed = { judged: now, seal: await sealOf(now, covered.dependencies) };
        const why = now.type === "deny" ? now.reason : findChange(sealed, covered);
        return why === undefined ? undefined : changedMeanwhile(tool, why);
      };
      return { ...answer, recheck, ...approvedPaths(judged.request, asking.dependencies.plan.policy) };
    }
    changed = `since it was last asked about, something has changed: ${other}`;
    asking = {
      ...asking,
      judged: { ...judged, reason: `${judged.reason}; ${changed}` },
      decided: judged.reason,
      seal,
    };
  }
  return { ...denied(tool, `${changed}; it was asked about ${maxRounds} times`), asked: true };
}

const maxRounds = 3;

/** What is asked about agents has figures of its own; what cannot be shown is no reason not to ask. */
async function previewOf(
  { tool }: CallRequest,
  { request, question }: Judged,
): Promise<CallPreview | undefined> {
  if (question !== undefined) return undefined;
  return tool.preview?.(request.input).catch(() => undefined);
}

/** What the answer to an earlier question does not cover of a call as it is now, in words. */
function findChange(
  { judged, seal }: { readonly judged: Judged; readonly seal: CallSeal },
  earlier: Pick<SealedAsking, "decided" | "seal">,
): string | undefined {
  if (judged.type === "allow") return undefined;
  return judged.reason === earlier.decided ? findUnsealed(seal, earlier.seal) : judged.reason;
}

function changedMeanwhile(tool: Tool, why: string): string {
  return denied(
    tool,
    `after it was decided about, other calls had to be waited for, and now it is no longer covered: ${why}`,
  ).reason;
}

interface SealedAsking extends Asking {
  /** What the answer will be bound to. */
  readonly seal: CallSeal;
}

function sealOf(
  { request, policy }: Judged,
  { directory }: Pick<AuthorizeDependencies, "directory">,
): Promise<CallSeal> {
  return sealCall(request, { directory: directory(), home: policy.home });
}

/** Hooks answer first, then the program, then the person. */
async function askOnce(call: CallRequest, asking: SealedAsking): Promise<Authorization> {
  const { dependencies, judged, signal, preview } = asking;
  const { plan, canUseTool, beforeAsk } = dependencies;
  const { tool } = call;
  const fromHooks = await beforeAsk?.(call, { signal });
  if (fromHooks?.behavior === "deny")
    return {
      ...denied(tool, fromHooks.message),
      asked: true,
      ...(fromHooks.stops === true ? { stops: true } : {}),
    };
  if (fromHooks !== undefined) return allowedAs(call, fromHooks, { ...asking, by: "hook" });
  if (canUseTool === undefined) return askPersonOf(call, asking);
  const { reason, request, policy } = judged;
  const context = {
    signal,
    sessionId: plan.sessionId,
    agentId: plan.agent.id,
    agentPath: [plan.agent],
    callId: call.call.id,
    toolUseID: call.call.id,
    reason,
    server: tool.mcp === undefined ? undefined : { name: tool.mcp.serverName, source: tool.mcp.source },
    // No rule answers what a batch may cost.
    suggestedRules: () =>
      judged.question === undefined ? suggestRules(request, policy, { anchor: plan.directory }) : [],
    quote: judged.question?.quote,
    preview,
    outsidePaths: () => outsidePaths(request, policy),
  };
  const answer = readProgramAnswer(await abortable(canUseTool(tool.name, request.input, context), signal));
  if (answer.behavior === "deny")
    return {
      ...denied(tool, answer.message ?? "the program refused it"),
      asked: true,
      ...(answer.interrupt === true ? { stops: true } : {}),
    };
  if (answer.behavior === "ask") return askPersonOf(call, asking);
  // The program meant the answer as a whole: where a part of it cannot be followed, the call does not run.
  const [trouble] = asking.grants.take(answer.updatedPermissions ?? []);
  if (trouble !== undefined) return { ...denied(tool, trouble), asked: true };
  return allowedAs(call, answer, { ...asking, by: "program" });
}

/** In JavaScript a program can answer anything. What is none of the three answers lets nothing through. */
function readProgramAnswer(given: unknown): ProgramAnswer {
  const behavior = isRecord(given) ? given["behavior"] : undefined;
  const updates = isRecord(given) ? given["updatedPermissions"] : undefined;
  if (updates !== undefined && !Array.isArray(updates))
    return {
      behavior: "deny",
      message: `updatedPermissions of canUseTool must be a list, but is ${quote(updates)}`,
    };
  if (behavior === "allow" || behavior === "deny" || behavior === "ask") return given as ProgramAnswer;
  const described = isRecord(given)
    ? `the behavior ${JSON.stringify(behavior) ?? "undefined"}`
    : String(given);
  return {
    behavior: "deny",
    message: `canUseTool must answer { behavior: "allow" }, "deny" or "ask", but answered ${described}`,
  };
}

async function askPersonOf(
  { call, tool, input }: CallRequest,
  { dependencies, judged, signal, seal, preview }: SealedAsking,
): Promise<Authorization> {
  const { plan, askPerson, onAsk } = dependencies;
  const { request, reason } = judged;
  if (askPerson === undefined)
    return denied(tool, `${reason}, and no one can be asked here`, wayOutOf(judged, plan.directory));
  onAsk?.({ call, tool, input });
  const directory = dependencies.directory();
  const quote = judged.question?.quote;
  const asksEveryTime = judged.hooks === "ask" || quote !== undefined;
  const answer = await askPerson.ask(
    {
      callId: call.id,
      request,
      reason,
      directory,
      policy: judged.policy,
      asksEveryTime,
      quote,
      preview,
      seal,
    },
    { signal },
  );
  const by = { asked: true, approval: answer.approval };
  if (answer.type !== "allowed") return { ...denied(tool, answer.reason), ...by, stops: answer.stops };
  const who = answer.approval === undefined ? "the person who was asked" : answer.approval.by;
  const grant = answer.approval === undefined ? "" : ` (approval ${answer.approval.id})`;
  const kept = acceptSteering(judged, dependencies);
  const allowed = { allowedBy: "person", reason: `${who} allowed it${grant}${kept}` } as const;
  return { type: "allowed", input, ...allowed, ...by };
}

/** A yes to the change of a file that steers programs holds for this file; says so for the record. */
function acceptSteering(
  { steering = [] }: Judged,
  { acceptedFiles }: Pick<AuthorizeDependencies, "acceptedFiles">,
): string {
  if (steering.length === 0 || acceptedFiles === undefined) return "";
  acceptedFiles.add(steering);
  return `, and further changes of ${steering[0]} in this session`;
}

/** An answer that allows a call may change its input, which then may not pass a denial. */
async function allowedAs(
  { tool, input }: CallRequest,
  { updatedInput }: { readonly updatedInput?: Readonly<Record<string, unknown>> },
  { dependencies, judged, judge, by: allowedBy }: Asking & { readonly by: "hook" | "program" },
): Promise<Authorization> {
  const { policy } = dependencies.plan;
  // Many programs send back what they were shown.
  const isUnchanged = updatedInput === undefined || isSameValue(updatedInput, input);
  // A hook answers by itself each time; a program answers in the place of a person.
  const kept = allowedBy === "program" && isUnchanged ? acceptSteering(judged, dependencies) : "";
  const allowed = {
    type: "allowed",
    allowedBy,
    reason: `the ${allowedBy} that was asked allows it${kept}`,
  } as const;
  if (updatedInput === undefined || isUnchanged) return { ...allowed, input };
  const changed = tool.input?.safeParse(updatedInput) ?? { success: true, data: updatedInput };
  // An input that the tool cannot read is refused with its flaws after this.
  const again = changed.success ? await judge(tool, changed.data) : undefined;
  if (again?.type === "deny") return denied(tool, again.reason);
  const paths = again === undefined ? {} : approvedPaths(again.request, policy);
  return { ...allowed, input: updatedInput, ...paths };
}

function isSameValue(one: unknown, other: unknown): boolean {
  return JSON.stringify(inOrder(one)) === JSON.stringify(inOrder(other));
}

/** What the tool has to find again when it acts. On Windows paths are compared in a spelling of their own. */
function approvedPaths(
  { facts }: PermissionRequest,
  { platform }: PermissionPolicy,
): { readonly paths?: readonly string[] } {
  if (facts === undefined || facts.paths.length === 0 || platform === "win32") return {};
  return { paths: facts.paths.flatMap(({ forms }) => forms) };
}

function outsidePaths(
  { facts }: PermissionRequest,
  { workingDirectories }: PermissionPolicy,
): readonly string[] {
  const forms = facts?.paths.flatMap(({ forms: [first] }) => first ?? []) ?? [];
  return forms.filter((path) => !isInside(path, workingDirectories));
}

function withRights(policy: PermissionPolicy, rights: TurnRights | undefined): PermissionPolicy {
  if (rights === undefined) return policy;
  const { mode = policy.mode } = rights;
  if (rights.allow.length + rights.deny.length === 0 && mode === policy.mode) return policy;
  return {
    ...policy,
    mode,
    allow: [...policy.allow, ...rights.allow],
    deny: [...policy.deny, ...rights.deny],
  };
}

function denied(
  { name }: Tool,
  reason: string,
  wayOut = "",
): Extract<Authorization, { readonly type: "denied" }> {
  const refusal = `${name} was not allowed: ${reason.replace(/\.$/, "")}.`;
  return { type: "denied", reason: [refusal, wayOut, modelsAdvice].filter((text) => text !== "").join(" ") };
}

const modelsAdvice = "Do without it, or say in your answer what you would have needed.";

/** A refusal where no model reads it. */
export function withoutAdvice(reason: string): string {
  return reason.endsWith(modelsAdvice) ? reason.slice(0, -modelsAdvice.length).trimEnd() : reason;
}

/** The narrow rules that would let exactly this call through, where rules can do that in this mode. */
function wayOutOf({ request, policy, question }: Judged, anchor: string): string {
  if (question !== undefined)
    return 'A person can raise `quotes` in the settings, or have such questions wait for an answer (`"approvals": "inbox"`).';
  const rules = suggestRules(request, policy, { anchor, exact: true });
  if (rules.length === 0) return "";
  const list = rules.map((rule) => `\`${rule}\``).join(" and ");
  return `A person can allow exactly this with ${rules.length === 1 ? "the rule" : "the rules"} ${list} (permissions.allow in the settings, or --allowedTools).`;
}

/** Rules that a hook or the program adds while it allows a call; they hold for this agent and are never saved. */
export interface RuleGrants {
  /** Takes what can be taken, and returns for the rest why it was not, each as one sentence. */
  take(updates: readonly unknown[]): readonly string[];
  /** They are next to the rules of the plan, whose deny and ask rules go before what they allow. */
  rights(): TurnRights;
}

const maxRules = 200;

/** `giver` is who adds them, for messages: "a hook". */
export function createRuleGrants(anchor: string, giver: string): RuleGrants {
  const lists = { allow: [] as PolicyRule[], deny: [] as PolicyRule[] };

  function takeRule(written: unknown, list: "allow" | "deny"): readonly string[] {
    const text = ruleText(written);
    const reading = text === undefined ? undefined : parseRule(text, { list });
    if (reading?.type !== "rule") return [`it names ${quote(text ?? written)}, which is not a rule`];
    if (lists.allow.length + lists.deny.length >= maxRules) return [`there are ${maxRules} rules already`];
    lists[list].push({ rule: reading.rule, anchor, from: giver });
    return [];
  }

  function takeUpdate(update: unknown): readonly string[] {
    if (!isRecord(update) || update["type"] !== "addRules")
      return ["only rules can be added; modes and folders cannot be changed"];
    const { destination, behavior, rules } = update;
    if (destination !== "session")
      return [`it wants to save to ${quote(destination)}, and only users can save rules; write "session"`];
    if (behavior !== "allow" && behavior !== "deny")
      return [`"behavior" must be allow or deny, but it is ${quote(behavior)}`];
    return (Array.isArray(rules) ? rules : [undefined]).flatMap((rule) => takeRule(rule, behavior));
  }

  return {
    take: (updates) =>
      updates
        .flatMap(takeUpdate)
        .map((why) => `An entry of "updatedPermissions" from ${giver} was ignored: ${why}.`),
    rights: () => lists,
  };
}

function ruleText(written: unknown): string | undefined {
  if (!isRecord(written) || typeof written["toolName"] !== "string") return undefined;
  const { toolName, ruleContent } = written;
  if (ruleContent === undefined || ruleContent === null) return toolName;
  return typeof ruleContent === "string" ? `${toolName}(${ruleContent})` : undefined;
}

/** Rules that hold beside those of the plan. */
export interface TurnRights {
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  /** The mode in place of that of the plan. */
  readonly mode?: PermissionMode;
}

/**
 * Files that steer programs, and whose change was allowed while edits are accepted: they are asked about once.
 * A yes holds for the agent that asked and those below it, as long as the session runs.
 */
export interface AcceptedFiles {
  forAgent(agentId: string, parentId?: string): AgentFiles;
}

export interface AgentFiles {
  /** The agent's own, and those of the agents above it. */
  list(): readonly string[];
  add(files: readonly string[]): void;
}

export function createAcceptedFiles(): AcceptedFiles {
  const agents = new Map<string, AgentFiles>();
  return {
    forAgent(agentId, parentId) {
      const own = new Set<string>();
      const known = agents.get(agentId);
      if (known !== undefined) return known;
      const above = (): readonly string[] =>
        parentId === undefined || parentId === agentId ? [] : (agents.get(parentId)?.list() ?? []);
      const files: AgentFiles = {
        list: () => [...above(), ...own],
        add: (added) => added.forEach((file) => void own.add(file)),
      };
      agents.set(agentId, files);
      return files;
    },
  };
}
