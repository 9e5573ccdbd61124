import { keyNames } from "@retinue/core/kernel/project/check-machine.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { gatherSession } from "../shared/open-project.ts";

/** `retinue auth status`: where a key for a model comes from, never the key; exit code 1 where there is none. */
export async function authStatus(
  context: CommandContext,
  { text }: { readonly text?: boolean },
): Promise<number> {
  const { host } = context;
  const { discovered } = await gatherSession(context, { toleratesBrokenFiles: true });
  const { env, plain } = discovered.settings.settings;
  const isSet = (name: string): boolean => (env.get(name) ?? host.environment[name] ?? "").trim() !== "";
  const source = keyNames.find(isSet) ?? (plain.apiKeyHelper === undefined ? undefined : "apiKeyHelper");
  const isAnthropic = source !== undefined && /^(ANTHROPIC_|apiKeyHelper$)/.test(source);
  const status = {
    loggedIn: source !== undefined,
    authMethod: source === undefined ? "none" : methodOf(source),
    apiProvider: source === undefined || isAnthropic ? "firstParty" : "thirdParty",
    apiKeySource: source,
  };
  const sentence =
    source === undefined
      ? "No API key is configured. Save one with `retinue auth login`."
      : `The key comes from ${source}.`;
  host.stdout.write(text === true ? `${sentence}\n` : `${JSON.stringify(status, undefined, 2)}\n`);
  return status.loggedIn ? 0 : 1;
}

function methodOf(source: string): string {
  if (source === "apiKeyHelper") return "api_key_helper";
  return source === "ANTHROPIC_AUTH_TOKEN" ? "oauth_token" : "api_key";
}
