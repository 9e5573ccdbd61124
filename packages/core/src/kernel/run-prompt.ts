import { randomUUID } from "node:crypto";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "../conversation/agent-event.ts";
import type { PromptOutcome, WireError } from "../protocol/agent-event.ts";
import type { PromptInput } from "../protocol/op.ts";
import type { AgentTree } from "./agent-tree.ts";

/** Submits a prompt and waits for its end; what it does meanwhile are events of the tree. */
export async function runPrompt(
  tree: Pick<AgentTree, "submit" | "onEvent">,
  { id = randomUUID(), ...prompt }: PromptInput,
): Promise<PromptOutcome> {
  const { promise, resolve } = Promise.withResolvers<PromptOutcome>();
  const forget = tree.onEvent((event) => {
    if (event.type === "prompt-ended" && event.id === id) resolve(event);
  });
  try {
    await tree.submit(mainAgentId, { type: "prompt", id, ...prompt });
    return await promise;
  } finally {
    forget();
  }
}

/** The error as it was thrown, or as it came over a wire. */
export function thrownError({ cause, code, message, advice }: WireError): unknown {
  return cause ?? new RetinueError(code, message, advice === undefined ? {} : { advice });
}
