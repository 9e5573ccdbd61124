import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { type NewServer, refuseName, type WritableScope } from "@retinue/core/kernel/project/project-mcp.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { openProject } from "../../shared/open-project.ts";

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
  return writeServer(context, { name, config: readConfig(words, options), usage }, options);
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
  return writeServer(context, { name, config: value, usage: jsonUsage }, options);
}

async function writeServer(
  context: CommandContext,
  server: Pick<NewServer, "name" | "config" | "usage">,
  { scope = "local", force = false }: Pick<McpAddOptions, "scope" | "force">,
): Promise<number> {
  const { mcp, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const file = await mcp.add({ ...server, scope, replaces: force, pathText: nameOf });
  context.host.stdout.write(
    `Added \`${server.name}\` to ${nameOf(file)} (${scope}). \`retinue mcp get ${server.name}\` shows it.\n`,
  );
  return 0;
}

/** `retinue mcp remove NAME`: takes a server out of the one file that has it. */
export async function mcpRemove(
  context: CommandContext,
  name: string,
  options: Pick<McpAddOptions, "scope">,
): Promise<number> {
  const { mcp, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const { file, scope } = await mcp.remove(name, options);
  context.host.stdout.write(`Removed \`${name}\` from ${nameOf(file)} (${scope}).\n`);
  return 0;
}

/** A server as a file has it, from the words that name it. */
export function readConfig(
  words: readonly string[],
  { transport = "stdio", env = [], header = [] }: McpAddOptions,
): Readonly<Record<string, unknown>> {
  const [first, ...rest] = words;
  if (first === undefined) throw misuse("The command or URL of the server is missing.", usage);
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
  return config;
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
