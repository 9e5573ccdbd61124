import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { quoteRows } from "@retinue/core/inspection/describe-quote.ts";
import { suggestUpdates } from "@retinue/core/kernel/suggest-updates.ts";
import type {
  Answer,
  FormQuestion,
  PermissionQuestion,
  PlanQuestion,
  Question,
} from "@retinue/core/protocol/question.ts";
import { isBlocking, specificOf } from "./observed-hooks.ts";
import type { SdkConnection } from "./sdk-connection.ts";

type Connection = Pick<SdkConnection, "channel" | "host" | "observed">;

/** Puts a question to the host; rejects where it cannot answer. The signal withdraws it. */
export async function answerByHost(
  question: Question,
  { connection, directory, signal }: { connection: Connection; directory: string; signal: AbortSignal },
): Promise<Answer> {
  if (question.kind === "elicitation") {
    // The question of an MCP server goes to hooks and then to the host; one that answers no questions declines it.
    const { server: subject, message, schema, url, elicitationId } = question;
    const id = elicitationId === undefined ? {} : { elicitation_id: elicitationId };
    const about = { mcp_server_name: subject, mode: url === undefined ? "form" : "url", ...id };
    const fields = {
      ...about,
      message,
      requested_schema: schema,
      url,
    };
    const { observed } = connection;
    const before = await observed().fire("Elicitation", { fields, signal, subject });
    const answer = before.some(isBlocking)
      ? declined
      : (decided(before) ?? (await elicitByHost(connection, fields, signal)));
    const { type: _type, ...given } = answer;
    const after = await observed().fire("ElicitationResult", {
      fields: { ...about, ...given },
      signal,
      subject,
    });
    return after.some(isBlocking) ? declined : (decided(after) ?? answer);
  }
  const { host, channel } = connection;
  host.setState("requires_action");
  try {
    return readAnswer(question, await channel.ask(requestOf(question, directory), signal));
  } finally {
    host.setState("running");
  }
}

type CallQuestion = PermissionQuestion | FormQuestion | PlanQuestion;

/** All of them are asked as a call that may run or not. */
function requestOf(question: CallQuestion, directory: string): JsonRecord & { readonly subtype: string } {
  const subtype = "can_use_tool";
  const asking = question.path.length === 1 ? {} : { agent_id: question.path.at(-1)?.id };
  const about = { tool_use_id: question.callId ?? "", ...asking, requires_user_interaction: true };
  if (question.kind === "form") {
    const tool = { tool_name: "AskUserQuestion", display_name: "AskUserQuestion" };
    return { subtype, ...tool, input: { questions: question.fields }, ...about };
  }
  if (question.kind === "plan") {
    const input = question.plan === undefined ? {} : { plan: question.plan };
    return { subtype, tool_name: "ExitPlanMode", input, ...about, display_name: "ExitPlanMode" };
  }
  const { tool, input, callId, reason, outsidePaths = [], server, quote, preview } = question;
  const [blocked] = outsidePaths;
  const suggestions = suggestUpdates(question, directory);
  return {
    subtype,
    tool_name: tool,
    input,
    tool_use_id: callId,
    ...(suggestions.length === 0 ? {} : { permission_suggestions: suggestions }),
    blocked_path: blocked,
    decision_reason: reason,
    decision_reason_type: reasonType(reason, blocked),
    display_name: tool,
    ...(preview === undefined ? {} : { description: preview.rows.join("\n"), preview }),
    ...(quote === undefined
      ? preview === undefined && descriptionOf(input, directory)
      : { description: quoteRows(quote).join("\n"), quote }),
    ...asking,
    ...(server === undefined
      ? {}
      : {
          mcp_server: { name: server.name, source: server.source === "program" ? "sdk" : server.source },
        }),
    ...(interactive.has(tool) ? { requires_user_interaction: true } : {}),
  };
}

/** Tools whose question is the interaction itself. */
const interactive: ReadonlySet<string> = new Set(["AskUserQuestion", "ExitPlanMode"]);

function readAnswer({ kind }: CallQuestion, answer: JsonRecord): Answer {
  const { behavior, updatedInput, updatedPermissions, message, interrupt } = answer;
  if (behavior !== "allow") {
    const text = typeof message === "string" ? message : undefined;
    return {
      type: "deny",
      message: kind === "form" ? (text ?? "the host declined") : text,
      stop: kind === "permission" && interrupt === true,
    };
  }
  const input = isRecord(updatedInput) ? updatedInput : undefined;
  const updates = Array.isArray(updatedPermissions) ? updatedPermissions : [];
  if (kind === "permission") return { type: "allow", input, updates };
  if (kind === "plan") {
    const plan = input?.["plan"];
    return { type: "approve", plan: typeof plan === "string" ? plan : undefined, updates };
  }
  const given = Object.entries(isRecord(input?.["answers"]) ? input["answers"] : {});
  const answers = given.map(
    ([asked, text]) => [asked, Array.isArray(text) ? text.join(", ") : String(text)] as const,
  );
  return { type: "fields", answers: Object.fromEntries(answers) };
}

/** What the call is about, in words of the model or of its input. */
function descriptionOf(input: JsonRecord, directory: string): { readonly description?: string } {
  const { description, file_path: file, notebook_path: notebook, url, query } = input;
  const path = [file, notebook].find((each) => typeof each === "string");
  const shown =
    typeof path === "string" && path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;
  const text = [description, shown, url, query].find((each) => typeof each === "string");
  return typeof text === "string" ? { description: text } : {};
}

function reasonType(reason: string, blocked: string | undefined): string {
  if (/\brule\b/.test(reason)) return "rule";
  if (/\bhook\b/.test(reason)) return "hook";
  return blocked === undefined ? "other" : "workingDir";
}

type ElicitationAnswer = Extract<Answer, { type: "elicited" }>;
const declined: ElicitationAnswer = { type: "elicited", action: "decline" };

/** The first answer of a callback, where one gives an answer. */
function decided(outputs: readonly JsonRecord[]): ElicitationAnswer | undefined {
  return outputs.map((output) => readElicited(specificOf(output))).find((answer) => answer !== undefined);
}

function readElicited({ action, content }: JsonRecord): ElicitationAnswer | undefined {
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  if (action !== "accept" || !isRecord(content)) return { type: "elicited", action };
  // What is in it is checked by the server that asked.
  return { type: "elicited", action, content: content as NonNullable<ElicitationAnswer["content"]> };
}

async function elicitByHost(
  { channel, host }: Connection,
  fields: JsonRecord,
  signal: AbortSignal,
): Promise<ElicitationAnswer> {
  host.setState("requires_action");
  try {
    return readElicited(await channel.ask({ subtype: "elicitation", ...fields }, signal)) ?? declined;
  } catch {
    return declined;
  } finally {
    host.setState("running");
  }
}
