// @io

import { randomUUID } from "node:crypto";
import { abortCode } from "@retinue/base/foundation/abortable.ts";
import { invalid } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../conversation/message.ts";
import { checkOptions, checkPrompt } from "./options/check-options.ts";
import type { RunOptions, RuntimeOptions, RuntimeStore } from "./options/runtime-options.ts";
import { type RunHandle, startRun, stoppedEnding } from "./run-handle.ts";

/** Options of a runtime that mean something where workers carry out its sessions. The others belong to the workers. */
const understood: ReadonlySet<string> = new Set([
  "store",
  "cwd",
  "home",
  "env",
  "model",
  "agents",
  "approver",
]);

/** What belongs to the process that runs the agents would silently not hold. */
export function refuseWorkerOptions(options: RuntimeOptions): void {
  const stray = Object.entries(options).find(([name, value]) => value !== undefined && !understood.has(name));
  if (stray === undefined) return;
  throw new RetinueError("not-portable", `The option ${stray[0]} has no effect on agents that workers run.`, {
    advice: "Set it on the workers: `retinue serve`, or serveSessions() of retinue/cluster.",
  });
}

/** A run that workers of the store carry out; this process watches it and may leave. */
export function runInStore<Output>(
  {
    options,
    closed,
  }: { readonly options: RuntimeOptions & { readonly store: RuntimeStore }; readonly closed: AbortSignal },
  prompt: UserMessage["content"],
  given: RunOptions<Output>,
): RunHandle<Output> {
  checkPrompt("run", prompt);
  checkOptions("run", given);
  if (typeof prompt !== "string") throw invalid("The prompt of run() must be a string when a store is used.");
  const { store, model, approver, agents, home, cwd = process.cwd(), env = process.env } = options;
  const { signal, resume, ...session } = given;
  const sessionId = resume ?? session.sessionId ?? randomUUID();
  const request = {
    sessionId,
    prompt,
    isResumed: resume !== undefined,
    options: { model, ...session },
    directory: cwd,
    home,
    environment: env,
    agents: agents === undefined ? undefined : byName(agents),
    approve:
      approver === undefined
        ? undefined
        : (asked: Parameters<typeof approver.approve>[0]) => approver.approve(asked, { signal: closed }),
  };
  return startRun<Output>({
    wantsOutput: given.output !== undefined,
    sessionId: () => sessionId,
    signal: signal === undefined ? closed : AbortSignal.any([signal, closed]),
    async *events(stop) {
      try {
        yield* store.run(request, { signal: stop });
      } catch (error) {
        if (!stop.aborted) throw error;
        // Closing the runtime only ends the watching.
        const reason = abortCode(stop);
        if (!closed.aborted) await store.stop(sessionId, reason);
        yield { type: "run-ended", ending: stoppedEnding(reason) };
      }
    },
  });
}

/** Agents as plain data keyed by name; functions cannot be sent to a worker. */
function byName(agents: NonNullable<RuntimeOptions["agents"]>): unknown {
  const list = Array.isArray(agents)
    ? agents
    : Object.entries(agents).map(([name, agent]) => ({ ...agent, name }));
  return Object.fromEntries(
    list.map((agent: Readonly<Record<string, unknown>>) => {
      const { name, ...rest } = agent;
      const called = Object.entries(rest).find(([, value]) => typeof value === "function");
      if (called !== undefined)
        throw new RetinueError(
          "not-portable",
          `The function ${called[0]} of the agent ${String(name)} cannot be sent to a worker.`,
        );
      return [String(name), rest];
    }),
  );
}
