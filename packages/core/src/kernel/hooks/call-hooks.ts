import type { CallPayload, HookPayloads } from "@retinue/config/hooks/hook-input.ts";
import { resultText } from "../../conversation/message.ts";
import type { CallOutcome, EventOutcome } from "../../hooks/aggregate.ts";
import type { FireOptions, HookRunner } from "../../hooks/hook-runner.ts";
import type { Authorization, CallRequest, LoopPorts } from "../../loop/loop-ports.ts";
import type { ToolOutcome } from "../../tools/tool.ts";
import type { AuthorizeWithHooks, BeforeAsk, RuleGrants } from "../agent/create-authorize.ts";

export interface CallHookDependencies {
  readonly runner: HookRunner;
  /** Who and where a call is made. */
  readonly situation: (signal: AbortSignal, request?: CallRequest) => Promise<FireOptions>;
  /** Shows the person what hooks have to say, and which of them failed. */
  readonly report: (outcome: Pick<CallOutcome, "systemMessages" | "failures">) => void;
  readonly wantStop: () => void;
  readonly grants: RuleGrants;
}

export interface CallHooks {
  /** Hooks run first; what they change or leave open goes through the rules. */
  readonly wrapAuthorize: (authorize: AuthorizeWithHooks) => LoopPorts["authorize"];
  /** Hooks may answer in the place of the one that would be asked. */
  readonly beforeAsk: BeforeAsk;
  /** Rules that hooks have added. */
  readonly rights: RuleGrants["rights"];
  readonly afterCall: NonNullable<LoopPorts["afterCall"]>;
}

export function createCallHooks(dependencies: CallHookDependencies): CallHooks {
  const { runner, situation, report, wantStop, grants } = dependencies;
  /** What a hook said before a call, for the model to read with the call's result. */
  const contexts = new Map<string, string>();

  return {
    rights: grants.rights,
    wrapAuthorize: (authorize) => async (request, options) => {
      if (options.onlyRules === true || !runner.receives("PreToolUse")) return authorize(request, options);
      const { signal, turn } = options;
      const { call, tool } = request;
      const outcome = await runner.fire("PreToolUse", payloadOf(request), await situation(signal, request));
      report(outcome);
      if (outcome.type === "deny" || outcome.stop !== undefined) {
        const { context, stop } = outcome;
        const text = [outcome.reason, context, stop]
          .filter((part) => part !== undefined && part !== "")
          .join("\n");
        return {
          type: "denied",
          reason: `${tool.name} was refused by a hook: ${text}`,
          ...(stop === undefined ? {} : { stops: true }),
        };
      }
      if (outcome.context !== undefined) contexts.set(call.id, outcome.context);
      const verdict = outcome.type === "none" ? {} : { hooks: outcome.type };
      return authorizeChanged(request, outcome.updatedInput, (changed) =>
        authorize(changed, { signal, turn, ...verdict }),
      );
    },
    beforeAsk: createBeforeAsk(dependencies),
    async afterCall(request, outcome, { signal, durationMs }) {
      const { call } = request;
      const before = contexts.get(call.id);
      contexts.delete(call.id);
      const notes = before === undefined ? [] : [before];
      const event = outcome.isError === true ? "PostToolUseFailure" : "PostToolUse";
      if (signal.aborted || !runner.receives(event)) return withNotes(outcome, notes);
      const payload = { ...payloadOf(request), durationMs };
      const options = await situation(signal, request);
      const hookOutcome: EventOutcome =
        event === "PostToolUse"
          ? await runner.fire(
              event,
              { ...payload, response: outcome.data ?? resultText(outcome.content) },
              options,
            )
          : await runner.fire(event, { ...payload, error: resultText(outcome.content) }, options);
      report(hookOutcome);
      if (hookOutcome.stop !== undefined) wantStop();
      // The outcome as hooks have changed it, with what they say about it.
      const shown =
        hookOutcome.updatedOutput === undefined
          ? outcome
          : { ...outcome, content: hookOutcome.updatedOutput };
      const reason = hookOutcome.blocked ? [hookOutcome.reason] : [];
      return withNotes(shown, [
        ...notes,
        ...reason,
        ...(hookOutcome.context === undefined ? [] : [hookOutcome.context]),
      ]);
    },
  };
}

function createBeforeAsk({ runner, situation, report, grants }: CallHookDependencies): BeforeAsk {
  return async ({ call, tool, input }, { signal }) => {
    if (!runner.receives("PermissionRequest")) return undefined;
    const request = { call, tool, input };
    const payload = payloadOf(request);
    const outcome = await runner.fire("PermissionRequest", payload, await situation(signal, request));
    report(outcome);
    const stops = outcome.stop === undefined ? {} : { stops: true };
    if (outcome.type === "deny" || outcome.stop !== undefined) {
      const message = outcome.reason || outcome.stop || "a hook refused it";
      return { behavior: "deny", message, ...stops };
    }
    if (outcome.type !== "allow") return undefined;
    const { updatedInput, updatedPermissions = [] } = outcome;
    report({ systemMessages: [], failures: grants.take(updatedPermissions) });
    return { behavior: "allow", updatedInput };
  };
}

function payloadOf({ call, tool, input }: CallRequest): CallPayload {
  const { mcp } = tool;
  const server = mcp === undefined ? {} : { server: { name: mcp.serverName, source: mcp.source } };
  return { tool: tool.name, input, callId: call.id, ...server };
}

/** A changed input is read by the tool's schema and judged by the rules like one of the model's own. */
async function authorizeChanged(
  request: CallRequest,
  changed: Readonly<Record<string, unknown>> | undefined,
  authorize: (request: CallRequest) => Promise<Authorization>,
): Promise<Authorization> {
  if (changed === undefined) return authorize(request);
  const { tool } = request;
  const read = tool.input?.safeParse(changed) ?? { success: true, data: changed };
  if (!read.success) {
    const issues = read.error.issues.slice(0, 3).map(({ path, message }) => `${path.join(".")}: ${message}`);
    const reason = `${tool.name} was not run, because a hook changed its input to one that is not valid: ${issues.join("; ")}.`;
    return { type: "denied", reason };
  }
  const authorization = await authorize({ ...request, input: read.data });
  const isSame = authorization.type === "allowed" && authorization.input === read.data;
  return isSame ? { ...authorization, input: changed } : authorization;
}

function withNotes(outcome: ToolOutcome, notes: readonly string[]): ToolOutcome {
  if (notes.length === 0) return outcome;
  const note = `<hook-feedback>\n${notes.join("\n")}\n</hook-feedback>`;
  const { content } = outcome;
  if (typeof content !== "string") return { ...outcome, content: [...content, { type: "text", text: note }] };
  return { ...outcome, content: content === "" ? note : `${content}\n\n${note}` };
}

type TeamEvent = "TeammateIdle" | "TaskCreated" | "TaskCompleted";

/** What hooks say about an event of a team: go ahead, not so, or end the teammate. */
type TeamVerdict =
  | { readonly type: "passed" }
  | { readonly type: "blocked"; readonly reason: string }
  | { readonly type: "stopped"; readonly reason: string };

export interface TeamHooks {
  fire<Event extends TeamEvent>(
    event: Event,
    payload: HookPayloads[Event],
    signal: AbortSignal,
  ): Promise<TeamVerdict>;
}

/** The hooks of a team. A hook that fails or says nothing lets the event pass. */
export function createTeamHooks({
  runner,
  situation,
  report,
}: Pick<CallHookDependencies, "runner" | "situation" | "report">): TeamHooks {
  return {
    async fire(event, payload, signal) {
      if (!runner.receives(event)) return { type: "passed" };
      const outcome = await runner.fire(event, payload, await situation(signal));
      report(outcome);
      const { reason, stop } = outcome;
      if (stop !== undefined) return { type: "stopped", reason: stop };
      const blocked = "blocked" in outcome && outcome.blocked;
      return blocked
        ? { type: "blocked", reason: reason || `a ${event} hook refused it` }
        : { type: "passed" };
    },
  };
}
