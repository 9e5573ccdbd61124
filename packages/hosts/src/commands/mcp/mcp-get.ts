import {
  type McpLogin,
  type McpTransport,
  refuseBrokenConfig,
  type ServerDetails,
} from "@retinue/core/kernel/project/project-mcp.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { renderFields, type ShownField } from "../views/render-fields.ts";
import { asJson, healthOf, untilInterrupted } from "./mcp-list.ts";

/** `retinue mcp get NAME`: one server as it is written, and how it does. */
export async function mcpGet(
  context: CommandContext,
  name: string,
  options: { readonly json?: boolean; readonly check?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const { mcp, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const check = options.check !== false;
  const found = await untilInterrupted(context, (signal) => mcp.get(name, { check, signal }));
  refuseBrokenConfig(found);
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson(found), undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  const width = Math.min(stdout.columns ?? 100, 100);
  const blocks = found.servers.map((server) => renderFields(fieldsOf(server, nameOf), paint, width));
  stdout.write(blocks.join("\n"));
  return 0;
}

function fieldsOf(server: ServerDetails, nameOf: (file: string) => string): ShownField[] {
  const { entry, connects, asks, held, reads, address, status, login } = server;
  const { config, scope, file, fromRepository } = entry;
  const { transport } = config;
  return [
    { label: "server", value: config.name },
    { label: "scope", value: scope, origin: file === undefined ? undefined : nameOf(file) },
    ...(transport === undefined
      ? [{ label: "configuration", value: JSON.stringify(config.written) }]
      : transportFields(transport, fromRepository, address)),
    ...(reads.length === 0 ? [] : [{ label: "reads", value: reads.map((one) => `$${one}`).join(", ") }]),
    ...(config.timeoutMs === undefined ? [] : [{ label: "timeout", value: `${config.timeoutMs} ms` }]),
    { label: "connects", value: connectsWords(connects, asks), ...(held ? { origin: held.reason } : {}) },
    ...(login === undefined
      ? []
      : [{ label: "login", value: loginWords(login, Date.now()), origin: login.issuer }]),
    ...(status === undefined ? [] : [{ label: "status", value: healthOf(server) }]),
    ...(held?.advice === undefined ? [] : [{ label: "advice", value: held.advice }]),
  ];
}

function loginWords({ expiresAt, renews, scope }: McpLogin, now: number): string {
  const scopes = scope === undefined ? "" : `, for ${scope}`;
  if (renews) return `yes, renewed by itself${scopes}`;
  if (expiresAt === undefined) return `yes${scopes}`;
  const until = new Date(expiresAt).toISOString();
  return expiresAt > now ? `until ${until}${scopes}` : `over since ${until}`;
}

function connectsWords(connects: boolean, asks: boolean): string {
  if (!connects) return "no";
  return asks ? "with -p; a terminal session asks first" : "yes";
}

/** What a repository brings must be seen to be judged; in a person's own files values may be secrets. */
function transportFields(transport: McpTransport, showsValues: boolean, address = ""): ShownField[] {
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
    { label: "url", value: showsValues ? url : address, origin: type },
    ...(Object.keys(headers).length === 0 ? [] : [{ label: "headers", value: values(headers) }]),
    ...(headersHelper === undefined ? [] : [{ label: "headers helper", value: headersHelper }]),
  ];
}

function quoted(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word);
}
