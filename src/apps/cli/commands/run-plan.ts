import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import { treeLimitsOf } from "../../../planning/limit-plan.ts";
import type { ChildPlan } from "../../../planning/plan-run.ts";
import { readChildPlan } from "../../../planning/read-child-plan.ts";
import { checkSessionOptions } from "../check-session-options.ts";
import { exitCodeOf } from "../end-signal.ts";
import { createPrintRuntime, openPrintSession } from "../print/open-print-session.ts";
import { type PrintOptions, readPrintOptions } from "../print/print-options.ts";
import { createPrinter, printFailure } from "../print/printer.ts";
import type { CommandContext } from "../session-options.ts";

/** `retinue run-plan FILE`: carries out the plan of a child agent in this process, and prints its answer as `-p` does. */
export async function runPlan(context: CommandContext, file: string, options: PrintOptions): Promise<number> {
  const { host } = context;
  checkSessionOptions(context.session, host.cwd);
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const plan = await loadPlan(host, file);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const { closed } = host.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  const there: CommandContext = { ...context, host: { ...host, cwd: plan.sessionDirectory } };
  const tree = treeLimitsOf(plan);
  const own = { ...request.session, sessionId: plan.sessionId, childrenOnly: true, limits: { tree } };
  try {
    await using runtime = createPrintRuntime(there, options);
    await using session = await openPrintSession(runtime, own, signal).catch((error: unknown) => {
      if (!signal.aborted) printFailure(host, { ...request, session: own }, error);
      throw error;
    });
    const handle = session.runPlan(plan);
    // Not as if someone had stopped the agent itself: it can be resumed like one whose process died.
    const end = (): void => void session.close().catch(() => undefined);
    signal.addEventListener("abort", end, { once: true });
    const printer = createPrinter(host, request, session);
    printer.begin();
    for await (const event of handle.events) if (event.type !== "run-ended") printer.show(event);
    const ending = await handle.result;
    printer.end(ending);
    if (stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    return ending.status === "completed" ? 0 : 1;
  } finally {
    forget();
  }
}

/** The plan in a file, or what is piped in for `-`. */
export async function loadPlan(
  { stdin, cwd }: Pick<CommandContext["host"], "stdin" | "cwd">,
  file: string,
): Promise<ChildPlan> {
  const text = file === "-" ? await stdin.readAll({ limit: maxBytes }) : readText(resolve(cwd, file));
  return readPlan(file, text);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RetinueError("plan-unreadable", `The plan could not be read: ${why}`);
  }
}

/** Of a plan that is piped in. */
const maxBytes = 50_000_000;

function readPlan(file: string, text: string): ChildPlan {
  const advice = "`retinue plan NAME --task TEXT --json` writes such a plan, as does `session.planAgent`.";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RetinueError("plan-invalid", `${file} is not valid JSON: ${why}`, { advice });
  }
  const reading = readChildPlan(value);
  if (reading.type === "plan") return reading.plan;
  const { at, expected, found } = reading;
  const where = at === "" ? "the file" : `\`${at}\``;
  throw new RetinueError(
    "plan-invalid",
    `${file} is not the plan of an agent: ${where} must be ${expected}, but it is ${found}.`,
    { advice },
  );
}
