// @io
import { mkdirSync, rmSync } from "node:fs";
import { replaceWholeFile } from "../storage/create-whole-file.ts";
import { type ControlFiles, stopRequest } from "./control-files.ts";

/** Asks the process that runs a child to stop it; returns how to take the wish back. */
export function writeStopRequest(files: ControlFiles, agentId: string): () => void {
  const file = files.request(agentId);
  mkdirSync(files.directory, { recursive: true, mode: 0o700 });
  replaceWholeFile(file, stopRequest());
  return () => rmSync(file, { force: true });
}
