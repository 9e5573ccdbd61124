import type { Issue } from "../../../../foundation/diagnostic.ts";
import { parseJsonDocument } from "../../../../foundation/json-document.ts";
import { isRecord } from "../../../../foundation/json-record.ts";
import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { readServer } from "../../../../mcp/mcp-server-config.ts";
import { refuseServerName } from "../../../../mcp/refuse-server-name.ts";
import {
  addMcpServer,
  removeMcpServer,
  type WritableScope,
  writableScopes,
} from "../../../../settings/add-mcp-server.ts";
import { gatherSession } from "../../gather-session.ts";
import { type CommandContext, misuse } from "../../session-options.ts";

export interface McpAddOptions {
  readonly transport?: string;
  readonly scope?: WritableScope;
  readonly env?: readonly string[];
  readonly header?: readonly string[];
  readonly force?: boolean;
}

/** `retinue mcp add NAME -- COMMAND …`: writes one server to a file. Starts nothing. */
export async function mcpAdd(
  context: CommandContext,
  { name, words }: { readonly name: string; readonly words: readonly string[] },
  options: McpAddOptions,
): Promise<number> {
  refuseName(name);
  return writeServer(context, { name, config: readConfig(name, words, options) }, options);
}

/** `retinue mcp add-json NAME JSON`: the same from a configuration as it would be in a file. */
export async function mcpAddJson(
  context: CommandContext,
  { name, json }: { readonly name: string; readonly json: string },
  options: Pick<McpAddOptions, "scope" | "force">,
): Promise<number> {
  refuseName(name);
  const { value, diagnostic } = parseJsonDocument(json, "the configuration");
  if (diagnostic !== undefined || !isRecord(value))
    throw misuse(`The configuration is not a JSON object: ${diagnostic?.message ?? json}`, jsonUsage);
  refuseUnusable(name, value, jsonUsage);
  return writeServer(context, { name, config: value }, options);
}

function refuseName(name: string): void {
  const why = /^plugin:/i.test(name)
    ? "`plugin:` begins the names of plugins' servers"
    : refuseServerName(name);
  if (why !== undefined)
    throw misuse(
      `${JSON.stringify(name)} cannot be the name of a server: ${why}.`,
      "Use letters, digits and hyphens.",
    );
}

async function writeServer(
  context: CommandContext,
  { name, config }: { readonly name: string; readonly config: Readonly<Record<string, unknown>> },
  options: Pick<McpAddOptions, "scope" | "force">,
): Promise<number> {
  const scope = options.scope ?? "local";
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  const replaces = options.force === true;
  const outcome = await addMcpServer(discovered.paths, { scope, name, config }, { replaces });
  if (outcome.type === "exists") {
    throw new RetinueError("mcp-server-exists", `${nameOf(outcome.file)} already has a server \`${name}\`.`, {
      advice: "Choose another name, or replace it with --force.",
    });
  }
  if (outcome.type === "refused") throw notWritten(outcome.why);
  const where = nameOf(outcome.files[0] ?? "");
  context.host.stdout.write(
    `Added \`${name}\` to ${where} (${scope}). \`retinue mcp get ${name}\` shows it.\n`,
  );
  return 0;
}

/** `retinue mcp remove NAME`: takes a server out of the one file that has it. */
export async function mcpRemove(
  context: CommandContext,
  name: string,
  options: Pick<McpAddOptions, "scope">,
): Promise<number> {
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  const wanted = options.scope;
  for (const scope of wanted === undefined ? writableScopes : [wanted]) {
    const outcome = await removeMcpServer(discovered.paths, { scope, name });
    if (outcome.type === "absent") continue;
    if (outcome.type === "refused") throw notWritten(outcome.why);
    context.host.stdout.write(`Removed \`${name}\` from ${nameOf(outcome.files[0] ?? "")} (${scope}).\n`);
    return 0;
  }
  const where = wanted === undefined ? "No file that can be written here" : `No file of the scope ${wanted}`;
  throw new RetinueError("unknown-mcp-server", `${where} has an MCP server \`${name}\`.`, {
    advice: "`retinue mcp list` shows where each is; those of plugins and settings are changed there.",
  });
}

function readConfig(
  name: string,
  words: readonly string[],
  { transport = "stdio", env = [], header = [] }: McpAddOptions,
): Readonly<Record<string, unknown>> {
  const [first, ...rest] = words;
  if (first === undefined) throw misuse("What the server is, is missing.", usage);
  if (transport !== "stdio" && rest.length > 0)
    throw misuse("A server with a URL takes no arguments.", usage);
  const config =
    transport === "stdio"
      ? {
          type: "stdio",
          command: first,
          args: rest,
          ...(env.length === 0 ? {} : { env: readPairs("-e", env, "=") }),
        }
      : {
          type: transport,
          url: first,
          ...(header.length === 0 ? {} : { headers: readPairs("--header", header, ":") }),
        };
  if (transport === "stdio" ? header.length > 0 : env.length > 0)
    throw misuse(transport === "stdio" ? "--header needs --transport http." : "-e needs a command.", usage);
  refuseUnusable(name, config, usage);
  return config;
}

function refuseUnusable(name: string, config: Readonly<Record<string, unknown>>, advice: string): void {
  const issues: Issue[] = [];
  const { unusable } = readServer(name, config, [], issues);
  if (unusable !== undefined) throw misuse(`The server cannot be used: ${unusable}.`, advice);
  const [issue] = issues;
  if (issue !== undefined) throw misuse(issue.message, issue.advice);
}

const jsonUsage =
  'Write `retinue mcp add-json NAME \'{"command":"…","args":[…]}\'`, or `\'{"type":"http","url":"…"}\'`.';

const usage =
  "Write `retinue mcp add NAME -- COMMAND ARGS…`, or `retinue mcp add --transport http NAME URL`.";

function readPairs(option: string, texts: readonly string[], separator: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf(separator);
      if (at < 1) throw misuse(`${option} needs NAME${separator}VALUE, but got ${JSON.stringify(text)}.`);
      return [text.slice(0, at).trim(), separator === ":" ? text.slice(at + 1).trim() : text.slice(at + 1)];
    }),
  );
}

export function notWritten(why: string): RetinueError {
  return new RetinueError("not-written", `Nothing was changed: ${why}.`);
}
