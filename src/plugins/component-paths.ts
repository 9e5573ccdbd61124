import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";
import { type HookRule, readHooks } from "../hooks/read-hooks.ts";
import { isJsonObject, type JsonObject, ownValue, wrongTypeIssue } from "./json-object.ts";
import { readInnerPath } from "./read-inner-path.ts";

/** Files or folders of a plugin that hold one kind of component. */
export interface ComponentPaths {
  /** The value as it is in the file. */
  readonly written: unknown;
  /** Relative to the plugin's root, forward slashes, none leading outside. */
  readonly paths: readonly string[];
}

export interface PluginHooks extends ComponentPaths {
  /** The hooks that are in the manifest itself. */
  readonly inline: readonly HookRule[];
}

export interface PluginMcpServers extends ComponentPaths {
  /** The servers that are in the manifest itself, by name. */
  readonly inline: ReadonlyMap<string, unknown>;
}

/** Reads `agents`, `commands` or `skills`: a path, a list of paths, or a map or list whose values name a `source`, `path` or `file`. */
export function readComponentPaths(written: unknown, path: DocumentPath, issues: Issue[]): ComponentPaths {
  const paths: string[] = [];
  for (const [value, at] of members(written, path)) {
    const source = isJsonObject(value)
      ? (ownValue(value, "source") ?? ownValue(value, "path") ?? ownValue(value, "file"))
      : value;
    if (typeof source === "string") addPath(paths, source, at, issues);
    else if (!isJsonObject(value) || !Object.hasOwn(value, "content")) {
      issues.push(wrongTypeIssue(at, "a path inside the plugin"));
    }
  }
  return { written, paths };
}

/** Reads `hooks`: a path to a hooks file, hooks in place, or a list of both. */
export function readPluginHooks(written: unknown, path: DocumentPath, issues: Issue[]): PluginHooks {
  const paths: string[] = [];
  const inline: HookRule[] = [];
  for (const [value, at] of listMembers(written, path)) {
    if (typeof value === "string") addPath(paths, value, at, issues);
    else if (isJsonObject(value)) {
      const reading = readInlineHooks(value, at);
      inline.push(...reading.hooks);
      issues.push(...reading.issues);
    } else issues.push(wrongTypeIssue(at, "a path inside the plugin or an object with hooks"));
  }
  return { written, paths, inline };
}

/** Reads `mcpServers`: a path to an MCP file, servers in place, or a list of both. */
export function readPluginMcpServers(
  written: unknown,
  path: DocumentPath,
  issues: Issue[],
): PluginMcpServers {
  const paths: string[] = [];
  const inline = new Map<string, unknown>();
  for (const [value, at] of listMembers(written, path)) {
    if (typeof value === "string") addPath(paths, value, at, issues);
    else if (isJsonObject(value)) {
      for (const [name, config] of serversOf(value)) inline.set(name, config);
    } else issues.push(wrongTypeIssue(at, "a path inside the plugin or an object with servers"));
  }
  return { written, paths, inline };
}

/** Servers by name, a pasted MCP file with its outer key, or one server that carries its `name`. */
function serversOf(value: JsonObject): readonly (readonly [string, unknown])[] {
  const wrapped = ownValue(value, "mcpServers");
  const name = ownValue(value, "name");
  if (typeof name === "string") return [[name, value]];
  return Object.entries(isJsonObject(wrapped) ? wrapped : value);
}

/**
 * People paste a whole hooks file, with its outer `hooks` key, where only the inside belongs; or write each hook as an
 * entry that names its event.
 */
function readInlineHooks(value: JsonObject, path: DocumentPath): ReturnType<typeof readHooks> {
  if (typeof ownValue(value, "event") === "string") return readHooks([value], path);
  const wrapped = ownValue(value, "hooks");
  return isJsonObject(wrapped) ? readHooks(wrapped, [...path, "hooks"]) : readHooks(value, path);
}

function addPath(paths: string[], written: string, path: DocumentPath, issues: Issue[]): void {
  const reading = readInnerPath(written);
  if (reading.type === "inside") {
    if (!paths.includes(reading.path)) paths.push(reading.path);
    return;
  }
  issues.push({
    severity: "warning",
    code: "path-outside-plugin",
    path,
    message: `The path ${JSON.stringify(written.slice(0, 200))} was refused because ${reading.why}.`,
    advice: "Name a file or folder of the plugin, relative to its root: `./agents/reviewer.md`.",
  });
}

type Member = readonly [value: unknown, path: DocumentPath];

function listMembers(value: unknown, path: DocumentPath): readonly Member[] {
  return Array.isArray(value)
    ? value.map((member, index): Member => [member, [...path, index]])
    : [[value, path]];
}

function members(value: unknown, path: DocumentPath): readonly Member[] {
  if (!isJsonObject(value)) return listMembers(value, path);
  return Object.entries(value).map(([key, member]): Member => [member, [...path, key]]);
}
