import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { AgentContext, AgentProgram, ProgramOutcome } from "@retinue/cluster/agent-program.ts";
import { toAgentRecord } from "@retinue/cluster/agent-records.ts";
import type { JsonValue } from "@retinue/cluster/store.ts";

/** What a test agent does. */
export interface TestPlan {
  /** Steps with an effect outside, each this long. */
  readonly steps?: number;
  readonly stepMs?: number;
  /** Starts these agents first and ends when all of them have. */
  readonly children?: readonly { readonly agent: string; readonly plan: TestPlan }[];
  /** After its steps, waits for this many messages and ends with them. */
  readonly messages?: number;
  /** Kills its worker each time. */
  readonly isDeadly?: boolean;
}

/** An agent whose effects are files named after their idempotency keys, so that a repetition can be recognized. */
export function createTestProgram(effects: string): AgentProgram {
  mkdirSync(effects, { recursive: true });
  return async (context) => {
    const plan = context.plan as unknown as TestPlan;
    if (plan.isDeadly === true) process.kill(process.pid, "SIGKILL");
    const step = stepOf(context, effects, plan.stepMs ?? 0);
    const records = context.history.map(({ record }) => toAgentRecord(record));
    // What an earlier worker had started is done again under the same key.
    for (const call of context.interrupted) await context.repeat(call, step);
    let done = records.filter((record) => record?.type === "returned").length + context.interrupted.length;
    for (const child of plan.children ?? []) await context.startChild(toChild(child));
    while (done < (plan.steps ?? 0)) {
      if (context.draining.aborted) return { type: "yielded" };
      await context.call("step", done, step);
      done += 1;
    }
    return finish(context, plan);
  };
}

async function finish(context: AgentContext, plan: TestPlan): Promise<ProgramOutcome> {
  const earlier = context.history.flatMap(({ record: value }) => {
    const record = toAgentRecord(value);
    return record?.type === "received" ? [record.message] : [];
  });
  const bodies = [...earlier, ...(await context.receive())].map(({ body }) => body);
  const awaited = (plan.children?.length ?? 0) + (plan.messages ?? 0);
  if (bodies.length < awaited) return { type: "parked", waitingFor: { messages: awaited - bodies.length } };
  return { type: "ended", ending: { status: "completed", result: bodies } };
}

function toChild({ agent, plan }: { readonly agent: string; readonly plan: TestPlan }) {
  return { agent, plan: plan as JsonValue };
}

function stepOf({ signal }: AgentContext, effects: string, stepMs: number) {
  return async (key: string): Promise<string> => {
    if (stepMs > 0) await pause(stepMs, undefined, { signal }).catch(noteAbort(effects, key));
    const file = join(effects, encodeURIComponent(key));
    try {
      writeFileSync(file, `${process.pid} ${Date.now()}`, { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    return key;
  };
}

/** When an effect was aborted, to measure how long that took. */
function noteAbort(effects: string, key: string): (error: unknown) => never {
  return (error) => {
    writeFileSync(join(effects, `.${encodeURIComponent(key)}`), String(Date.now()));
    throw error;
  };
}

export function readAborts(effects: string): readonly number[] {
  return readdirSync(effects)
    .filter((name) => name.startsWith("."))
    .map((name) => Number(readFileSync(join(effects, name), "utf8")));
}

export interface Effect {
  readonly key: string;
  readonly agent: string;
  readonly pid: number;
  readonly at: number;
}

export function readEffects(effects: string): readonly Effect[] {
  return readdirSync(effects)
    .filter((name) => !name.startsWith("."))
    .map((name): Effect => {
      const key = decodeURIComponent(name);
      const [pid = "", at = ""] = readFileSync(join(effects, name), "utf8").split(" ");
      return { key, agent: key.slice(0, key.lastIndexOf("/")), pid: Number(pid), at: Number(at) };
    })
    .sort((a, b) => a.at - b.at);
}
