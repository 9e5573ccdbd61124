import type { Stopwatch } from "../../foundation/stopwatch.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { AskPerson } from "./ask-person.ts";
import type { CanUseTool } from "./create-authorize.ts";

/** Around every wait for a person; the clocks of whoever waits is paused meanwhile. */
export type WhileAsking = <T>(wait: () => Promise<T>) => Promise<T>;

/** The agent's own clock, and for a child also that of the agent that waits for it. */
export function holding(...stopwatches: readonly Stopwatch[]): WhileAsking {
  return (wait) => stopwatches.reduce<typeof wait>((inner, stopwatch) => () => stopwatch.hold(inner), wait)();
}

export function askHeld(person: AskPerson, whileAsking: WhileAsking): AskPerson {
  return { ...person, ask: (call, options) => whileAsking(() => person.ask(call, options)) };
}

export function canUseToolHeld(canUseTool: CanUseTool, whileAsking: WhileAsking): CanUseTool {
  return (tool, input, context) => whileAsking(() => canUseTool(tool, input, context));
}

type MakeContext = (call: Pick<ToolContext, "callId" | "signal" | "progress">) => ToolContext;

/** A tool that puts a question to a person stops the clocks too. */
export function contextHeld(makeContext: MakeContext, whileAsking: WhileAsking): MakeContext {
  return (call) => {
    const context = makeContext(call);
    const { ask } = context.host;
    if (ask === undefined) return context;
    return {
      ...context,
      host: { ...context.host, ask: (questions, options) => whileAsking(() => ask(questions, options)) },
    };
  };
}
