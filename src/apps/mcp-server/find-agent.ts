import { RetinueError } from "../../foundation/retinue-error.ts";
import { shown } from "../../foundation/json-value.ts";
import { isAgentId } from "../../journal/session-files.ts";
import type { Session } from "../../runtime/session.ts";
import { type FoundTask, findTasks } from "../../tasks/find-tasks.ts";
import type { TaskState } from "../../tasks/task-state.ts";

/** An agent that a client named: in a session that is open here, or as the files tell it. */
export type LocatedAgent =
  | { readonly where: "here"; readonly session: Session; readonly state: TaskState }
  | { readonly where: "files"; readonly task: FoundTask };

/** How many agents an error lists, newest first. */
const listed = 20;

/** By id, or by the name it was given; what is no id is refused before anything is read. */
export async function findAgent(
  written: string,
  { sessions, transcripts }: { readonly sessions: readonly Session[]; readonly transcripts: string },
): Promise<LocatedAgent> {
  if (!isAgentId(written)) {
    throw new RetinueError("bad-agent-id", `${shown(written)} is not the id of an agent.`, {
      advice: "An id comes with the result of spawn_agent; it has up to 64 letters, digits, - and _.",
    });
  }
  const here = sessions.flatMap((session) => session.tasks.list().map((state) => ({ session, state })));
  const own =
    here.find(({ state }) => state.id === written) ?? here.findLast(({ state }) => state.name === written);
  if (own !== undefined) return { where: "here", ...own };
  const task =
    (await findTasks(transcripts, { idPrefix: written })).find(({ id }) => id === written) ??
    (await findTasks(transcripts)).find(({ name }) => name === written);
  if (task !== undefined) return { where: "files", task };
  throw await unknownAgent(written, { known: here.map(({ state }) => state), transcripts });
}

async function unknownAgent(
  written: string,
  { known, transcripts }: { readonly known: readonly TaskState[]; readonly transcripts: string },
): Promise<RetinueError> {
  const own = known.toReversed().map(({ id, agentType, status }) => `${id} (${agentType}, ${status})`);
  const ids = new Set(known.map(({ id }) => id));
  const found = (await findTasks(transcripts, { limit: listed })).filter(({ id }) => !ids.has(id));
  const earlier = found.map(({ id, agentType, state }) => `${id} (${agentType}, ${state})`);
  const all = [...own, ...earlier].slice(0, listed);
  const advice = all.length === 0 ? "No agent was started in this folder yet." : `Known: ${all.join(", ")}.`;
  return new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(written)}.`, { advice });
}
