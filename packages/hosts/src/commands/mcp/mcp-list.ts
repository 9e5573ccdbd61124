import { plural } from "@retinue/base/foundation/diagnostic.ts";
import {
  type HeldServer,
  hideInAddress,
  type ListedServer,
  type McpOverview,
  type McpStatus,
  refuseBrokenConfig,
  toolCount,
} from "@retinue/core/kernel/project/project-mcp.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint } from "../../shared/paint.ts";
import { stripControlCharacters, wrap } from "../../shared/strip-control-characters.ts";
import { type Column, renderTable } from "../views/render-table.ts";

export interface McpListOptions {
  readonly json?: boolean;
  /** True also connects servers of the project that have not been approved by name; `approved` leaves them alone. */
  readonly check?: boolean | "approved";
}

/** `retinue mcp list`: every configured server, and how it does; without a check, where it is and whether it would be connected. */
export async function mcpList(context: CommandContext, options: McpListOptions): Promise<number> {
  const { check = false } = options;
  const { stdout, stderr } = context.host;
  const { mcp, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const found = await untilInterrupted(context, (signal) => mcp.list({ check, signal }));
  refuseBrokenConfig(found);
  const { servers: listed, diagnostics } = found;
  // A list that was only asked for is no test that fails.
  const code = check === true && listed.some(({ status }) => status?.type === "failed") ? 1 : 0;
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson(found), undefined, 2)}\n`);
    return code;
  }
  if (listed.length === 0) {
    stdout.write("No MCP servers. `retinue mcp add NAME -- COMMAND` adds one.\n");
  } else if (check !== false) {
    for (const server of listed) stdout.write(`${stripControlCharacters(healthLine(server))}\n`);
  } else {
    const paint = createPaint(stdout.isColourAllowed);
    const rows = listed.map((server) => rowOf(server, nameOf).map(stripControlCharacters));
    stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
    const width = Math.min(stdout.columns ?? 100, 100);
    for (const line of heldLines(listed))
      stdout.write(`${wrap(stripControlCharacters(line), width).join("\n")}\n`);
  }
  if (diagnostics.length > 0)
    stderr.write(
      `${plural(diagnostics.length, "problem")} in the files; \`retinue mcp list --json\` shows each.\n`,
    );
  return code;
}

const columns: readonly Column[] = [
  { heading: "NAME", atLeast: 8, atMost: 32, style: "name" },
  { heading: "SCOPE", atLeast: 7 },
  { heading: "KIND", atLeast: 5 },
  { heading: "STATE", atLeast: 9 },
  { heading: "WHERE", atLeast: 10, elseBelow: 16, style: "dim" },
];

function rowOf(server: ListedServer, nameOf: (file: string) => string): readonly string[] {
  const { config, scope, file } = server.entry;
  const where = file === undefined ? "" : nameOf(file);
  return [config.name, scope, config.kind ?? "?", stateWord(server), where];
}

/** `name: what is started or reached - how it does`, one line for each, as scripts look for it. */
function healthLine(server: ListedServer): string {
  const { config } = server.entry;
  return `${config.name}: ${targetOf(config)} - ${healthOf(server)}`;
}

/** How a server does, in words; what has not been approved was not tried. */
export function healthOf({ entry, status, held, asks, login }: ListedServer): string {
  const { name } = entry.config;
  if (status?.type === "connected")
    return `✔ Connected, ${toolCount(status)}${login === undefined ? "" : `, logged in at ${login.issuer}`}`;
  if (status?.type === "failed") {
    const advice = status.advice === undefined ? "" : ` ${status.advice}`;
    return `${status.needsAuth === true ? "! Needs authentication" : "✘ Failed to connect"}: ${status.reason}.${advice}`;
  }
  if (held !== undefined) return `⏸ Not connected: ${reasonOf(held) ?? held.reason}`;
  if (asks) return `⏸ Pending approval (\`retinue mcp approve ${name}\`)`;
  return "⏸ Not tried";
}

function targetOf({ transport, kind, written }: ListedServer["entry"]["config"]): string {
  if (transport === undefined) return JSON.stringify(written);
  if (transport.type === "stdio") return [transport.command, ...transport.args].join(" ");
  return "url" in transport
    ? `${hideInAddress(transport.url)} (${transport.type.toUpperCase()})`
    : String(kind);
}

/** Does something that Ctrl+C ends. */
export async function untilInterrupted<Result>(
  { host }: CommandContext,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  return work(stop.signal).finally(forget);
}

function stateWord({ connects, asks, held }: ListedServer): string {
  if (!connects) return held?.code ?? "held";
  return asks ? "asks" : "connects";
}

/** One line for each reason, with all it holds for. */
function heldLines(listed: readonly ListedServer[]): readonly string[] {
  const reasons = new Map<string, string[]>();
  for (const { entry, held, asks } of listed) {
    const reason = held === undefined ? asks && asksFirst : reasonOf(held);
    if (reason) reasons.set(reason, [...(reasons.get(reason) ?? []), entry.config.name]);
  }
  const lines = [...reasons].map(([reason, names]) => `${names.join(", ")}: ${reason}`);
  return lines.length === 0 ? [] : ["", ...lines];
}

const asksFirst = "`retinue -p` connects; a terminal session asks first, until `retinue mcp approve`.";

function reasonOf({ code, reason, advice }: HeldServer): string | undefined {
  if (code === "shadowed") return undefined;
  return `${reason}.${advice === undefined ? "" : ` ${advice}`}`;
}

function checkOf(status: McpStatus | undefined) {
  if (status === undefined) return {};
  if (status.type !== "connected") return { check: status };
  const { instructions: _instructions, ...check } = status;
  return { check };
}

/** What a program needs to know; values of variables and headers are not shown here. */
export function asJson({ servers, diagnostics }: Pick<McpOverview, "servers" | "diagnostics">) {
  return {
    version: 1,
    servers: servers.map((server) => {
      const { entry, connects, asks, held, status, login } = server;
      const { config, scope, file } = entry;
      return {
        name: config.name,
        scope,
        file,
        transport: config.kind ?? null,
        connects,
        asks,
        ...checkOf(status),
        login,
        ...(held === undefined
          ? {}
          : { code: held.code, reason: held.reason, ...(held.advice ? { advice: held.advice } : {}) }),
      };
    }),
    diagnostics,
  };
}
