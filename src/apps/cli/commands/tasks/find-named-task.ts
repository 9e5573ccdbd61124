import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { isAgentId } from "../../../../journal/session-files.ts";
import { createPaths } from "../../../../settings/paths.ts";
import { type FoundTask, findTasks } from "../../../../tasks/recovery/find-tasks.ts";
import type { CliHost } from "../../cli-host.ts";
import { misuse } from "../../session-options.ts";

/** The folder in which this project's sessions are kept. */
export function transcriptsOf(host: CliHost): string {
  return createPaths(host).transcripts;
}

/** The one child with this id, the beginning of its id, or its name; what is no id is refused before anything is read. */
export async function findNamedTask(host: CliHost, written: string): Promise<FoundTask> {
  if (!isAgentId(written))
    throw misuse(`${JSON.stringify(written)} is not the id of an agent.`, "`retinue tasks` lists the ids.");
  const byId = await findTasks(transcriptsOf(host), { idPrefix: written });
  const exact = byId.find(({ id }) => id === written);
  if (exact !== undefined) return exact;
  const all = byId.length > 0 ? byId : await findTasks(transcriptsOf(host));
  const alike = byId.length > 0 ? byId : all.filter(({ name }) => name === written);
  const [first, ...others] = alike;
  if (first === undefined)
    throw new RetinueError(
      "unknown-task",
      `There is no agent ${JSON.stringify(written)} in this project's sessions.`,
      {
        advice:
          all.length === 0
            ? "No session of this folder has started an agent."
            : "`retinue tasks --all` lists all there are.",
      },
    );
  if (others.length === 0) return first;
  throw new RetinueError("ambiguous-task", `Several agents are meant by ${JSON.stringify(written)}.`, {
    advice: `Write more of the id: ${alike.map(({ id }) => id).join(", ")}.`,
  });
}
