import type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { openBrowser } from "../../shared/open-browser.ts";
import { openProject } from "../../shared/open-project.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";

interface LoginSteps {
  readonly context: CommandContext;
  readonly notice: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Takes the person through a login at an MCP server, in their browser. Rejects with a sentence. */
export async function logInAtServer(name: string, { context, notice, signal }: LoginSteps): Promise<void> {
  const { mcp } = openProject(context, { toleratesBrokenFiles: true });
  const { issuer } = await mcp.login(name, {
    signal,
    async visit(address) {
      notice(`Log in in your browser. If none opens, go to ${address}`);
      const why = await openBrowser(address, context.host);
      if (why !== undefined) notice(`No browser was opened: ${why}.`);
    },
  });
  notice(stripControlCharacters(`Logged in to ${name} at ${issuer}.`));
}

/** The servers at which a person can log in. */
export function serversWantingLogin(servers: readonly SessionServer[]): readonly string[] {
  return servers.flatMap(({ name, status }) =>
    status.type === "failed" && status.canLogIn === true ? [name] : [],
  );
}
