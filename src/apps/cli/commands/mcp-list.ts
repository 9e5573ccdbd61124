import type { HeldServer } from "../../../settings/judge-mcp-entry.ts";
import { type CliMcp, gatherMcp, type ListedServer } from "../gather-mcp.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import { plural } from "../views/problem-view.ts";
import { type Column, renderTable } from "../views/table-view.ts";
import { harmless, wrap } from "../views/text-width.ts";

/** `retinue mcp list`: every configured server, where it stands, and whether it would be connected. Starts nothing. */
export async function mcpList(
  context: CommandContext,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context.host;
  const found = await gatherMcp(context);
  if (options.json === true) {
    stdout.write(`${JSON.stringify(asJson(found), undefined, 2)}\n`);
    return 0;
  }
  const { listed, gathered, session } = found;
  if (listed.length === 0) {
    stdout.write("No MCP servers. `retinue mcp add NAME -- COMMAND` adds one.\n");
  } else {
    const paint = createPaint(stdout.isColourAllowed);
    const rows = listed.map((server) => rowOf(server, session.nameOf).map(harmless));
    stdout.write(renderTable({ columns, rows, width: stdout.columns, paint }));
    const width = Math.min(stdout.columns ?? 100, 100);
    for (const line of heldLines(listed)) stdout.write(`${wrap(harmless(line), width).join("\n")}\n`);
  }
  const { problems } = gathered;
  if (problems.length > 0)
    stderr.write(
      `${plural(problems.length, "problem")} in the files; \`retinue mcp list --json\` tells each.\n`,
    );
  return 0;
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
  return [config.name, scope, config.kind ?? "?", stateWord(server), file === undefined ? "" : nameOf(file)];
}

function stateWord({ connects, asks, held }: ListedServer): string {
  if (!connects) return held?.reason ?? "held";
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

function reasonOf({ reason, because, advice }: HeldServer): string | undefined {
  if (reason === "shadowed") return undefined;
  return `${because}.${advice === undefined ? "" : ` ${advice}`}`;
}

/** What a program needs to know; values of variables and headers are nobody's business here. */
export function asJson({ listed, gathered }: Pick<CliMcp, "listed" | "gathered">) {
  return {
    version: 1,
    servers: listed.map((server) => {
      const { entry, connects, asks, held } = server;
      const { config, scope, file } = entry;
      return {
        name: config.name,
        scope,
        ...(file === undefined ? {} : { file }),
        transport: config.kind ?? null,
        connects,
        asks,
        ...(held === undefined
          ? {}
          : { reason: held.reason, because: held.because, ...(held.advice ? { advice: held.advice } : {}) }),
      };
    }),
    problems: gathered.problems,
  };
}
