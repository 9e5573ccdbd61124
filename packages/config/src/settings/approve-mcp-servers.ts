import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  byteOrderMark,
  parseJsonDocument,
  withoutByteOrderMark,
} from "@retinue/base/foundation/parse-json-document.ts";
import { applyEdits, modify } from "jsonc-parser";
import { emptyJsonFile } from "./empty-json-file.ts";
import { readBounded } from "./load-settings.ts";
import type { Paths } from "./paths.ts";
import { type FileChange, type UpdateFileOptions, updateFile } from "./update-file.ts";
import { excludeFromGit, staysInside } from "./write-local-rules.ts";

type ApprovalPaths = Pick<Paths, "configDirectory" | "projectRoot">;

export type WriteOutcome =
  | { readonly type: "saved"; readonly files: readonly string[] }
  | { readonly type: "refused"; readonly file: string; readonly why: string };

/** Remembers that a person approved servers of this project: the names where Claude Code looks, the hashes in our own state. */
export async function approveMcpServers(
  paths: ApprovalPaths,
  servers: readonly { readonly name: string; readonly hash: string }[],
): Promise<WriteOutcome> {
  const changes = servers.map(({ name, hash }) => ({
    path: ["projects", paths.projectRoot, name],
    value: hash,
  }));
  const names = servers.map(({ name }) => name);
  return inOrder([
    () => changeJson(approvalsFile(paths), () => changes),
    () => changeLocalLists(paths, { add: "enabledMcpjsonServers", remove: "disabledMcpjsonServers", names }),
  ]);
}

/** Remembers that servers of this project must not be started. */
export async function rejectMcpServers(
  paths: ApprovalPaths,
  names: readonly string[],
): Promise<WriteOutcome> {
  const forget = names.map((name) => ({ path: ["projects", paths.projectRoot, name], value: undefined }));
  return inOrder([
    () => changeLocalLists(paths, { add: "disabledMcpjsonServers", remove: "enabledMcpjsonServers", names }),
    () =>
      changeJson(approvalsFile(paths), (value) =>
        forget.filter(({ path }) => valueAt(value, path) !== undefined),
      ),
  ]);
}

/** Forgets what was approved and rejected in this project. */
export async function forgetMcpChoices(paths: ApprovalPaths): Promise<WriteOutcome> {
  const local = localFile(paths);
  if (!(await staysInside(local, paths.projectRoot)))
    return { type: "refused", file: local, why: `${local} is a link that leads out of the project` };
  const present = (value: unknown, keys: readonly (readonly string[])[]): readonly JsonChange[] =>
    keys.filter((path) => valueAt(value, path) !== undefined).map((path) => ({ path, value: undefined }));
  return inOrder([
    () => changeJson(approvalsFile(paths), (value) => present(value, [["projects", paths.projectRoot]])),
    () =>
      changeJson(local, (value) =>
        present(value, [
          ["enabledMcpjsonServers"],
          ["disabledMcpjsonServers"],
          ["enableAllProjectMcpServers"],
        ]),
      ),
  ]);
}

function localFile({ projectRoot }: Pick<ApprovalPaths, "projectRoot">): string {
  return join(projectRoot, ".claude", "settings.local.json");
}

async function inOrder(steps: readonly (() => Promise<WriteOutcome>)[]): Promise<WriteOutcome> {
  const files: string[] = [];
  for (const step of steps) {
    const outcome = await step();
    if (outcome.type === "refused") return outcome;
    files.push(...outcome.files);
  }
  return { type: "saved", files };
}

interface ListChange {
  readonly add: string;
  readonly remove: string;
  readonly names: readonly string[];
}

async function changeLocalLists(
  { projectRoot }: ApprovalPaths,
  { add, remove, names }: ListChange,
): Promise<WriteOutcome> {
  const file = localFile({ projectRoot });
  if (!(await staysInside(file, projectRoot)))
    return { type: "refused", file, why: `${file} is a link that leads out of the project` };
  const outcome = await changeJson(file, (value) => {
    const present = listAt(value, add);
    const others = listAt(value, remove);
    const missing = names.filter((name) => !present.includes(name));
    const kept = others.filter((name) => !names.some((each) => each === name));
    return [
      ...(missing.length === 0 ? [] : [{ path: [add], value: [...present, ...missing] }]),
      ...(kept.length === others.length ? [] : [{ path: [remove], value: kept }]),
    ];
  });
  if (outcome.type === "saved") await excludeFromGit(projectRoot, {});
  return outcome;
}

/** A single text is read as a list of one, as in the settings themselves. */
function listAt(value: unknown, key: string): readonly unknown[] {
  const list = valueAt(value, [key]);
  if (typeof list === "string") return [list];
  return Array.isArray(list) ? list : [];
}

/** Changes values of a JSON file; nothing is written where nothing is to change. */
export async function changeJson(
  file: string,
  changesFor: (value: unknown) => readonly JsonChange[],
  options: UpdateFileOptions = {},
): Promise<WriteOutcome> {
  const change: FileChange = (text) => {
    const { value } = parseJsonDocument(withoutByteOrderMark(text ?? "{}"), file);
    const edit = editJson(text, changesFor(value), file);
    if (edit.type === "broken") return { type: "refused", why: edit.why };
    return edit.text === text || changesFor(value).length === 0
      ? { type: "unchanged" }
      : { type: "write", text: edit.text };
  };
  try {
    const update = await updateFile(file, change, options);
    return update.type === "refused" ? { ...update, file } : { type: "saved", files: [file] };
  } catch (error) {
    return { type: "refused", file, why: error instanceof Error ? error.message : String(error) };
  }
}

/** Where the hashes of approved definitions are kept, outside of every project. */
export function approvalsFile({ configDirectory }: Pick<Paths, "configDirectory">): string {
  return join(configDirectory, "retinue", "mcp-approvals.json");
}

/** The hash of each definition that was approved for this project, by name; "unreadable" where that cannot be known. */
export async function loadMcpApprovals(
  paths: Pick<Paths, "configDirectory" | "projectRoot">,
): Promise<ReadonlyMap<string, string> | "unreadable"> {
  const file = approvalsFile(paths);
  const content = await readBounded(file);
  if (content.type === "missing") return new Map();
  if (content.type === "unreadable") return "unreadable";
  const { value, diagnostic } = parseJsonDocument(content.text, file);
  if (diagnostic !== undefined || !isRecord(value)) return "unreadable";
  const project = valueAt(value, ["projects", paths.projectRoot]) ?? {};
  if (!isRecord(project)) return "unreadable";
  return new Map(Object.entries(project).map(([name, hash]) => [name, String(hash)]));
}

/** Sets the value at a path of keys, or removes it where the value is undefined. */
interface JsonChange {
  readonly path: readonly string[];
  readonly value: unknown;
}

type JsonEdit =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "broken"; readonly why: string; readonly diagnostic?: Diagnostic };

/** The text with some values changed and all else as it was written; a file that cannot be understood is left alone. */
export function editJson(text: string | undefined, changes: readonly JsonChange[], file: string): JsonEdit {
  const before = text === undefined || text.trim() === "" ? emptyJsonFile(file) : withoutByteOrderMark(text);
  const document = parseJsonDocument(before, file);
  if (document.diagnostic !== undefined)
    return { type: "broken", why: `${file} is broken and was not touched`, diagnostic: document.diagnostic };
  const blocked = changes.find(({ path }) => !isReachable(document.value, path));
  if (blocked !== undefined)
    return {
      type: "broken",
      why: `${file} has an unexpected value at "${blocked.path.join(".")}"; it was not touched`,
    };
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: before.includes("\r\n") ? "\r\n" : "\n" };
  const after = changes
    .filter(({ path, value }) => !isDeepStrictEqual(valueAt(document.value, path), value))
    .reduce(
      (current, { path, value }) =>
        applyEdits(current, modify(current, [...path], value, { formattingOptions })),
      before,
    );
  // With a key written twice, the edit lands in the one that does not count.
  const result = parseJsonDocument(after, file).value;
  if (!changes.every(({ path, value }) => isDeepStrictEqual(valueAt(result, path), value)))
    return { type: "broken", why: `a key appears twice in ${file}; it was not touched` };
  return { type: "text", text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after };
}

/** The value under own keys; undefined where the way ends. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    value,
  );
}

function isReachable(value: unknown, path: readonly string[]): boolean {
  return path.every((_, depth) => {
    const at = valueAt(value, path.slice(0, depth));
    return (at === undefined && depth > 0) || isRecord(at);
  });
}
