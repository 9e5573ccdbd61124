import { RetinueError } from "../foundation/retinue-error.ts";
import { findChoices } from "../journal/find-choices.ts";
import { sessionFiles } from "../journal/session-files.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { type OpenSessionParts, openSession } from "./open-session.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-setup.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { connectSessionServers } from "./servers/connect-session-servers.ts";
import { createPromptTool } from "./servers/create-prompt-tool.ts";
import type { Session } from "./session.ts";
import { refuseBrokenRestrictions } from "./session-rules.ts";

/** Opens a session while its MCP servers are connected; where it cannot be opened, they end again. */
export async function beginSession<Output>(
  world: RuntimeContext,
  given: SessionSetup<Output>,
  { look, signal }: Omit<OpenSessionParts, "servers">,
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
    return await openSession(around, options, { look, servers, signal });
  } catch (error) {
    stop.abort(error);
    await (await ended)?.[Symbol.asyncDispose]();
    throw error;
  }
}

/** The options with the agent and model of the session that is resumed, where they name none themselves. */
async function withEarlierChoices<Output>(
  { discovered, ids }: RuntimeContext,
  options: SessionSetup<Output>,
): Promise<SessionSetup<Output>> {
  if (options.resume === undefined && options.continue !== true) return options;
  const { transcripts } = discovered.paths;
  const { from } = await chooseSession(options, transcripts, ids);
  if (from === undefined) return options;
  const { agent, model } = await findChoices(sessionFiles(transcripts, from).transcript);
  if (options.agent === undefined && agent !== undefined && agent !== "") {
    refuseLostAgent(discovered.registry.find(agent).type, agent);
  }
  // By its id the session is found again immediately, and is the same one even if another was written to meanwhile.
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
    ...options,
    resume: from,
  };
}

/** Without its agent the session would continue with other rights than it had. */
function refuseLostAgent(found: "found" | "denied" | "unknown", agent: string): void {
  if (found === "found") return;
  const what = found === "denied" ? "is denied by a rule now" : "is not there any more";
  throw new RetinueError(
    "unknown-agent",
    `The session ran as the agent ${JSON.stringify(agent)}, which ${what}.`,
    {
      advice: 'Name another with --agent, or none with --agent "".',
    },
  );
}
