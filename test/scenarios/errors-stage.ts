import { join } from "node:path";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import { createRuntime, type Runtime } from "@retinue/core/kernel/create-runtime.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { onTestFinished } from "vitest";
import { createPlace, type Place } from "./run-command.ts";

export const claude = "claude-haiku-4-5";
/** Spoken to through a package of the AI SDK. */
export const foreign = "openai-compatible/scripted";

export interface ErrorStageOptions {
  readonly url: string;
  readonly model?: string;
  readonly limits?: object;
  readonly retries?: number;
  /** How many times faster pauses pass than on the wall. */
  readonly speed?: number;
}

export interface ErrorStage {
  readonly runtime: Runtime;
  readonly place: Place;
  /** How many pauses before a request continue. */
  readonly pauses: () => number;
}

/** A runtime over a provider that makes trouble, with room for many children. */
export function createErrorStage(options: ErrorStageOptions): ErrorStage {
  const { url, model = claude, limits = {}, retries = 2, speed = 20 } = options;
  const place = createPlace();
  const { clock, pauses } = createFastClock(speed);
  place.write("../home/.claude/settings.json", JSON.stringify({ limits }));
  const runtime = createRuntime({
    cwd: place.cwd,
    home: place.home,
    settingSources: ["user", "project", "local"],
    transcripts: true,
    env: {
      PATH: process.env["PATH"],
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "x",
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_KEY: "x",
      ANTHROPIC_MODEL: model,
      CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: "60",
      CLAUDE_CODE_MAX_RETRIES: String(retries),
    },
    managedDirectory: join(place.home, "managed"),
    clock,
  });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  return { runtime, place, pauses };
}

/** Pauses between attempts are real, but short. */
function createFastClock(speed: number): { clock: WaitClock; pauses: () => number } {
  let pauses = 0;
  const clock: WaitClock = {
    now: () => performance.now() * speed,
    async sleep(milliseconds, signal) {
      // Clocks over whole runs look again at longer intervals.
      const one = milliseconds < 10_000 ? 1 : 0;
      pauses += one;
      try {
        await sleep(milliseconds / speed, signal);
      } finally {
        pauses -= one;
      }
    },
  };
  return { clock, pauses: () => pauses };
}

/** What a child was asked, without what the program adds; the same for all its turns. */
export function taskOf({ messages }: ModelRequest): string {
  const task = /Task «([^»]*)»/.exec(JSON.stringify(messages[0] satisfies Message | undefined));
  return task?.[1] ?? "";
}

export function promptOf(task: string): string {
  return `Task «${task}».`;
}

/** A call that never repeats, so that it is not taken for a loop. */
export function noteCall({ messages }: ModelRequest) {
  const todos = [{ content: `Step ${messages.length}`, status: "pending", activeForm: "Working" }];
  return { name: "TodoWrite", input: { todos } };
}
