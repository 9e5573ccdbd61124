import { randomUUID } from "node:crypto";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "../conversation/agent-event.ts";
import type { AgentEvent, PromptOutcome, WireError } from "../protocol/agent-event.ts";
import type { PromptInput } from "../protocol/op.ts";
import type { AgentTree } from "./agent-tree.ts";
import { wireError } from "./turn-driver.ts";

/** Submits a prompt and waits for its end; what it does meanwhile are events of the tree. The signal interrupts its turn. */
export async function runPrompt(
  tree: Pick<AgentTree, "submit" | "onEvent">,
  { id = randomUUID(), ...prompt }: PromptInput,
  signal?: AbortSignal,
): Promise<PromptOutcome> {
  const { promise, resolve } = Promise.withResolvers<PromptOutcome>();
  const forget = tree.onEvent((event) => {
    if (event.type === "prompt-ended" && event.id === id) resolve(event);
  }, promptEnds);
  const interrupt = (): void => {
    const { code, message: reason } = wireError(signal?.reason);
    void tree.submit(mainAgentId, { type: "interrupt", code, reason });
  };
  try {
    await tree.submit(mainAgentId, { type: "prompt", id, ...prompt });
    signal?.addEventListener("abort", interrupt, { once: true });
    if (signal?.aborted === true) interrupt();
    return await promise;
  } finally {
    forget();
    signal?.removeEventListener("abort", interrupt);
  }
}

const promptEnds: ReadonlySet<AgentEvent["type"]> = new Set(["prompt-ended"]);

/** The error as it was thrown, or as it came over a wire. */
export function thrownError({ cause, code, message, advice }: WireError): unknown {
  return cause ?? new RetinueError(code, message, advice === undefined ? {} : { advice });
}
