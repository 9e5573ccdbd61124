import { join } from "node:path";
import { isRecord } from "../foundation/json-record.ts";
import { checkAgentId, isAgentId, type SessionFiles } from "../journal/session-files.ts";

/** Where other processes leave wishes for the children of a session, one file for each child. */
export interface ControlFiles {
  readonly directory: string;
  request(agentId: string): string;
}

export function controlFiles({ directory }: Pick<SessionFiles, "directory">): ControlFiles {
  const folder = join(directory, "control");
  return { directory: folder, request: (agentId) => join(folder, `${checkAgentId(agentId)}.json`) };
}

/** The child a file speaks for; undefined for files that are not ours. */
export function agentOfRequest(fileName: string): string | undefined {
  const id = fileName.endsWith(".json") ? fileName.slice(0, -5) : "";
  return isAgentId(id) ? id : undefined;
}

export function stopRequest(): string {
  return `${JSON.stringify({ version: 1, action: "stop" })}\n`;
}

/** Whether the text is a wish that is understood; nothing but `stop` is. */
export function isStopRequest(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value.version === 1 && value.action === "stop";
  } catch {
    return false;
  }
}
