// @io
import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { checkAgentId, isAgentId, type SessionFiles } from "../journal/session-files.ts";
import type { AgentId, Op } from "../protocol/op.ts";

/** The ops that other processes of the same user can submit to an agent that runs. */
export type RemoteOp = Extract<Op, { readonly type: "stop" | "background" | "message" }> & {
  readonly agent: AgentId;
};

/** Where other processes leave ops for the agents of a session. */
export interface ControlFiles {
  readonly directory: string;
  /** To stop an agent or to move it to the background: one file for each. */
  request(agentId: string): string;
  /** A message for an agent; each has a file of its own. */
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

export interface LeftOp {
  /** Gone as soon as the process that runs the agent has taken the op. */
  readonly file: string;
  takeBack(): void;
}

/** Leaves an op for the process that runs the agent. */
export function leaveOp(files: ControlFiles, op: RemoteOp): LeftOp {
  const { type: action, agent } = op;
  const file = action === "message" ? files.message(agent, crypto.randomUUID()) : files.request(agent);
  mkdirSync(files.directory, { recursive: true, mode: 0o700 });
  replaceWholeFile(
    file,
    `${JSON.stringify({ version: 1, action, ...(action === "message" ? { text: op.text } : {}) })}\n`,
  );
  return { file, takeBack: () => rmSync(file, { force: true }) };
}

const maxRequest = 4096;
const maxMessage = 256 * 1024;

/** A file of the folder that holds an op, before it is read. */
export interface OpFile {
  readonly path: string;
  readonly agent: AgentId;
  readonly isMessage: boolean;
  /** Undefined where it holds no op, or others could have written it. */
  read(): RemoteOp | undefined;
}

/** Undefined for files that hold no op. */
export function opFile(files: ControlFiles, name: string): OpFile | undefined {
  const path = join(files.directory, name);
  const [agent = "", ...rest] = name.split(".");
  const [first = "", second] = rest;
  const isMessage = rest.length === 2 && second === "message" && isAgentId(first);
  const isRequest = rest.length === 1 && first === "json";
  if (!isAgentId(agent) || !(isMessage || isRequest)) return undefined;
  return {
    path,
    agent,
    isMessage,
    read() {
      const value = parseJson(readOwn(path, isMessage ? maxMessage : maxRequest) ?? "");
      if (!isRecord(value) || value["version"] !== 1) return undefined;
      const { action: type, text } = value;
      if (!isMessage) return type === "stop" || type === "background" ? { type, agent } : undefined;
      if (type !== "message" || typeof text !== "string" || text.trim() === "") return undefined;
      return { type, agent, text, resume: false };
    },
  };
}

/** The text of a plain file that only this user may write; undefined for any other. */
function readOwn(file: string, maxBytes: number): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(
      file,
      constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    );
    const status = fstatSync(descriptor);
    const isOurs = process.getuid === undefined || status.uid === process.getuid();
    const isPrivate = process.getuid === undefined || (status.mode & 0o022) === 0;
    if (!status.isFile() || !isOurs || !isPrivate || status.size > maxBytes) return undefined;
    return readFileSync(descriptor, "utf8");
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
