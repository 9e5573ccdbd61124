import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** Resuming in the foreground is how an agent that did not have a permission gets to ask for it. */
export function wantsToRunUnwatched(request: SpawnRequest, definition: AgentDefinition): boolean {
  const isCalledBack = request.resume !== undefined && request.background === false;
  return !isCalledBack && (definition.background === true || request.background === true);
}

/** Whether a child would run in the background, before it is planned. */
export function runsInBackground(
  request: SpawnRequest,
  {
    definition,
    backgroundAllowed,
  }: { readonly definition: AgentDefinition; readonly backgroundAllowed: boolean },
): boolean {
  return backgroundAllowed && wantsToRunUnwatched(request, definition);
}
