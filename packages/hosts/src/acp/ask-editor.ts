import { randomUUID } from "node:crypto";
import type {
  ClientCapabilities,
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationPropertySchema,
  ElicitationSchema,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { LiveControls } from "@retinue/core/kernel/agent/open-agent.ts";
import type { ToolHost } from "../../../../src/index.ts";
import { toolCall } from "./acp-updates.ts";

/** Puts the question of a call to the editor, in the form in which hosts of the Agent SDK are asked. */
export type AskEditor = (request: JsonRecord, signal?: AbortSignal) => Promise<JsonRecord>;

type RequestPermission = (
  request: RequestPermissionRequest,
  signal: AbortSignal | undefined,
) => Promise<RequestPermissionResponse>;

const once: readonly PermissionOption[] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];
const always: PermissionOption = { optionId: "always", name: "Allow for this session", kind: "allow_always" };

export function createAskEditor(sessionId: () => string, requestPermission: RequestPermission): AskEditor {
  return async (request, signal) => {
    const { tool_name: name, tool_use_id: id, input, permission_suggestions: suggestions } = request;
    const updates = (Array.isArray(suggestions) ? suggestions : []).filter(isRecord);
    const call = { type: "tool_use", id: String(id), name: String(name), input } as const;
    const { sessionUpdate: _kind, ...shown } = toolCall(call, "pending");
    const options = updates.length === 0 ? [...once] : [always, ...once];
    const { outcome } = await requestPermission({ sessionId: sessionId(), toolCall: shown, options }, signal);
    if (outcome.outcome === "cancelled")
      return { behavior: "deny", message: "the editor cancelled the question", interrupt: true };
    if (outcome.optionId === "reject") return { behavior: "deny", message: "the person rejected it" };
    if (outcome.optionId !== "always") return { behavior: "allow" };
    const forSession = updates.map((update) => ({ ...update, destination: "session" }));
    return { behavior: "allow", updatedPermissions: forSession };
  };
}

type Elicit = (
  request: CreateElicitationRequest,
  signal: AbortSignal | undefined,
) => Promise<CreateElicitationResponse>;

/** Who asks the person at the editor, and which of the forms of a question that editor knows. */
export interface EditorForms {
  readonly sessionId: () => string;
  readonly capabilities: ClientCapabilities["elicitation"];
  readonly elicit: Elicit;
}

type AskMcpQuestion = NonNullable<LiveControls["elicit"]>;

/** Puts what an MCP server wants to know to the person; a question that the editor cannot show is declined. */
export function createElicit({ sessionId, capabilities, elicit }: EditorForms): AskMcpQuestion {
  return async ({ server, message, url, elicitationId, schema }, { signal }) => {
    const about = { sessionId: sessionId(), message: `${server}: ${message}` };
    const isShown = url === undefined ? capabilities?.form : capabilities?.url;
    if (isShown === undefined || isShown === null) return { action: "decline" };
    const answer = await elicit(
      url === undefined
        ? // The server wrote the form by the rules of MCP, which are the same.
          { ...about, mode: "form", requestedSchema: { type: "object", ...schema } as ElicitationSchema }
        : { ...about, mode: "url", url, elicitationId: elicitationId ?? randomUUID() },
      signal,
    );
    if (answer.action !== "accept") return { action: answer.action === "cancel" ? "cancel" : "decline" };
    const content = "content" in answer && isRecord(answer.content) ? answer.content : {};
    return {
      action: "accept",
      content: content as NonNullable<Awaited<ReturnType<AskMcpQuestion>>["content"]>,
    };
  };
}

/** Puts the questions of AskUserQuestion to the person as one form; undefined where the editor shows none. */
export function createAskQuestions({ sessionId, capabilities, elicit }: EditorForms): ToolHost["ask"] {
  if (capabilities?.form === undefined || capabilities.form === null) return undefined;
  return async (questions, { signal, callId }) => {
    const fields = questions.map(({ question, header, options, multiSelect }, at) => {
      const choices = options.map(({ label, description }) => ({ const: label, title: label, description }));
      const about = { title: header, description: question };
      const field: ElicitationPropertySchema = multiSelect
        ? { type: "array", ...about, items: { anyOf: choices } }
        : { type: "string", ...about, oneOf: choices };
      return [`question${at + 1}`, field] as const;
    });
    const answer = await elicit(
      {
        sessionId: sessionId(),
        ...(callId === undefined ? {} : { toolCallId: callId }),
        mode: "form",
        message: questions.map(({ question }) => question).join("\n"),
        requestedSchema: {
          type: "object",
          properties: Object.fromEntries(fields),
          required: fields.map(([name]) => name),
        },
      },
      signal,
    );
    if (answer.action !== "accept")
      throw new RetinueError("question-declined", "the person closed the questions without an answer");
    const content = "content" in answer && isRecord(answer.content) ? answer.content : {};
    const given = questions.map(({ question }, at) => {
      const value = content[`question${at + 1}`];
      return [question, Array.isArray(value) ? value.join(", ") : String(value ?? "")] as const;
    });
    return Object.fromEntries(given);
  };
}
