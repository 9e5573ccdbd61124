import { isRecord } from "../../../foundation/json-value.ts";
import type { HookHandler } from "../../../hooks/hook-rule.ts";
import type { McpTransport } from "../../../mcp/mcp-server.ts";

/** A value in full on one line: plain text as it is, everything else as JSON, so that nothing in it is hidden. */
export function valueText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return /[\p{Cc}\u2028\u2029]/u.test(value) ? JSON.stringify(value) : value;
}

/** What a hook would run, ask or send, with all that steers it. */
export function hookText(handler: HookHandler): string {
  const { type, command, args = [], url, prompt, server, tool, ...rest } = handler;
  const { timeout: _timeout, statusMessage: _message, once: _once, ...steering } = rest;
  const main = {
    command: [command ?? "", ...args].map(valueText).join(" "),
    http: `sends to ${valueText(url ?? "")}`,
    prompt: `asks a model: ${valueText(prompt ?? "")}`,
    agent: `asks an agent: ${valueText(prompt ?? "")}`,
    mcp_tool: `calls ${valueText(tool ?? "")} of the MCP server ${valueText(server ?? "")}`,
  }[type];
  return [main, ...fieldTexts(steering)].join(" ");
}

/** What connecting a server would start or reach, and with which variables and headers; as written, not expanded. */
export function transportText(transport: McpTransport): string | undefined {
  if (transport.type === "sdk") return undefined;
  if (transport.type === "stdio") {
    const { command, args, env, cwd } = transport;
    return [[command, ...args].map(valueText).join(" "), ...fieldTexts({ cwd, env })].join(" ");
  }
  const { url, headers, headersHelper } = transport;
  return [valueText(url), ...fieldTexts({ headers, headersHelper })].join(" ");
}

/** The same for a server that stands in a definition. */
export function inlineServerText(config: Readonly<Record<string, unknown>>): string {
  const { type: _type, command, args, url, ...rest } = config;
  const words = Array.isArray(args) ? args : [];
  const main = [command, ...words, url].filter((part) => part !== undefined).map(valueText);
  return [...main, ...fieldTexts(rest)].join(" ");
}

function fieldTexts(fields: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0))
    .map(([key, value]) => `${key}=${valueText(value)}`);
}
