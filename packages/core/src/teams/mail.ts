import { createHash } from "node:crypto";
import { escapeControlTags, escapeName } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import type { UserMessage } from "../conversation/message.ts";

/** What the members of a team exchange besides plain text. Only the runtime writes these. */
export type ProtocolMessage =
  | {
      readonly type: "task_assignment";
      readonly taskId: string;
      readonly subject: string;
      readonly description: string;
      readonly assignedBy: string;
    }
  | {
      readonly type: "idle_notification";
      readonly idleReason: "available" | "failed" | "partial";
      /** What it said last, where it sent no message to the lead itself. */
      readonly result?: string;
      readonly failureReason?: string;
      readonly tasksInProgress?: readonly string[];
      readonly summary?: string;
    }
  | { readonly type: "shutdown_request"; readonly requestId: string; readonly reason?: string }
  | { readonly type: "shutdown_approved"; readonly requestId: string }
  | { readonly type: "shutdown_rejected"; readonly requestId: string; readonly reason?: string }
  | { readonly type: "plan_approval_request"; readonly requestId: string; readonly plan: string }
  | {
      readonly type: "plan_approval_response";
      readonly requestId: string;
      readonly approve: boolean;
      readonly feedback?: string;
    }
  | { readonly type: "teammate_terminated"; readonly name: string; readonly message: string }
  | { readonly type: "task_available"; readonly tasks: readonly string[]; readonly message: string };

/** One entry of an inbox. */
export interface Mail {
  readonly key: string;
  readonly from: string;
  readonly text: string;
  readonly timestamp: string;
  readonly read: boolean;
  readonly summary?: string;
  readonly color?: string;
  /** What the text means to the runtime; absent for plain text. */
  readonly protocol?: ProtocolMessage;
}

export interface InboxReading {
  readonly mail: readonly Mail[];
  /** Entries that are no mail, as they are. */
  readonly invalid: readonly unknown[];
}

/** What is sent, before it has a time. `kind` keeps text that only looks like a protocol message plain text. */
export interface OutgoingMail {
  readonly from: string;
  readonly body: string | ProtocolMessage;
  readonly summary?: string;
  readonly color?: string;
}

/** The entry as it is stored: the known fields, and two of our own that other programs ignore. */
export function mailEntry(mail: OutgoingMail, { id, now }: { readonly id: string; readonly now: Date }) {
  const { from, body, summary, color } = mail;
  const timestamp = now.toISOString();
  const isText = typeof body === "string";
  return {
    from,
    text: isText ? plainText(body) : JSON.stringify({ ...body, from, timestamp }),
    timestamp,
    read: false,
    summary,
    color,
    id,
    kind: isText ? "text" : "protocol",
  };
}

/** Programs that ignore `kind` must not take a member's words for a protocol message either. */
function plainText(text: string): string {
  return readJson(text) === undefined ? text : `Text: ${text}`;
}

/** Reads the text of an inbox file. Total: what is no list of mail is one invalid entry. */
export function readInbox(text: string): InboxReading {
  const { entries, invalid } = readInboxEntries(text);
  return { mail: entries.map(({ mail }) => mail), invalid };
}

/** Mail with the entry that it was read from. */
export interface InboxEntry {
  readonly entry: JsonRecord;
  readonly mail: Mail;
}

export function readInboxEntries(text: string): {
  readonly entries: readonly InboxEntry[];
  readonly invalid: readonly unknown[];
} {
  const value = parseJson(text);
  if (!Array.isArray(value)) return { entries: [], invalid: text.trim() === "" ? [] : [value ?? text] };
  const counts = new Map<string, number>();
  const entries: InboxEntry[] = [];
  const invalid: unknown[] = [];
  for (const entry of value) {
    const mail = isRecord(entry) ? readEntry(entry, counts) : undefined;
    if (mail === undefined) invalid.push(entry);
    else entries.push({ entry, mail });
  }
  return { entries, invalid };
}

function readEntry(entry: JsonRecord, counts: Map<string, number>): Mail | undefined {
  const { from, text, timestamp, summary, color, kind, id } = entry;
  if (typeof from !== "string" || typeof text !== "string" || typeof timestamp !== "string") return undefined;
  const base = typeof id === "string" && id !== "" ? id : hashOf([from, text, timestamp]);
  const count = counts.get(base) ?? 0;
  counts.set(base, count + 1);
  const protocol = kind === "text" ? undefined : readProtocol(readJson(text));
  return {
    key: count === 0 ? base : `${base}#${count}`,
    from,
    text,
    timestamp,
    read: entry["read"] === true,
    ...(typeof summary === "string" ? { summary } : {}),
    ...(typeof color === "string" ? { color } : {}),
    protocol,
  };
}

/** The key of an entry of another program, which has no id. */
function hashOf(fields: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(fields)).digest("hex").slice(0, 24);
}

/** The same entry with `read` set, where its key is among those given. */
export function withRead(one: InboxEntry, keys: ReadonlySet<string>): InboxEntry {
  if (one.mail.read || !keys.has(one.mail.key)) return one;
  return { entry: { ...one.entry, read: true }, mail: { ...one.mail, read: true } };
}

/** Other programs spell some fields differently. */
function readProtocol(value: JsonRecord | undefined): ProtocolMessage | undefined {
  if (value === undefined) return undefined;
  const text = (...names: readonly string[]): string | undefined =>
    names.map((name) => value[name]).find((field) => typeof field === "string");
  const requestId = text("requestId", "request_id") ?? "";
  const reason = text("reason", "feedback", "content");
  const approve = value["approve"] ?? value["approved"];
  switch (value["type"]) {
    case "task_assignment":
      return {
        type: "task_assignment",
        taskId: text("taskId", "task_id") ?? "",
        subject: text("subject") ?? "",
        description: text("description") ?? "",
        assignedBy: text("assignedBy") ?? "",
      };
    case "idle_notification": {
      const [result, failureReason, summary] = [
        text("result"),
        text("failureReason", "error"),
        text("summary"),
      ];
      const { idleReason, tasksInProgress } = value;
      const held = Array.isArray(tasksInProgress) ? tasksInProgress.map(String) : [];
      return {
        type: "idle_notification",
        idleReason: idleReason === "failed" || idleReason === "partial" ? idleReason : "available",
        result,
        failureReason,
        ...(held.length === 0 ? {} : { tasksInProgress: held }),
        summary,
      } as const;
    }
    case "shutdown_request":
      return { type: "shutdown_request", requestId, reason };
    case "shutdown_approved":
      return { type: "shutdown_approved", requestId };
    case "shutdown_rejected":
      return { type: "shutdown_rejected", requestId, reason };
    case "plan_approval_request":
      return { type: "plan_approval_request", requestId, plan: text("plan", "planContent", "content") ?? "" };
    case "plan_approval_response":
      return {
        type: "plan_approval_response",
        requestId,
        approve: approve === true,
        feedback: reason,
      };
    case "teammate_terminated":
      return { type: "teammate_terminated", name: text("name") ?? "", message: text("message") ?? "" };
    case "task_available":
      return { type: "task_available", tasks: [], message: text("message") ?? "" };
    default:
      return undefined;
  }
}

/** Mail as its reader's model sees it: one message, one block for each piece. Nothing in it can pose as the runtime. */
export function mailMessage(mail: readonly Mail[]): UserMessage {
  return {
    role: "user",
    content: mail.map((one) => ({ type: "text", text: mailText(one) })),
    mail: mail.map(({ key }) => key),
  };
}

function mailText(mail: Mail): string {
  const attributes = [
    ["teammate_id", mail.from],
    ["color", mail.color],
    ["summary", mail.summary],
  ]
    .filter(([, value]) => value !== undefined)
    .map(([name, value = ""]) => `${name}="${escapeName(value).replace(/["<>]/g, "'").slice(0, 200)}"`)
    .join(" ");
  return `<teammate-message ${attributes}>\n${escapeControlTags(bodyOf(mail))}\n</teammate-message>`;
}

/** What a message says, in words. */
export function bodyOf({ from, text, protocol }: Pick<Mail, "from" | "text" | "protocol">): string {
  if (protocol === undefined) return text;
  switch (protocol.type) {
    case "task_assignment":
      return `Task ${protocol.taskId} is assigned to you: ${protocol.subject}\n\n${protocol.description}`;
    case "idle_notification": {
      const { idleReason, failureReason, result, tasksInProgress = [] } = protocol;
      const state = {
        available: `${from} is idle and available.`,
        partial: `${from} stopped before it was done (${failureReason ?? "a limit"}) and is idle.`,
        failed: `${from} failed (${failureReason ?? "no reason was given"}) and is idle.`,
      }[idleReason];
      const held = tasksInProgress.length === 0 ? "" : ` It still holds task ${tasksInProgress.join(", ")}.`;
      return `${state}${held}${result === undefined ? "" : `\n\nWhat it said last:\n${result}`}`;
    }
    case "shutdown_request":
      return `Shutdown request ${protocol.requestId}${withReason(protocol.reason)}. Finish or hand over what you hold, then answer with SendMessage: type "shutdown_response", request_id "${protocol.requestId}", approve true to end, or false with a reason to keep working.`;
    case "shutdown_approved":
      return `${from} accepted the shutdown request ${protocol.requestId} and ends.`;
    case "shutdown_rejected":
      return `${from} rejected the shutdown request ${protocol.requestId}${withReason(protocol.reason)}.`;
    case "plan_approval_request":
      return `${from} asks for approval of its plan (request ${protocol.requestId}). Answer with SendMessage: type "plan_approval_response", to "${from}", request_id "${protocol.requestId}", approve true, or false with your feedback as message.\n\n${protocol.plan}`;
    case "plan_approval_response":
      return protocol.approve
        ? `Your plan (request ${protocol.requestId}) is approved${withReason(protocol.feedback)}. Carry it out.`
        : `Your plan (request ${protocol.requestId}) is rejected${withReason(protocol.feedback)}. Revise it and hand it in again with ExitPlanMode.`;
    case "teammate_terminated":
    case "task_available":
      return protocol.message;
  }
}

function withReason(reason: string | undefined): string {
  return reason === undefined || reason.trim() === "" ? "" : `: ${reason.trim().replace(/\.$/, "")}`;
}

/** An object with a `type`, as protocol messages are. */
function readJson(text: string): JsonRecord | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  const value = parseJson(text);
  return isRecord(value) && typeof value["type"] === "string" ? value : undefined;
}
