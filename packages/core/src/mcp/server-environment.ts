import { startedByRetinue } from "@retinue/base/foundation/started-by-retinue.ts";
import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";

/**
 * What a server process gets: where things are and how the network is reached, then what its configuration gives it.
 * Nothing else of the person's environment, so that keys reach a server only when they were configured for it.
 */
export function serverEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  { env }: Extract<McpTransport, { type: "stdio" }>,
): Record<string, string> {
  return { ...passedEnvironment(environment), ...env, [startedByRetinue]: "1" };
}

/** What every program gets that works for us and is not ours. */
export function passedEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      // A function that a shell has exported would be run by the next shell.
      entry[1] !== undefined && isPassed(entry[0]) && !entry[1].startsWith("()"),
  );
  return Object.fromEntries(kept);
}

function isPassed(name: string): boolean {
  return passedNames.has(name) || passedNames.has(name.toUpperCase()) || /^(?:LC_|XDG_)/.test(name);
}

const passedNames: ReadonlySet<string> = new Set(
  `HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE TZ TMPDIR TMP TEMP
  HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR TRACEPARENT TRACESTATE
  APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES
  PROGRAMFILES(X86) PROGRAMW6432 SYSTEMDRIVE SYSTEMROOT USERNAME USERPROFILE WINDIR`.split(/\s+/),
);
