import { checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AssistantBlock, Message, StopReason } from "@retinue/core/conversation/message.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { ModelError } from "@retinue/core/models/model-error.ts";

/**
 * What goes wrong on demand. Errors with a status come before the answer, or inside it where `after` says how many
 * deltas were sent. `connection-failed` breaks before any answer, `cut` inside it, `stall` says nothing more and waits.
 */
export type StepError =
  | "rate-limited"
  | "overloaded"
  | "server-error"
  | "context-too-long"
  | "invalid-request"
  | "unauthorized"
  | "not-found"
  | "connection-failed"
  | "cut"
  | "malformed"
  | "stall";

export interface ScriptedCall {
  readonly name: string;
  readonly input?: unknown;
  /** The input as the text a model wrote, where it is not JSON. */
  readonly rawInput?: string | undefined;
  readonly id?: string | undefined;
}

/** One answer of the model: thinking, then text, then calls; or exactly the `blocks` given. */
export interface StepAnswer {
  readonly thinking?: string | undefined;
  readonly text?: string | undefined;
  readonly calls?: readonly ScriptedCall[] | undefined;
  readonly blocks?: readonly AssistantBlock[] | undefined;
  readonly stopReason?: StopReason | undefined;
  /** Laid over the estimate. */
  readonly usage?: Partial<Usage> | undefined;
  readonly failure?: StepError | undefined;
  /** Deltas that come before the error. */
  readonly after?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  /** Wait before each delta. */
  readonly delayMs?: number | undefined;
}

export type StepFunction = (request: ModelRequest) => string | StepAnswer | Promise<string | StepAnswer>;

export interface ScriptedStep extends StepAnswer {
  /** Only for requests whose system prompt or last user message contains the text, or that the function accepts. */
  readonly match?: string | ((request: ModelRequest) => boolean) | undefined;
  /** How often the step serves; once unless given. With `any` it never counts as left over. */
  readonly times?: number | "any" | undefined;
  readonly respond?: StepFunction | undefined;
}

export type Step = string | ScriptedStep | StepFunction;

export interface Script {
  /** The answer to a request: from the first step that matches it, else from the next step without `match`. */
  take(request: ModelRequest): Promise<StepAnswer>;
  /** Throws when steps are left or requests found none, and lists them. */
  finish(): void;
}

/** A list of texts, functions and objects such as `{ text, calls }`. */
export const isScript = checks.listOf(
  checks.either(
    "must be a string, a function or an object such as { text, calls }",
    checks.text,
    checks.call,
    checks.thing,
  ),
  "steps",
);

export function createScript(steps: readonly Step[]): Script {
  const entries = steps.map((step, index) => {
    const written = typeof step === "object" ? step : readPlain(step);
    const times = written.times ?? 1;
    return { step: written, number: index + 1, left: times === "any" ? Number.POSITIVE_INFINITY : times };
  });
  const unanswered: string[] = [];
  return {
    async take(request) {
      const open = entries.filter(({ left }) => left > 0);
      const entry =
        open.find(({ step }) => step.match !== undefined && matches(step.match, request)) ??
        open.find(({ step }) => step.match === undefined);
      if (entry === undefined) {
        unanswered.push(describeRequest(request));
        throw mismatch(request, steps.length, open.length);
      }
      entry.left -= 1;
      const { respond, ...answer } = entry.step;
      if (respond === undefined) return answer;
      const made = await respond(request);
      return typeof made === "string" ? { text: made } : made;
    },
    finish() {
      const left = entries.filter(({ left }) => left > 0 && Number.isFinite(left));
      if (left.length === 0 && unanswered.length === 0) return;
      const unused = left.map(({ number, step, left: times }) => {
        return `  step ${number}: ${describeStep(step)}${times > 1 ? ` (${times} times)` : ""}`;
      });
      const parts = [
        ...(unused.length === 0 ? [] : ["Steps that were never asked for:", ...unused]),
        ...(unanswered.length === 0 ? [] : ["Requests that found no step:", ...indent(unanswered)]),
      ];
      throw new RetinueError("script-unfinished", parts.join("\n"), {
        advice: "Take out the steps that are not needed, or find out why the run ended early.",
      });
    },
  };
}

function readPlain(step: string | StepFunction): ScriptedStep {
  return typeof step === "string" ? { text: step } : { respond: step };
}

function matches(match: NonNullable<ScriptedStep["match"]>, request: ModelRequest): boolean {
  if (typeof match === "function") return match(request);
  return [...request.system, lastUserText(request.messages)].some((text) => text.includes(match));
}

/** The last user message as text, results of tools included. */
function lastUserText(messages: readonly Message[]): string {
  const content = messages.findLast(({ role }) => role === "user")?.content ?? "";
  if (typeof content === "string") return content;
  const texts = content.map((block) => {
    if (block.type === "text") return block.text;
    if (block.type !== "tool_result") return "";
    if (typeof block.content === "string") return block.content;
    return block.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  });
  return texts.join("\n");
}

function mismatch(request: ModelRequest, total: number, open: number): ModelError {
  const why =
    open === 0
      ? `all ${total} steps are used`
      : `none of the ${open} steps that are left matches, of ${total} in all`;
  return new ModelError(
    "script-mismatch",
    `The script has no step for ${describeRequest(request)}: ${why}.`,
    {
      advice: "Add a step for this request, or let a step's `match` accept it.",
    },
  );
}

function describeRequest(request: ModelRequest): string {
  const last = lastUserText(request.messages);
  return `the request with ${request.messages.length} messages, last ${brief(last)}, system ${brief(request.system.join(" "))}`;
}

function describeStep(step: ScriptedStep): string {
  const match = typeof step.match === "string" ? `match ${brief(step.match)}, ` : "";
  const calls = step.calls?.map(({ name }) => name).join(", ");
  const parts = [
    step.failure === undefined ? undefined : `error ${step.failure}`,
    step.text === undefined ? undefined : `text ${brief(step.text)}`,
    calls === undefined ? undefined : `calls ${calls}`,
    step.respond === undefined ? undefined : "a function",
  ].filter((part) => part !== undefined);
  return match + (parts.join(", ") || "an empty answer");
}

function brief(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return JSON.stringify(line.length > 120 ? `${line.slice(0, 117)}...` : line);
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
