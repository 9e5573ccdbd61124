import { join } from "node:path";
import { isRecord } from "../foundation/json-record.ts";
import { checkAgentId, isAgentId, type SessionFiles } from "../journal/session-files.ts";

/** Where other processes leave wishes for the children of a session, one file for each child. */
export interface ControlFiles {
  readonly directory: string;
  request(agentId: string): string;
  /** A message for a child; each has a file of its own. */
  message(agentId: string, messageId: string): string;
}

export function controlFiles({ directory }: Pick<SessionFiles, "directory">): ControlFiles {
  const folder = join(directory, "control");
  return {
    directory: folder,
    request: (agentId) => join(folder, `${checkAgentId(agentId)}.json`),
    message: (agentId, messageId) =>
      join(folder, `${checkAgentId(agentId)}.${checkAgentId(messageId)}.message`),
  };
}

/** The child a message is for; undefined for files that are no messages. */
export function recipientOfMessage(fileName: string): string | undefined {
  const [id = "", messageId = "", ending, more] = fileName.split(".");
  const isMessage = ending === "message" && more === undefined && isAgentId(messageId);
  return isMessage && isAgentId(id) ? id : undefined;
}

export function messageRequest(text: string): string {
  return `${JSON.stringify({ version: 1, action: "message", text })}\n`;
}

/** The text of a message; undefined where the file holds none. */
export function readMessageRequest(text: string): string | undefined {
  const value = parse(text);
  const isMessage = isRecord(value) && value.version === 1 && value.action === "message";
  return isMessage && typeof value.text === "string" && value.text.trim() !== "" ? value.text : undefined;
}

/** The child a file speaks for; undefined for files that are not ours. */
export function agentOfRequest(fileName: string): string | undefined {
  const id = fileName.endsWith(".json") ? fileName.slice(0, -5) : "";
  return isAgentId(id) ? id : undefined;
}

const controlActions = ["stop", "background"] as const;

/** What another process asks of an agent besides taking a message. */
export type ControlAction = (typeof controlActions)[number];

export function controlRequest(action: ControlAction): string {
  return `${JSON.stringify({ version: 1, action })}\n`;
}

/** What the text of a file asks for; undefined where it is no request. */
export function readControlRequest(text: string): ControlAction | undefined {
  const value = parse(text);
  if (!isRecord(value) || value.version !== 1) return undefined;
  return controlActions.find((known) => known === value.action);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
