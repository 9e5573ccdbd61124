import { abortable } from "@retinue/base/foundation/abortable.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openBrowser } from "../../shared/open-browser.ts";
import { openProject } from "../../shared/open-project.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { healthOf, untilInterrupted } from "./mcp-list.ts";

export interface McpLoginOptions {
  readonly browser?: boolean;
  readonly scopes?: string;
}

/** `retinue mcp login NAME`: a person logs in at a server, in a browser here or on another machine. */
export async function mcpLogin(
  context: CommandContext,
  name: string,
  { browser = true, scopes }: McpLoginOptions,
): Promise<number> {
  const { host } = context;
  const { mcp } = openProject(context, { toleratesBrokenFiles: true });
  return untilInterrupted(context, async (signal) => {
    const { issuer, renews } = await mcp
      .login(name, {
        signal,
        scope: scopes,
        visit: (address) => visit(address, host, browser),
        ...(browser ? {} : { paste: (over: AbortSignal) => readPasted(host, over) }),
      })
      .finally(() => (browser ? undefined : host.endQuestions()));
    const lasts = renews ? "" : " It cannot be renewed without you.";
    host.stdout.write(`${stripControlCharacters(`Logged in to \`${name}\` at ${issuer}.${lasts}`)}\n`);
    const [server] = (await mcp.get(name, { check: true, signal })).servers;
    if (server !== undefined) host.stdout.write(`${stripControlCharacters(healthOf(server))}\n`);
    return server?.status?.type === "failed" ? 1 : 0;
  });
}

/** `retinue mcp logout NAME`: forgets the login, and has the authorization server end it where it can. */
export async function mcpLogout(context: CommandContext, name: string): Promise<number> {
  const { mcp } = openProject(context, { toleratesBrokenFiles: true });
  const { wasLoggedIn } = await mcp.logout(name);
  context.host.stdout.write(
    wasLoggedIn
      ? `Logged out of \`${name}\`.\n`
      : `There was no login to \`${name}\`; nothing was changed.\n`,
  );
  return 0;
}

/** The address is always shown: where no browser opens, a person can still take it elsewhere. */
async function visit(address: string, host: CliHost, opensBrowser: boolean): Promise<void> {
  host.stdout.write(
    opensBrowser
      ? `Log in in your browser. If none opens, go to:\n${address}\n`
      : `Go to this address and log in:\n${address}\nThe browser then ends at an address on its own machine, which may not load.\n`,
  );
  const why = opensBrowser ? await openBrowser(address, host) : undefined;
  if (why !== undefined) host.stderr.write(`No browser was opened: ${why}.\n`);
}

/** What the person hands over; where nothing is handed over, the browser itself has to come back. */
async function readPasted({ canAsk, ask, stdin }: CliHost, signal: AbortSignal): Promise<string> {
  if (canAsk) return ask("Paste that address, or the code in it: ");
  for await (const line of stdin.lines({ signal })) if (line.trim() !== "") return line;
  return abortable(new Promise<never>(() => undefined), signal);
}
