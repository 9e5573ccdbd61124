import { randomUUID } from "node:crypto";
import type {
  ClientCapabilities,
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationPropertySchema,
  ElicitationRequestScope,
  ElicitationSchema,
  ElicitationSessionScope,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCall,
} from "@agentclientprotocol/sdk";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { type BatchQuote, quoteRows } from "@retinue/core/inspection/describe-quote.ts";
import { suggestUpdates } from "@retinue/core/kernel/suggest-updates.ts";
import type {
  Answer,
  ElicitationQuestion,
  FormQuestion,
  PermissionQuestion,
  Question,
} from "@retinue/core/protocol/question.ts";
import { toolCall } from "./acp-updates.ts";

/** What an editor can be asked, and what of it this one can show. */
export interface EditorRequests {
  readonly capabilities: ClientCapabilities;
  readonly requestPermission: (
    request: RequestPermissionRequest,
    signal: AbortSignal,
  ) => Promise<RequestPermissionResponse>;
  readonly elicit: (
    request: CreateElicitationRequest,
    signal: AbortSignal,
  ) => Promise<CreateElicitationResponse>;
}

const once: readonly PermissionOption[] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];
const always: PermissionOption = { optionId: "always", name: "Allow for this session", kind: "allow_always" };

/** Puts a question to the person at the editor. Rejects where the editor cannot answer; the signal withdraws it. */
export async function answerByEditor(question: Question, ask: Asking): Promise<Answer> {
  switch (question.kind) {
    case "permission":
      return askPermission(question, suggestUpdates(question, ask.directory), ask);
    case "plan": {
      const call = { callId: question.callId, tool: "ExitPlanMode", input: { plan: question.plan } };
      const answer = await askPermission(call, [], ask);
      return answer.type === "allow" ? { type: "approve" } : answer;
    }
    case "form":
      return askForm(question, ask);
    case "elicitation":
      return askElicitation(question, ask);
  }
}

export interface Asking {
  readonly editor: EditorRequests;
  /** The session that asks; while it is opened, the request that opens it. */
  readonly scope: ElicitationSessionScope | ElicitationRequestScope;
  readonly directory: string;
  readonly signal: AbortSignal;
}

async function askPermission(
  {
    callId: id,
    tool: name,
    input,
    quote,
    preview,
  }: {
    readonly callId: string;
    readonly tool: string;
    readonly input: unknown;
    readonly quote?: PermissionQuestion["quote"];
    readonly preview?: PermissionQuestion["preview"];
  },
  updates: ReturnType<typeof suggestUpdates>,
  { editor, scope, signal }: Asking,
): Promise<Answer> {
  if (!("sessionId" in scope)) return { type: "deny", message: "the session is not open yet" };
  const { sessionId } = scope;
  const { sessionUpdate: _kind, ...call } = toolCall({ type: "tool_use", id, name, input }, "pending");
  const shown = {
    ...call,
    ...(preview === undefined ? {} : { content: [codeContent([...preview.rows, "", preview.text])] }),
    ...(quote === undefined ? {} : quotedCall(quote)),
  };
  const options = updates.length === 0 ? [...once] : [always, ...once];
  const { outcome } = await editor.requestPermission({ sessionId, toolCall: shown, options }, signal);
  if (outcome.outcome === "cancelled")
    return { type: "deny", message: "the editor cancelled the question", stop: true };
  if (outcome.optionId === "reject") return { type: "deny", message: "the person rejected it" };
  if (outcome.optionId !== "always") return { type: "allow" };
  return { type: "allow", updates: updates.map((update) => ({ ...update, destination: "session" })) };
}

/** Agents that start together are shown by what they would take and may do. */
function quotedCall(quote: BatchQuote): Pick<ToolCall, "title" | "content"> {
  const [title = "", ...rows] = quoteRows(quote);
  const why = quote.why === undefined ? [] : ["", quote.why];
  return { title: `Start ${title}`, content: [codeContent([...rows, ...why])] };
}

/** The fence is longer than any in the text, so that nothing leaves it. */
function codeContent(lines: readonly string[]) {
  const text = lines.join("\n");
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return { type: "content", content: { type: "text", text: `${fence}\n${text}\n${fence}` } } as const;
}

/** What an MCP server wants to know; a question that the editor cannot show is declined. */
async function askElicitation(
  question: ElicitationQuestion,
  { editor, scope, signal }: Asking,
): Promise<Answer> {
  const { server, message, url, elicitationId = randomUUID(), schema } = question;
  const { form, url: opensUrls } = editor.capabilities.elicitation ?? {};
  const isShown = url === undefined ? form : opensUrls;
  if (isShown === undefined || isShown === null) return { type: "elicited", action: "decline" };
  const about = { ...scope, message: `${server}: ${message}` };
  const answer = await editor.elicit(
    url === undefined
      ? // The server wrote the form by the rules of MCP, which are the same.
        { ...about, mode: "form", requestedSchema: { type: "object", ...schema } as ElicitationSchema }
      : { ...about, mode: "url", url, elicitationId },
    signal,
  );
  if (answer.action !== "accept")
    return { type: "elicited", action: answer.action === "cancel" ? "cancel" : "decline" };
  return { type: "elicited", action: "accept", content: contentOf(answer) };
}

/** The questions of AskUserQuestion as one form. */
async function askForm({ fields, callId }: FormQuestion, { editor, scope, signal }: Asking): Promise<Answer> {
  const properties = fields.map(({ question, header, options, multiSelect }, at) => {
    const choices = options.map(({ label, description }) => ({ const: label, title: label, description }));
    const about = { title: header, description: question };
    const field: ElicitationPropertySchema = multiSelect
      ? { type: "array", ...about, items: { anyOf: choices } }
      : { type: "string", ...about, oneOf: choices };
    return [`question${at + 1}`, field] as const;
  });
  const answer = await editor.elicit(
    {
      ...scope,
      ...("sessionId" in scope ? { toolCallId: callId } : {}),
      mode: "form",
      message: fields.map(({ question }) => question).join("\n"),
      requestedSchema: {
        type: "object",
        properties: Object.fromEntries(properties),
        required: properties.map(([name]) => name),
      },
    },
    signal,
  );
  if (answer.action !== "accept") return { type: "deny" };
  const content = contentOf(answer);
  const answers = fields.map(({ question }, at) => {
    const value = content[`question${at + 1}`];
    return [question, Array.isArray(value) ? value.join(", ") : String(value ?? "")] as const;
  });
  return { type: "fields", answers: Object.fromEntries(answers) };
}

function contentOf(
  answer: CreateElicitationResponse,
): Readonly<Record<string, string | number | boolean | string[]>> {
  const content = "content" in answer && isRecord(answer.content) ? answer.content : {};
  return content as Readonly<Record<string, string | number | boolean | string[]>>;
}
