import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ToolResultBlock, ToolUseBlock } from "../conversation/message.ts";
import type { PermissionDenial, RunEvent } from "../conversation/run-event.ts";
import { repeatsOf } from "../tools/json-schema-of.ts";
import type { ToolOutcome } from "../tools/tool.ts";
import {
  type AuthorizedCall,
  authorizeCall,
  type ReadCall,
  type RefusedCall,
  readCall,
} from "./authorize-call.ts";
import type { LoopPorts } from "./loop-ports.ts";

/** What became of the calls of one answer, in the order they were made. */
export interface CallResults {
  readonly blocks: readonly ToolResultBlock[];
  readonly data: Readonly<Record<string, unknown>>;
  readonly denials: readonly PermissionDenial[];
  /** The ids of calls that were answered without being run. */
  readonly notRun: ReadonlySet<string>;
}

/** A tool that does not end with its signal is left behind after this time. */
const graceMs = 3000;
const defaultConcurrency = 10;

/**
 * Authorizes the calls in order. A call that depends on earlier ones is authorized after they have finished; neighbours that
 * may run together do so. Every call is answered, also when the run is stopped.
 */
export async function* callTools(
  calls: readonly ToolUseBlock[],
  ports: LoopPorts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, CallResults> {
  const queue = createAsyncQueue<RunEvent>();
  const work = runAll(calls, { ports, signal, queue }).finally(() => queue.end());
  // The queue is drained first; a rejection in the meantime must not count as unhandled.
  work.catch(() => undefined);
  yield* queue;
  return await work;
}

interface Work {
  readonly ports: LoopPorts;
  readonly signal: AbortSignal;
  readonly queue: AsyncQueue<RunEvent>;
}

interface Finished {
  readonly call: ToolUseBlock;
  readonly outcome: ToolOutcome;
  readonly denied?: string;
  readonly notRun?: true;
}

async function runAll(calls: readonly ToolUseBlock[], work: Work): Promise<CallResults> {
  const finished: Finished[] = [];
  const { ports, signal } = work;
  const read = calls.map((call) => readCall(call, ports));
  ports.beforeCalls?.(read.filter((call) => call.type === "read"));
  // Calls that look as if they may all run together; whether they may is known when they are authorized.
  const lists: (ReadCall | RefusedCall)[][] = [];
  let isOpen = false;
  for (const call of read) {
    const joins = mayRunBeside(call);
    if (isOpen && joins) lists.at(-1)?.push(call);
    else lists.push([call]);
    isOpen = joins;
  }
  for (const neighbours of lists) {
    // What passed since the call before was decided, so that no time counts twice.
    let since = ports.now();
    let before: Promise<unknown> | undefined;
    // Hooks of all of them run at the same time; rules and people decide in the order of the calls.
    const authorizations = neighbours.map((call) => {
      const earlier = before;
      const turn = earlier === undefined ? {} : { turn: async () => void (await earlier) };
      const authorization =
        call.type === "refused" ? Promise.resolve(call) : authorizeCall(call, ports, { signal, ...turn });
      before = authorization;
      return authorization.then(async (answer) => {
        await earlier;
        const start = since;
        since = ports.now();
        return { ...answer, decidedMs: since - start };
      });
    });
    const authorized = await Promise.all(authorizations);
    // Neighbours that may run beside each other; every other call is a group of its own.
    const groups: (AuthorizedCall | RefusedCall)[][] = [];
    for (const call of authorized) {
      const last = groups.at(-1);
      // A group holds either calls that may all run together, or one that may not.
      const [first] = last ?? [];
      const joins = first !== undefined && mayRunBeside(first) && mayRunBeside(call);
      if (joins) last?.push(call);
      else groups.push([call]);
    }
    for (const [at, group] of groups.entries()) {
      // Calls before these have run since they were decided about.
      const current =
        at === 0 ? await recheckEarlier(group, authorized) : await Promise.all(group.map(rechecked));
      finished.push(...(await runBeside(current, work)));
    }
  }
  const blocks = finished.map(
    ({ call, outcome }): ToolResultBlock => ({
      type: "tool_result",
      tool_use_id: call.id,
      content: shownContent(outcome),
      ...(outcome.isError ? { is_error: true } : {}),
    }),
  );
  const data = finished.flatMap(({ call, outcome }) =>
    outcome.data === undefined ? [] : [[call.id, outcome.data] as const],
  );
  const denials = finished.flatMap(({ call, denied }) =>
    denied === undefined ? [] : [{ call, reason: denied }],
  );
  const notRun = new Set(finished.flatMap(({ call, notRun }) => (notRun === true ? [call.id] : [])));
  return { blocks, data: Object.fromEntries(data), denials, notRun };
}

/** The question about a later call took time; what was decided before that may not hold any more. */
function recheckEarlier(
  group: readonly (AuthorizedCall | RefusedCall)[],
  all: readonly (AuthorizedCall | RefusedCall)[],
): Promise<readonly (AuthorizedCall | RefusedCall)[]> {
  const lastAsked = all.findLastIndex(
    (call) =>
      call.asked === true ||
      (call.type === "authorized" && /^(?:hook|person|program)$/.test(call.allowedBy ?? "")),
  );
  return Promise.all(group.map((call, at) => (at < lastAsked ? rechecked(call) : call)));
}

async function rechecked(call: AuthorizedCall | RefusedCall): Promise<AuthorizedCall | RefusedCall> {
  if (call.type === "refused" || call.recheck === undefined) return call;
  const reason = await call
    .recheck()
    .catch((error: unknown) => `deciding about it again failed: ${String(error)}`);
  if (reason === undefined) return call;
  const { asked, approval, decidedMs } = call;
  return {
    type: "refused",
    call: call.call,
    reason,
    denied: true,
    asked,
    approval,
    decidedMs,
  };
}

/** Runs a group with so many calls at the same time as its tools take; whenever one ends, the next in order begins. */
async function runBeside(group: readonly (AuthorizedCall | RefusedCall)[], work: Work): Promise<Finished[]> {
  const finished: Finished[] = [];
  const waiting = group.entries();
  const runNext = async (): Promise<void> => {
    for (const [index, call] of waiting) finished[index] = await runOne(call, work);
  };
  const concurrency = Math.max(
    ...group.map((call) =>
      call.type === "refused" ? 0 : (call.tool.concurrency ?? work.ports.concurrency ?? defaultConcurrency),
    ),
  );
  await Promise.all(Array.from({ length: Math.min(Math.max(concurrency, 1), group.length) }, runNext));
  return finished;
}

function mayRunBeside(call: ReadCall | AuthorizedCall | RefusedCall): boolean {
  if (call.type === "refused") return true;
  return call.tool.isConcurrencySafe?.(call.input) ?? call.tool.effect === "read";
}

async function runOne(authorized: AuthorizedCall | RefusedCall, work: Work): Promise<Finished> {
  const { call, asked, approval, decidedMs = 0 } = authorized;
  const { ports, signal, queue } = work;
  const deciding = {
    decidedMs,
    ...(asked === true ? { asked } : {}),
    approval,
  };
  if (authorized.type === "refused") {
    const { reason, denied } = authorized;
    const denial = denied ? { denied: reason } : {};
    const outcome = { content: reason, isError: true };
    queue.push({ type: "call-finished", call, durationMs: 0, ...outcome, ...deciding, ...denial });
    return { call, outcome, notRun: true, ...denial };
  }
  if (signal.aborted) return { call, outcome: { content: notStarted, isError: true }, notRun: true };
  const { allowedBy, reason } = authorized;
  const allowed =
    allowedBy === undefined || reason === undefined ? {} : { allowed: { by: allowedBy, reason } };
  // Nothing may happen of which no record would be left; calls that only look need none.
  const unrecorded =
    repeatsOf(authorized.tool) === "pure"
      ? undefined
      : await ports.commit?.().then(
          () => undefined,
          (error: unknown) =>
            `This call was not run, because it could not be recorded: ${error instanceof Error ? error.message : String(error)}`,
        );
  const start = ports.now();
  if (unrecorded !== undefined) {
    queue.push({
      type: "call-finished",
      call,
      durationMs: 0,
      isError: true,
      content: unrecorded,
      ...deciding,
    });
    return { call, outcome: { content: unrecorded, isError: true } };
  }
  queue.push({ type: "call-started", call, effect: authorized.tool.effect });
  const { tool, input } = authorized;
  const own = await runTool(authorized, work);
  const durationMs = ports.now() - start;
  let outcome = own;
  try {
    outcome = (await ports.afterCall?.({ call, tool, input }, own, { signal, durationMs })) ?? own;
  } catch {
    // The call has had its effect, so a listener that fails afterwards does not take its result away.
  }
  const data = outcome.data === undefined ? {} : { data: outcome.data };
  const isError = outcome.isError ?? false;
  const content = shownContent(outcome);
  queue.push({ type: "call-finished", call, isError, content, durationMs, ...deciding, ...allowed, ...data });
  return { call, outcome };
}

async function runTool(authorized: AuthorizedCall, work: Work): Promise<ToolOutcome> {
  const { call, tool, input, paths, allowedBy, run } = authorized;
  const { ports, signal, queue } = work;
  const progress = (text: string): void => queue.push({ type: "call-progressed", callId: call.id, text });
  using limited = ports.limits?.limitCall?.({ call, tool, input }, signal);
  const own = limited?.signal ?? signal;
  const brokenOff = (): ToolOutcome =>
    own.aborted && !signal.aborted
      ? failed(own.reason)
      : {
          content: "This call was interrupted before it finished; it may have had part of its effect.",
          isError: true,
        };
  try {
    const decided = {
      approvedPaths: paths,
      allowedBy,
      judged: run,
    };
    const running = tool.call(input, ports.toolContext(call.id, { signal: own, progress, ...decided }));
    const outcome = await settleWithin(running, own, brokenOff);
    // A tool that broke off because its time was up may not say so itself; one that was done in time keeps its result.
    if (outcome.isError !== true || !own.aborted) return outcome;
    // What it says itself of that, such as which agent it had started, is not lost.
    const { content } = outcome;
    const text = String(brokenOff().content);
    return {
      ...outcome,
      content:
        typeof content === "string" ? `${content}\n\n${text}`.trim() : [...content, { type: "text", text }],
    };
  } catch (error) {
    return own.aborted ? brokenOff() : failed(error);
  }
}

/** Waits for the tool; once the run is stopped, only a little longer. */
async function settleWithin(
  running: Promise<ToolOutcome>,
  signal: AbortSignal,
  brokenOff: () => ToolOutcome,
): Promise<ToolOutcome> {
  let timer: NodeJS.Timeout | undefined;
  let leaveSoon: (() => void) | undefined;
  const abandoned = new Promise<ToolOutcome>((resolve) => {
    leaveSoon = () => {
      timer = setTimeout(() => resolve(brokenOff()), graceMs);
    };
    if (signal.aborted) leaveSoon();
    else signal.addEventListener("abort", leaveSoon, { once: true });
  });
  try {
    return await Promise.race([running, abandoned]);
  } finally {
    if (leaveSoon !== undefined) signal.removeEventListener("abort", leaveSoon);
    clearTimeout(timer);
    running.catch(() => undefined);
  }
}

const notStarted =
  "This call has not run: the run was stopped before it began. Make it again if it is still needed.";

function failed(error: unknown): ToolOutcome {
  const message = error instanceof Error ? error.message : String(error);
  const advice = isRetinueError(error) && error.advice !== undefined ? `\n${error.advice}` : "";
  return { content: `${message}${advice}`, isError: true };
}

/** Providers refuse a result without content. */
function shownContent({ content }: ToolOutcome): ToolOutcome["content"] {
  return content.length === 0 ? "(no output)" : content;
}

/** Hands values from the callers of `push` to one reader. Pushing never waits; ending lets the reader drain what is left. */
export interface AsyncQueue<T> extends AsyncIterable<T> {
  push(value: T): void;
  end(): void;
}

export function createAsyncQueue<T>(): AsyncQueue<T> {
  const values: T[] = [];
  let ended = false;
  let wake: (() => void) | undefined;
  const notify = (): void => {
    wake?.();
    wake = undefined;
  };
  return {
    push(value) {
      if (ended) return;
      values.push(value);
      notify();
    },
    end() {
      ended = true;
      notify();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        while (values.length > 0) yield values.shift() as T;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
