import type { CallToolResult, InputRequiredResult, ServerContext } from "@modelcontextprotocol/server";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { boundedResult, deniedCalls } from "@retinue/core/kernel/project/agent-view.ts";
import type { FormReply } from "./form-question.ts";
import type { OpenQuestion, PendingCall } from "./pending-call.ts";
import { reportProgress } from "./report-progress.ts";

export type Sdk = typeof import("@modelcontextprotocol/server");

/** The two ways of the protocol: asking during a request, or answering it with a question and going on in the next one. */
export type Era = "legacy" | "modern";

export interface Serving {
  readonly sdk: Sdk;
  readonly era: Era;
  readonly context: ServerContext;
}

/** A person reads and thinks; the usual limit of a request is too short for that. */
const answerMs = 10 * 60_000;

/** Waits for an agent as long as its client does, and puts to the client what the agent asks. */
export async function servePendingCall(
  pendingCall: PendingCall,
  { sdk, era, context }: Serving,
): Promise<CallToolResult | InputRequiredResult> {
  const signal = clientSignal(context);
  const stop = (): void => void pendingCall.stop();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const endProgress = reportProgress(context, pendingCall.agents, ({ callId }) => callId === pendingCall.id);
  try {
    while (true) {
      const pendingMessages = await pendingCall.next();
      if (pendingMessages.type === "ended") {
        const outcome = pendingMessages.outcome;
        if (outcome.type === "refused")
          return { content: [{ type: "text", text: outcome.reason }], isError: true };
        const data = isRecord(outcome.data) ? outcome.data : {};
        const agentId = String(data.agentId);
        if (outcome.type === "launched") {
          return {
            content: [{ type: "text", text: launchedText(agentId, data) }],
            structuredContent: data,
          };
        }
        const denials = deniedCalls(pendingCall.agents.get(agentId)?.state()?.ending);
        const refusals = denials.map(({ reason }) => `- ${reason}`);
        const text =
          refusals.length === 0 ? outcome.text : `${outcome.text}\n\nNot allowed:\n${refusals.join("\n")}`;
        return {
          content: [{ type: "text", text }],
          structuredContent: { ...data, content: bounded(data.content), denials },
          ...(outcome.isError ? { isError: true } : {}),
        };
      }
      const { question } = pendingMessages;
      if (era === "modern") {
        pendingCall.leave();
        const { id, form } = question;
        const request = sdk.inputRequired.elicit({
          message: form.message,
          requestedSchema: wireSchema(form.schema),
        });
        return sdk.inputRequired({ inputRequests: { [id]: request }, requestState: pendingCall.id });
      }
      question.reply(await elicit(question, context, signal));
    }
  } finally {
    endProgress();
    signal.removeEventListener("abort", stop);
  }
}

/** Gives the answers that a request brings to the flight it continues with. */
export function takeAnswers(pendingCall: PendingCall, { sdk, context }: Serving): void {
  const question = pendingCall.question();
  if (question === undefined) return;
  const answer = sdk.inputResponse(context.mcpReq.inputResponses, question.id);
  if (answer.kind === "elicit") question.reply(answer);
}

/** Aborted when the client cancels the request, and when its connection is gone. */
export function clientSignal({ mcpReq, http }: ServerContext): AbortSignal {
  return http?.req === undefined ? mcpReq.signal : AbortSignal.any([mcpReq.signal, http.req.signal]);
}

async function elicit(
  { form }: OpenQuestion,
  { mcpReq }: ServerContext,
  signal: AbortSignal,
): Promise<FormReply> {
  try {
    const { action, content = {} } = await mcpReq.elicitInput(
      { message: form.message, requestedSchema: wireSchema(form.schema) },
      { signal, timeout: answerMs, relatedRequestId: mcpReq.id },
    );
    return { action, content };
  } catch {
    // A client that does not answer, or answers with something else, has not agreed.
    return { action: "unanswered" };
  }
}

type WireSchema = Parameters<ServerContext["mcpReq"]["elicitInput"]>[0] extends infer Params
  ? Params extends { requestedSchema: infer Schema }
    ? Schema
    : never
  : never;

function wireSchema(schema: OpenQuestion["form"]["schema"]): WireSchema {
  // The same shape; only that ours cannot be written to.
  return structuredClone(schema) as WireSchema;
}

/** Many clients give the structured content to their model, so the limit for texts holds there too. */
function bounded(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((block: unknown) =>
    isRecord(block) && typeof block.text === "string" ? { ...block, text: boundedResult(block.text) } : block,
  );
}

function launchedText(agentId: string, { status, outputFile }: Readonly<Record<string, unknown>>): string {
  const [what, next] =
    status === "teammate_spawned"
      ? ["teammate works now", "read_messages waits for what it writes, send_message gives it more work"]
      : [
          "agent works in the background",
          "agent_output with this id waits for its result, send_message sends it more",
        ];
  return [
    `The ${what}; its id is ${agentId}.`,
    `${next}, stop_agent ends it.`,
    ...(typeof outputFile === "string" ? [`What it does can be followed in ${outputFile}.`] : []),
  ].join("\n");
}
