import { connectSessionServers } from "./connect-session-servers.ts";
import { withEarlierChoices } from "./find-earlier-choices.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { openSession } from "./open-session.ts";
import { createPromptTool } from "./prompt-tool.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { Session } from "./session.ts";
import { refuseBrokenRestrictions } from "./session-rules.ts";
import type { RuntimeContext } from "./session-world.ts";

/** Opens a session while its MCP servers are connected; where it cannot be opened, they end again. */
export async function beginSession<Output>(
  world: RuntimeContext,
  given: SessionOptions<Output>,
  { look, signal }: { readonly look: () => Promise<RuntimeContext>; readonly signal: AbortSignal },
): Promise<Session<Output>> {
  refuseBrokenRestrictions(world.discovered.settings);
  const options = await withEarlierChoices(world, given);
  const stop = new AbortController();
  const definition = findMainAgent(world.discovered, options.agent);
  const planOnly = options.planOnly === true;
  const servers = connectSessionServers(world, {
    definition,
    planOnly,
    signal: AbortSignal.any([signal, stop.signal]),
  });
  const ended = servers.catch(() => undefined);
  const { permissionPromptTool: asked } = options;
  const around = asked === undefined ? world : { ...world, canUseTool: createPromptTool(asked, servers) };
  try {
    return await openSession(around, options, { look, servers });
  } catch (error) {
    stop.abort(error);
    await (await ended)?.[Symbol.asyncDispose]();
    throw error;
  }
}
