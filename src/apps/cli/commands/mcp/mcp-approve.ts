import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { mcpDefinitionHash } from "../../../../mcp/mcp-definition-hash.ts";
import {
  approveMcpServers,
  forgetMcpChoices,
  rejectMcpServers,
} from "../../../../settings/approve-mcp-servers.ts";
import { gatherMcp, type ListedServer } from "../../gather-mcp.ts";
import { gatherSession } from "../../gather-session.ts";
import { type CommandContext, misuse } from "../../session-options.ts";
import { notWritten } from "./mcp-add.ts";
import { findNamed } from "./mcp-get.ts";

/** `retinue mcp approve NAME`: this definition of a project's server may be started; a changed one is asked about again. */
export async function mcpApprove(
  context: CommandContext,
  name: string | undefined,
  options: { readonly all?: boolean },
): Promise<number> {
  const { listed, session, gathered } = await gatherMcp(context);
  const chosen = chooseServers(listed, name, options);
  const names = chosen.map(({ entry }) => entry.config.name);
  const outcome = await approveMcpServers(
    session.discovered.paths,
    chosen.map(({ entry }) => ({ name: entry.config.name, hash: mcpDefinitionHash(entry.config.written) })),
  );
  if (outcome.type === "refused") throw notWritten(outcome.why);
  context.host.stdout.write(`Approved as they are written now: ${names.join(", ")}.\n`);
  if (!gathered.facts.trusted)
    context.host.stdout.write(
      "The folder is not trusted yet, so nothing of it starts: see `retinue trust`.\n",
    );
  return 0;
}

/** `retinue mcp reject NAME`: a project's server is not started here, no matter who else approves it. */
export async function mcpReject(context: CommandContext, name: string): Promise<number> {
  const { listed, session } = await gatherMcp(context);
  if (!findNamed(listed, name).some(({ entry }) => entry.fromRepository))
    throw misuse(
      `\`${name}\` does not come from the project.`,
      `\`retinue mcp remove ${name}\` takes it out of its file.`,
    );
  const outcome = await rejectMcpServers(session.discovered.paths, [name]);
  if (outcome.type === "refused") throw notWritten(outcome.why);
  context.host.stdout.write(
    `\`${name}\` is not started in this project. \`retinue mcp approve ${name}\` takes it back.\n`,
  );
  return 0;
}

/** `retinue mcp reset-project-choices`: servers of the project are asked about again. */
export async function mcpResetChoices(context: CommandContext): Promise<number> {
  const { discovered } = await gatherSession(context, { toleratesBrokenFiles: true });
  const outcome = await forgetMcpChoices(discovered.paths);
  if (outcome.type === "refused") throw notWritten(outcome.why);
  context.host.stdout.write("Servers of this project are neither approved nor rejected any more.\n");
  return 0;
}

/** Of two project files with the same name, the nearer one is the one that would be started. */
function chooseServers(
  listed: readonly ListedServer[],
  name: string | undefined,
  { all }: { readonly all?: boolean },
): readonly ListedServer[] {
  const fromProject = listed.filter(({ entry }) => entry.fromRepository);
  if ((name === undefined) === (all !== true))
    throw misuse("`retinue mcp approve` needs the name of one server, or --all.");
  if (name === undefined) {
    if (fromProject.length === 0)
      throw new RetinueError(
        "unknown-mcp-server",
        "The project brings no MCP servers, so none needs approval.",
      );
    return firstOfEach(fromProject);
  }
  const own = fromProject.filter(({ entry }) => entry.config.name === name);
  if (own.length > 0) return own.slice(0, 1);
  findNamed(listed, name);
  throw misuse(`\`${name}\` does not come from the project, so it needs no approval.`);
}

function firstOfEach(servers: readonly ListedServer[]): readonly ListedServer[] {
  const firsts = new Map<string, ListedServer>();
  for (const server of servers) {
    const { name } = server.entry.config;
    if (!firsts.has(name)) firsts.set(name, server);
  }
  return [...firsts.values()];
}
