import type { Diagnostic, Severity } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { type AgentMcpServer, fieldOf } from "../agents/agent-definition.ts";
import { rejoinEntries, splitEntries } from "../tools/tool-entry.ts";
import type { LossCode, PlaceOf, PortableTool, ReadContext } from "./portable-agent.ts";
import type { ToolWords } from "./tool-words.ts";

/** Takes the fields of one agent; what is not taken is the rest. */
export interface ForeignFields {
  readonly diagnostics: Diagnostic[];
  has(key: string): boolean;
  take(key: string): unknown;
  /** The value, which does not count as taken by that. */
  peek(key: string): unknown;
  text(key: string): string | undefined;
  number(key: string): number | undefined;
  flag(key: string): boolean | undefined;
  names(key: string): readonly string[] | undefined;
  /** Entries of a list of tools; a value that is none is an error, since it was meant to limit. */
  entries(key: string): readonly string[] | undefined;
  /** Servers as a list of names or a mapping of configurations. */
  servers(key: string): readonly AgentMcpServer[] | undefined;
  report(severity: Severity, code: string, message: string, key: string): void;
  loses(code: LossCode, message: string, key: string): void;
  fails(key: string, reason: string): undefined;
  rest(): Readonly<Record<string, unknown>>;
}

export function createForeignFields(
  values: ReadonlyMap<string, unknown>,
  { file }: ReadContext,
  locate: PlaceOf,
): ForeignFields {
  const taken = new Set<string>();
  const diagnostics: Diagnostic[] = [];
  const take = (key: string): unknown => {
    taken.add(key);
    return values.get(key) ?? undefined;
  };
  const report: ForeignFields["report"] = (severity, code, message, key) => {
    diagnostics.push({ severity, code, message, file, ...locate([key]) });
  };
  const ignored = (key: string, expected: string): undefined => {
    report("warning", "unreadable-field", `\`${key}\` must be ${expected}; it was ignored.`, key);
    return undefined;
  };
  const fails: ForeignFields["fails"] = (key, reason) => {
    const message = `\`${key}\` cannot be read (${reason}); the agent is not loaded, because guessing could grant more than was meant.`;
    report("error", "unreadable-restriction", message, key);
    return undefined;
  };
  return {
    diagnostics,
    has: (key) => values.has(key) && values.get(key) !== null,
    take,
    peek: (key) => values.get(key) ?? undefined,
    text(key) {
      const value = take(key);
      if (value === undefined) return undefined;
      if (typeof value === "string") return value.trim() === "" ? undefined : value.trim();
      return typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : ignored(key, "a string");
    },
    number(key) {
      const value = take(key);
      if (value === undefined) return undefined;
      const number = typeof value === "string" ? Number(value.trim() || "x") : value;
      return typeof number === "number" && Number.isFinite(number) && number > 0
        ? number
        : ignored(key, "a number above 0");
    },
    flag(key) {
      const value = take(key);
      if (value === undefined) return undefined;
      if (typeof value === "boolean") return value;
      if (value === "true" || value === "yes") return true;
      if (value === "false" || value === "no") return false;
      return fails(key, "it is neither true nor false");
    },
    names(key) {
      const value = take(key);
      if (value === undefined) return undefined;
      const entries = typeof value === "string" ? value.split(",") : value;
      if (!Array.isArray(entries) || !entries.every((entry) => typeof entry === "string"))
        return ignored(key, "a list of names");
      return entries.map((entry) => entry.trim()).filter((entry) => entry !== "");
    },
    entries(key) {
      const value = take(key);
      if (value === undefined) return values.get(key) === null && values.has(key) ? [] : undefined;
      if (typeof value === "string") return splitEntries(value);
      if (!Array.isArray(value)) return fails(key, "it is not a list");
      const flat: readonly unknown[] = value.flat(2);
      if (!flat.every((entry) => typeof entry === "string")) return fails(key, "an entry is not a string");
      return rejoinEntries(flat);
    },
    servers(key) {
      const value = take(key);
      if (value === undefined) return undefined;
      if (Array.isArray(value) && value.every((entry) => typeof entry === "string"))
        return value.map((name: string) => ({ type: "reference", name }));
      if (!isRecord(value)) return ignored(key, fieldOf("mcpServers").expected);
      return Object.entries(value).flatMap(([name, config]) =>
        ownServer(name, config, (message) => report("warning", "mcp-dropped", message, key)),
      );
    },
    report,
    loses: (code, message, key) => report("warning", code, message, key),
    fails,
    rest: () =>
      Object.fromEntries([...values].filter(([key, value]) => !taken.has(key) && value !== undefined)),
  };
}

/** A server of the agent's own. One that is narrowed in a way that would not hold here is left out, not opened. */
function ownServer(name: string, config: unknown, drops: (message: string) => void): AgentMcpServer[] {
  if (!isRecord(config)) {
    drops(`The configuration of the server ${quote(name)} is not an object; it was left out.`);
    return [];
  }
  const { tools, include_tools, exclude_tools, includeTools, excludeTools, disabledTools, ...rest } = config;
  const isWhole =
    tools === undefined || tools === "*" || (Array.isArray(tools) && tools.length === 1 && tools[0] === "*");
  const narrowed = [include_tools, exclude_tools, includeTools, excludeTools, disabledTools].some(
    (list) => Array.isArray(list) && list.length > 0,
  );
  if (!isWhole || narrowed) {
    drops(
      `The server ${quote(name)} is narrowed to some tools, which cannot be expressed here; it was left out.`,
    );
    return [];
  }
  const { http_url: httpUrl, httpUrl: otherUrl, type, ...others } = rest;
  const url = httpUrl ?? otherUrl;
  const kind = type === "local" ? "stdio" : type;
  return [
    {
      type: "inline",
      name,
      config: {
        ...(url === undefined && kind !== undefined ? { type: kind } : {}),
        ...(url === undefined ? {} : { type: "http", url }),
        ...others,
      },
    },
  ];
}

/** Reads words of a product; one that it does not have grants nothing, and is reported. */
export function readWords(
  entries: readonly string[],
  words: ToolWords,
  { taker, key, product }: { readonly taker: ForeignFields; readonly key: string; readonly product: string },
): readonly PortableTool[] {
  const read = entries.flatMap((entry) => {
    const tools = words.read(entry);
    if (tools.some((tool) => tool.class === "other"))
      taker.report(
        "note",
        "unknown-tool",
        `${product}: Retinue has no tool for ${quote(entry, 80)}; it grants nothing.`,
        key,
      );
    return tools;
  });
  if (key === "tools" && read.length > 0 && read.every((tool) => tool.class === "other"))
    taker.loses("tools-not-expressible", "`tools` names no tool that Retinue has; the agent has none.", key);
  return read;
}

/** Reports fields that mean nothing here and stay in the file. */
export function reportRest(taker: ForeignFields, product: string, quiet: readonly string[] = []): void {
  for (const key of Object.keys(taker.rest())) {
    if (quiet.includes(key)) continue;
    taker.report(
      "note",
      "unknown-kept",
      `\`${key}\` of ${product} has no meaning here; it has no effect.`,
      key,
    );
  }
}
