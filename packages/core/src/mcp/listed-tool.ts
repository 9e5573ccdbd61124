import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { endSentence } from "@retinue/base/foundation/first-sentence.ts";
import { isRecord, isUnreasonablyLarge, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { takeStart } from "../tools/limit-text.ts";
import type { McpHints } from "../tools/tool.ts";

/** One tool as its server describes it, made harmless. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonRecord;
  readonly hints: McpHints;
  /** The server wants it to be in every prompt. */
  readonly isAlwaysLoaded?: true;
}

const maxDescription = 2_048;
const maxSchema = 100_000;

/** Reads what a server lists; an entry without a name is none, everything else is repaired. */
export function readListedTools(value: unknown): readonly ListedTool[] {
  if (!Array.isArray(value)) return [];
  const seen = new Set<string>();
  return value.flatMap((entry: unknown): ListedTool[] => {
    if (!isRecord(entry) || typeof entry["name"] !== "string" || entry["name"] === "") return [];
    const { name } = entry;
    if (seen.has(name)) return [];
    seen.add(name);
    return [
      {
        name,
        description: describe(entry, name),
        inputSchema: readSchema(entry["inputSchema"]),
        hints: readHints(entry["annotations"]),
        ...(isRecord(entry["_meta"]) && entry["_meta"]["anthropic/alwaysLoad"] === true
          ? { isAlwaysLoaded: true as const }
          : {}),
      },
    ];
  });
}

export function boundedText(text: string, limit: number): string {
  return text.length <= limit ? text : `${takeStart(text, limit - 1)}…`;
}

function describe({ description, title }: JsonRecord, name: string): string {
  const text = [description, title].find((part) => typeof part === "string" && part.trim() !== "");
  return escapeControlTags(boundedText(typeof text === "string" ? text.trim() : name, maxDescription));
}

/** Providers refuse a whole request for one schema that is not an object's; such a tool takes any object. */
function readSchema(schema: unknown): JsonRecord {
  const open = { type: "object", properties: {} };
  if (!isRecord(schema) || isUnreasonablyLarge(schema, { depth: 60, nodes: 20_000 })) return open;
  if (JSON.stringify(schema).length > maxSchema) return open;
  if (schema["type"] !== undefined && schema["type"] !== "object") return open;
  return repaired(defusedRecord(schema));
}

/** Text in a schema is read by the model like a description. How deep it is was looked at before. */
function defused(value: unknown): unknown {
  if (typeof value === "string") return escapeControlTags(value);
  if (Array.isArray(value)) return value.map(defused);
  return isRecord(value) ? defusedRecord(value) : value;
}

function defusedRecord(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).map(([key, part]) => [key, defused(part)]));
}

function repaired(schema: JsonRecord): JsonRecord {
  const rest = Object.entries(schema).filter(([key]) => !refusedKeys.has(key));
  const properties = readProperties(schema["properties"]);
  const required = Array.isArray(schema["required"])
    ? schema["required"].filter((name) => typeof name === "string" && Object.hasOwn(properties, name))
    : [];
  return {
    ...Object.fromEntries(rest),
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
  };
}

/** What providers do not take at the top of a schema, and what is read on its own. */
const refusedKeys: ReadonlySet<string> = new Set(
  "$schema type properties required anyOf oneOf allOf not if then else enum const".split(" "),
);

function readProperties(properties: unknown): JsonRecord {
  if (!isRecord(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => /^[A-Za-z0-9_.-]{1,64}$/.test(name))
      .map(([name, schema]) => [name, isRecord(schema) || typeof schema === "boolean" ? schema : {}]),
  );
}

function readHints(annotations: unknown): McpHints {
  if (!isRecord(annotations)) return {};
  const hint = (name: string) => (typeof annotations[name] === "boolean" ? annotations[name] : undefined);
  const [readOnly, destructive, idempotent] = ["readOnlyHint", "destructiveHint", "idempotentHint"].map(hint);
  return {
    readOnly,
    destructive,
    idempotent,
  };
}

/** What became of one request to a server. */
export type CallEnd =
  | { readonly type: "answered"; readonly result: unknown }
  /** The server refused it before doing anything, as it no longer knows the session: it may be sent again. */
  | { readonly type: "session-lost"; readonly reason: string }
  | { readonly type: "failed"; readonly reason: string };

interface FailedRequest {
  readonly server: string;
  readonly error: unknown;
  /** What is known of the end of the connection, when it has ended. */
  readonly ending?: string;
  readonly isClosed: boolean;
  readonly limitMs: number;
}

/** Says in words why a request has no answer. */
export function describeFailure(failed: FailedRequest): Exclude<CallEnd, { type: "answered" }> {
  const { server, error, ending = "", isClosed, limitMs } = failed;
  const name = `The MCP server ${JSON.stringify(server)}`;
  const status = statusOf(error);
  const message = escapeControlTags(boundedText(messageOf(error), 1_000));
  if (status === 404 || (status === 400 && /session/i.test(message))) {
    return { type: "session-lost", reason: `${name} no longer knows this session: ${message}` };
  }
  if (isClosed) {
    const how = ending === "" ? "" : `: ${ending}`;
    return {
      type: "failed",
      reason: `${name} ended before it answered${how}. The call may have had part of its effect; it was not repeated. The next call starts the server again.`,
    };
  }
  if (codeOf(error) === "REQUEST_TIMEOUT") {
    return {
      type: "failed",
      reason: `${name} did not answer within ${limitMs / 1000} s, and was asked to stop. The call may have had part of its effect.`,
    };
  }
  if (status === 401 || status === 403) {
    return {
      type: "failed",
      reason: `${name} refused the request (HTTP ${status}): ${message}. Check the headers or the key in its configuration.`,
    };
  }
  const what = error instanceof TypeError ? "could not be reached" : "answered with an error";
  return { type: "failed", reason: `${name} ${what}: ${message}` };
}

/** Why a server could not be reached, for people. */
export function describeStart(error: unknown, ending: string): string {
  const known = new Map([
    ["ENOENT", "its command was not found, or its working directory does not exist"],
    ["EACCES", "its command may not be executed"],
    ["REQUEST_TIMEOUT", "it did not answer in time"],
  ]);
  const reason =
    known.get(String(codeOf(error) ?? "")) ?? escapeControlTags(boundedText(messageOf(error), 500));
  return ending === "" ? reason : `${reason}; ${ending}`;
}

export function isUnknownMethod(error: unknown): boolean {
  return codeOf(error) === -32601;
}

/** Whether a server has refused the old handshake, as one that only speaks newer protocol versions does. */
export function refusesHandshake(error: unknown): boolean {
  const code = codeOf(error);
  if (code === -32022 || isUnknownMethod(error) || code === -32004) return true;
  return statusOf(error) === 400 && /protocol|version|-32022/i.test(messageOf(error));
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What fetch says is in the cause; "fetch failed" does not help.
  const cause = error.cause instanceof Error ? ` (${causeText(error.cause)})` : "";
  const message = `${error.message}${cause}`;
  if (!isRetinueError(error) || error.advice === undefined) return message;
  // The caller that reports it ends the sentence.
  return `${endSentence(message)} ${error.advice.replace(/\.$/, "")}`;
}

function causeText(cause: Error): string {
  const code = codeOf(cause);
  return cause.message === "" ? String(code ?? cause.name) : cause.message;
}

function codeOf(error: unknown): unknown {
  return isRecord(error) ? error["code"] : undefined;
}

function statusOf(error: unknown): number | undefined {
  const status = isRecord(error) ? error["status"] : undefined;
  return typeof status === "number" ? status : undefined;
}
