import { textOf, type UserMessage } from "../../conversation/message.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import type { PreparedPrompt } from "../../tasks/run-agent.ts";
import type { CallHookDependencies } from "./call-hooks.ts";
import type { RunningTask } from "./running-tasks.ts";

export interface PromptHookDependencies
  extends Pick<CallHookDependencies, "runner" | "situation" | "report"> {
  readonly source: "startup" | "resume" | "fork";
  readonly model: string;
  readonly runningTasks?: (() => readonly RunningTask[]) | undefined;
  /** How often in a row hooks may make the agent continue. */
  readonly maxRounds: number;
}

export interface PromptHooks {
  /** Hooks get a prompt before the model does: they may refuse it or add to it. The first one starts the session. */
  readonly prepare: (content: UserMessage["content"], signal: AbortSignal) => Promise<PreparedPrompt>;
  readonly beforeEnd: NonNullable<LoopPorts["beforeEnd"]>;
  /** `stopped` is the signal of a child that the one that aborted it waits for. */
  readonly end: (stopped?: AbortSignal) => Promise<void>;
}

/** The hooks around a whole prompt: start and end of the session, the prompt itself, and the attempt to stop. */
export function createPromptHooks(dependencies: PromptHookDependencies): PromptHooks {
  const { runner, situation, report, maxRounds } = dependencies;
  let hasStarted = false;
  let rounds = 0;
  // Kept until a prompt gets through: a refused first one must not take it along.
  let startContext: string | undefined;

  async function start(signal: AbortSignal): Promise<void> {
    if (hasStarted) return;
    hasStarted = true;
    if (!runner.receives("SessionStart")) return;
    const { source, model } = dependencies;
    const outcome = await runner.fire("SessionStart", { source, model }, await situation(signal));
    report(outcome);
    startContext = outcome.context;
  }

  return {
    async prepare(content, signal) {
      rounds = 0;
      await start(signal);
      const contexts = [startContext];
      if (runner.receives("UserPromptSubmit")) {
        const prompt = textOf({ role: "user", content });
        const outcome = await runner.fire("UserPromptSubmit", { prompt }, await situation(signal));
        report(outcome);
        if (outcome.blocked || outcome.stop !== undefined)
          return { type: "blocked", reason: outcome.reason || outcome.stop || "a hook refused the prompt" };
        contexts.push(outcome.context);
      }
      startContext = undefined;
      const added = contexts.filter((text) => text !== undefined);
      return { type: "ready", content: added.length === 0 ? content : withContext(content, added) };
    },
    async beforeEnd(text, { signal }) {
      if (!runner.receives("Stop")) return undefined;
      const payload = {
        isRepeated: rounds > 0,
        lastMessage: text,
        backgroundTasks: dependencies.runningTasks?.() ?? [],
      };
      const outcome = await runner.fire("Stop", payload, await situation(signal));
      report(outcome);
      const reasons = [outcome.blocked ? outcome.reason : undefined, outcome.context];
      const reason = reasons.filter((part) => part !== undefined && part !== "").join("\n");
      if (reason === "" || outcome.stop !== undefined) return undefined;
      if (rounds >= maxRounds) {
        const failure = `Hooks made the agent continue ${rounds} times in a row, so now it stops.`;
        report({ systemMessages: [], failures: [failure] });
        return undefined;
      }
      rounds += 1;
      return feedbackMessage(reason);
    },
    async end() {
      if (!hasStarted || !runner.receives("SessionEnd")) return;
      const options = await situation(new AbortController().signal);
      report(await runner.fire("SessionEnd", { reason: "other" }, options));
    },
  };
}

/** What an agent is informed that wanted to end and may not yet. */
export function feedbackMessage(reason: string): UserMessage {
  const note = `<hook-feedback>\n${reason}\n</hook-feedback>\nThe work is not over yet: take this into account and continue.`;
  return { role: "user", content: [{ type: "text", text: note }] };
}

export function withContext(
  content: UserMessage["content"],
  contexts: readonly string[],
): Exclude<UserMessage["content"], string> {
  const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  const text = `<hook-feedback>\n${contexts.join("\n")}\n</hook-feedback>`;
  return [...blocks, { type: "text", text }];
}
