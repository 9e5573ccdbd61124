import { RetinueError } from "../foundation/retinue-error.ts";
import { findChoices } from "../journal/find-choices.ts";
import { sessionFiles } from "../journal/session-files.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionOptions } from "./runtime-options.ts";
import type { RuntimeContext } from "./session-world.ts";

/** The options with the agent and model of the session that is gone on with, where they name none themselves. */
export async function withEarlierChoices<Output>(
  { discovered, ids }: RuntimeContext,
  options: SessionOptions<Output>,
): Promise<SessionOptions<Output>> {
  if (options.resume === undefined && options.continue !== true) return options;
  const { transcripts } = discovered.paths;
  const { from } = await chooseSession(options, transcripts, ids);
  if (from === undefined) return options;
  const { agent, model } = await findChoices(sessionFiles(transcripts, from).transcript);
  if (options.agent === undefined && agent !== undefined && agent !== "") {
    refuseLostAgent(discovered.registry.find(agent).type, agent);
  }
  // By its id the session is found again at once, and is the same one even if another was written to meanwhile.
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
    ...options,
    resume: from,
  };
}

/** Without its agent the session would go on with other rights than it had. */
function refuseLostAgent(found: "found" | "denied" | "unknown", agent: string): void {
  if (found === "found") return;
  const what = found === "denied" ? "is denied by a rule now" : "is not there any more";
  throw new RetinueError("unknown-agent", `The session ran as the agent ${JSON.stringify(agent)}, which ${what}.`, {
    advice: 'Name another with --agent, or none with --agent "".',
  });
}
