import { applyEdits, modify } from "jsonc-parser";
import { parseJsonDocument } from "../foundation/json-document.ts";
import { isRecord, kindOf } from "../foundation/json-value.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { byteOrderMark, withoutByteOrderMark } from "../foundation/source-text.ts";

/** The folders a state file says are trusted, as written there. A broken file trusts nothing and says why. */
export function readTrustedFolders(
  text: string,
  file: string,
): { readonly folders: ReadonlySet<string>; readonly diagnostic?: Diagnostic } {
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined) return { folders: new Set(), diagnostic: document.diagnostic };
  const state = document.value;
  if (!isRecord(state)) return { folders: new Set(), diagnostic: wrongShape(file, "the file", state) };
  const projects = Object.hasOwn(state, "projects") ? state["projects"] : {};
  if (!isRecord(projects)) return { folders: new Set(), diagnostic: wrongShape(file, '"projects"', projects) };
  const trusted = Object.entries(projects).filter(
    ([, project]) => isRecord(project) && Object.hasOwn(project, trustKey) && project[trustKey] === true,
  );
  return { folders: new Set(trusted.map(([folder]) => folder)) };
}

export interface TrustChange {
  readonly folder: string;
  readonly trusted: boolean;
}

/** The state with a folder's trust set or taken back; every other value stays as it was written. */
export function changeTrustedFolder(
  text: string | undefined,
  { folder, trusted }: TrustChange,
  file: string,
): { readonly type: "text"; readonly text: string } | { readonly type: "broken"; readonly diagnostic: Diagnostic } {
  const before = text === undefined || text.trim() === "" ? "{}\n" : withoutByteOrderMark(text);
  const { folders, diagnostic } = readTrustedFolders(before, file);
  if (diagnostic !== undefined) return { type: "broken", diagnostic };
  if (!trusted && !folders.has(folder)) return { type: "text", text: text ?? before };
  // readTrustedFolders has found an object with an object under "projects", if anything.
  const { projects } = JSON.parse(before) as { projects?: Record<string, unknown> };
  const project = projects !== undefined && Object.hasOwn(projects, folder) ? projects[folder] : {};
  if (!isRecord(project))
    return { type: "broken", diagnostic: wrongShape(file, "the entry of this folder", project) };
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: before.includes("\r\n") ? "\r\n" : "\n" };
  const after = applyEdits(
    before,
    modify(before, ["projects", folder, trustKey], trusted, { formattingOptions }),
  );
  // With a key written twice, the edit lands in the one that does not count.
  if (readTrustedFolders(after, file).folders.has(folder) !== trusted) {
    return { type: "broken", diagnostic: wrongShape(file, "each key", "written twice") };
  }
  return { type: "text", text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after };
}

const trustKey = "hasTrustDialogAccepted";

function wrongShape(file: string, part: string, value: unknown): Diagnostic {
  const found = typeof value === "string" ? value : kindOf(value);
  return {
    severity: "error",
    code: "state-file-broken",
    message: `In this state file ${part} must be an object, but it is ${found}; no folder counts as trusted.`,
    advice: "Mend the file, or move it away to start with an empty one.",
    file,
  };
}
