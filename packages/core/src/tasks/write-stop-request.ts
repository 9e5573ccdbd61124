// @io
import { mkdirSync, rmSync } from "node:fs";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { type ControlAction, type ControlFiles, controlRequest, messageRequest } from "./watch-control.ts";

/** Asks the process that runs an agent to stop it; returns how to take the request back. */
export function writeStopRequest(files: ControlFiles, agentId: string): () => void {
  return writeControlRequest(files, agentId, "stop");
}

/** Asks the process that runs an agent for something; the file is gone as soon as it was done. */
export function writeControlRequest(files: ControlFiles, agentId: string, action: ControlAction): () => void {
  const file = files.request(agentId);
  mkdirSync(files.directory, { recursive: true, mode: 0o700 });
  replaceWholeFile(file, controlRequest(action));
  return () => rmSync(file, { force: true });
}

export interface WrittenMessage {
  readonly file: string;
  takeBack(): void;
}

/** Leaves a message for a running child of another process; its file is gone as soon as the child has it. */
export function writeMessageRequest(
  files: ControlFiles,
  message: { readonly agentId: string; readonly id: string; readonly text: string },
): WrittenMessage {
  const file = files.message(message.agentId, message.id);
  mkdirSync(files.directory, { recursive: true, mode: 0o700 });
  replaceWholeFile(file, messageRequest(message.text));
  return { file, takeBack: () => rmSync(file, { force: true }) };
}
