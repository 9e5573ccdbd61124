import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Project } from "@retinue/core/kernel/project/create-project.ts";

/** Logins at MCP servers, as the page offers them. */
export interface StudioLogins {
  /** The servers that want one. */
  list(): Promise<readonly string[]>;
  /** Begins a login; gives the address at which the person continues. */
  begin(server: string): Promise<string>;
  /** Resolves with a sentence when the person has come back; rejects with why they have not. */
  ended(server: string): Promise<string>;
}

export function createStudioLogins(
  mcp: Pick<Project["mcp"], "list" | "login">,
  closing: AbortSignal,
): StudioLogins {
  const pending = new Map<string, { readonly end: Promise<string>; readonly stop: AbortController }>();
  return {
    async list() {
      const { servers } = await mcp.list({ check: "remote", signal: closing });
      return servers.flatMap(({ entry, status }) =>
        status?.type === "failed" && status.canLogIn === true ? [entry.config.name] : [],
      );
    },
    begin(server) {
      // Who begins again has closed the tab of the login before.
      pending.get(server)?.stop.abort(new RetinueError("mcp-login-failed", "Another login was started."));
      const stop = new AbortController();
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const end = mcp
        .login(server, { signal: AbortSignal.any([closing, stop.signal]), visit: resolve })
        .then(
          ({ issuer }) =>
            `Logged in to ${server} at ${issuer}. Sessions that are opened from now on have it.`,
        );
      end.catch(reject);
      pending.set(server, { end, stop });
      return promise;
    },
    ended(server) {
      const login = pending.get(server);
      if (login === undefined)
        throw new RetinueError("misuse", `No login at ${JSON.stringify(server)} was started here.`);
      return login.end;
    },
  };
}
