import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { settledSoon } from "../foundation/abortable.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { TaskState } from "./task-state.ts";

/** A program's callback that does not return is not waited for longer than this. */
const callbackLimitMs = 5000;

/** Reports to a program's definition how its agent has ended. */
export async function describeDefinition(
  { id, status, ending }: TaskState,
  { name, behaviour }: AgentDefinition,
): Promise<void> {
  if (ending === undefined || behaviour?.onEnd === undefined) return;
  const reported = Promise.resolve(behaviour.onEnd({ agent: name, agentId: id, status, text: ending.text }));
  const late = AbortSignal.abort(
    new RetinueError("callback-late", `it did not return within ${callbackLimitMs} ms`),
  );
  await settledSoon(reported, late, callbackLimitMs);
}
