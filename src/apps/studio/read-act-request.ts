import type { IncomingMessage } from "node:http";
import { isRecord } from "../../foundation/json-record.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { isAgentId } from "../../journal/session-files.ts";
import { type ActRequest, studioActions } from "./studio-messages.ts";

const maxBytes = 256 * 1024;

/** What the page wants done. The type of the body keeps plain forms of other pages out. */
export async function readActRequest(request: IncomingMessage): Promise<ActRequest> {
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
    throw new RetinueError("misuse", "An act is sent as application/json.");
  const value = parse(await readBody(request));
  if (!isRecord(value)) throw new RetinueError("misuse", "An act is a JSON object.");
  const { project, sessionId, agentId, text } = value;
  const action = studioActions.find((known) => known === value.action);
  if (action === undefined) throw new RetinueError("misuse", `An act is one of ${studioActions.join(", ")}.`);
  if (typeof project !== "string" || typeof sessionId !== "string")
    throw new RetinueError("misuse", "An act names its project and sessionId.");
  if (typeof agentId !== "string" || !isAgentId(agentId))
    throw new RetinueError("misuse", "An act names its agentId.");
  if (text !== undefined && typeof text !== "string")
    throw new RetinueError("misuse", "The text of an act is a string.");
  return { project, sessionId, agentId, action, ...(text === undefined ? {} : { text }) };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > maxBytes) throw new RetinueError("misuse", `An act may have at most ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
