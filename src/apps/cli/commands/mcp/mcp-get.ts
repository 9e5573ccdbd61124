import { nearestName } from "../../../../foundation/nearest-name.ts";
import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { variablesIn } from "../../../../mcp/expand-variables.ts";
import { hideInAddress } from "../../../../mcp/hide-secrets.ts";
import type { McpTransport } from "../../../../mcp/mcp-server.ts";
import { gatherMcp, type ListedServer } from "../../gather-mcp.ts";
import type { CommandContext } from "../../session-options.ts";
import { createPaint } from "../../views/paint.ts";
import { renderFields, type ShownField } from "../../views/render-fields.ts";
import { asJson } from "./mcp-list.ts";

/** `retinue mcp get NAME`: one server as it is written, and whether it would be connected. */
export async function mcpGet(
  context: CommandContext,
  name: string,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const { listed, gathered, session } = await gatherMcp(context);
  const found = findNamed(listed, name);
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson({ listed: found, gathered }), undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 100);
  const blocks = found.map((server) => renderFields(fieldsOf(server, session.nameOf), paint, width));
  stdout.write(blocks.join("\n"));
  return 0;
}

/** All servers of a name, the one that counts first; a Error where there is none. */
export function findNamed(listed: readonly ListedServer[], name: string): readonly ListedServer[] {
  const found = listed.filter(({ entry }) => entry.config.name === name);
  if (found.length > 0) return found;
  const names = [...new Set(listed.map(({ entry }) => entry.config.name))];
  const nearest = nearestName(name, names);
  const known = names.length === 0 ? "No MCP server is configured here." : `There are ${names.join(", ")}.`;
  throw new RetinueError("unknown-mcp-server", `There is no MCP server \`${name}\`.`, {
    advice: nearest === undefined ? known : `Did you mean \`${nearest}\`?`,
  });
}

function fieldsOf(
  { entry, connects, asks, held }: ListedServer,
  nameOf: (file: string) => string,
): ShownField[] {
  const { config, scope, file, fromRepository } = entry;
  const { transport } = config;
  const texts = transport === undefined ? [] : textsOf(transport);
  const reads = [...new Set(texts.flatMap(variablesIn))];
  return [
    { label: "server", value: config.name },
    { label: "scope", value: scope, ...(file === undefined ? {} : { origin: nameOf(file) }) },
    ...(transport === undefined
      ? [{ label: "configuration", value: JSON.stringify(config.written) }]
      : transportFields(transport, fromRepository)),
    ...(reads.length === 0 ? [] : [{ label: "reads", value: reads.map((one) => `$${one}`).join(", ") }]),
    ...(config.timeoutMs === undefined ? [] : [{ label: "timeout", value: `${config.timeoutMs} ms` }]),
    { label: "connects", value: connectsWords(connects, asks), ...(held ? { origin: held.reason } : {}) },
    ...(held?.advice === undefined ? [] : [{ label: "advice", value: held.advice }]),
  ];
}

function connectsWords(connects: boolean, asks: boolean): string {
  if (!connects) return "no";
  return asks ? "with -p; a terminal session asks first" : "yes";
}

/** What a repository brings must be seen to be judged; in a person's own files values may be secrets. */
function transportFields(transport: McpTransport, showsValues: boolean): ShownField[] {
  const values = (record: Readonly<Record<string, string>>): string =>
    Object.entries(record)
      .map(([key, value]) => (showsValues || value.includes("${") ? `${key}=${value}` : `${key}=…`))
      .join("\n");
  if (transport.type === "sdk") return [{ label: "kind", value: "in this program" }];
  if (transport.type === "stdio") {
    const { command, args, env, cwd } = transport;
    return [
      { label: "command", value: [command, ...args].map(quoted).join(" ") },
      ...(cwd === undefined ? [] : [{ label: "folder", value: cwd }]),
      ...(Object.keys(env).length === 0 ? [] : [{ label: "env", value: values(env) }]),
    ];
  }
  const { type, url, headers, headersHelper } = transport;
  return [
    { label: "url", value: showsValues ? url : hideInAddress(url), origin: type },
    ...(Object.keys(headers).length === 0 ? [] : [{ label: "headers", value: values(headers) }]),
    ...(headersHelper === undefined ? [] : [{ label: "headers helper", value: headersHelper }]),
  ];
}

function quoted(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word);
}

function textsOf(transport: McpTransport): readonly string[] {
  if (transport.type === "sdk") return [];
  return transport.type === "stdio"
    ? [transport.command, ...transport.args, ...Object.values(transport.env)]
    : [transport.url, ...Object.values(transport.headers)];
}
