import { readFileSync, realpathSync } from "node:fs";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { checkWorkingFolder } from "@retinue/base/foundation/find-working-folder.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { planWithin } from "@retinue/core/kernel/plan-within.ts";
import { type ChildPlan, readAgentPlan, treeLimitsOf } from "@retinue/core/kernel/project/plan-origins.ts";
import { createPrinter, printFailure } from "../print/create-printer.ts";
import { codeOfEnding } from "../shared/code-of-ending.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { plannedFlag, type RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../shared/open-print-session.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { readAcceptedRights } from "../shared/read-accepted-rights.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

/** `retinue run-plan FILE`: carries out the plan of a child agent in this process, and prints its answer as `-p` does. */
export async function runPlan(
  context: CommandContext,
  file: string,
  options: RunFlags & { readonly acceptRights?: string },
): Promise<number> {
  const { host } = context;
  const accepts = readAcceptedRights(options.acceptRights);
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const idle = plannedFlag(options);
  if (idle !== undefined)
    throw misuse(
      `${idle} has no effect on a plan, which has decided that.`,
      "Give it to `retinue plan`; --disallowedTools, --max-time and --max-budget-usd narrow a plan here.",
    );
  const plan = await loadPlan(host, file, options);
  await checkWorkingFolder(plan.directory);
  refuseOtherFolder(plan, host.cwd);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const { closed } = host.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  const there: CommandContext = { ...context, host: { ...host, cwd: plan.sessionDirectory } };
  const tree = treeLimitsOf(plan, request.session.limits?.tree?.seconds);
  const own = { ...request.session, sessionId: plan.sessionId, childrenOnly: true, limits: { tree } };
  try {
    await using runtime = createPrintRuntime(there, options);
    await using session = await openPrintSession(runtime, own, signal).catch((error: unknown) => {
      if (!signal.aborted) printFailure(host, { ...request, session: own }, error);
      throw error;
    });
    const within = await planWithin(plan, session, accepts);
    for (const note of within.notes.filter((text) => !plan.notes.includes(text)))
      host.stderr.write(`retinue: ${stripControlCharacters(note)} See --accept-rights.\n`);
    const handle = session.runPlan(within);
    // Not as if someone had stopped the agent itself: it can be resumed like one whose process died.
    const end = (): void => void session.close().catch(() => undefined);
    signal.addEventListener("abort", end, { once: true });
    const printer = createPrinter(host, request, session);
    printer.begin();
    for await (const event of handle.events) if (event.type !== "run-ended") printer.show(event);
    const ending = await handle.result;
    printer.end(ending);
    if (stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    return codeOfEnding(ending);
  } catch (error) {
    throw hasRunBefore(error, plan) ? carriedOut(plan) : error;
  } finally {
    forget();
  }
}

/** The caller of the command decides where it works; a file could name any folder, and what is in it would be read without asking. */
function refuseOtherFolder({ sessionDirectory }: ChildPlan, cwd: string): void {
  const planned = realpathSync(sessionDirectory);
  const below = relative(realpathSync(cwd), planned);
  if (below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below)) return;
  throw misuse(
    `The plan is for ${planned}, which is not below the current folder.`,
    "Read it, then run it in that folder if that is meant.",
  );
}

/** The transcript of a new agent is there already. */
function hasRunBefore(error: unknown, { task }: ChildPlan): boolean {
  return isRetinueError(error) && error.code === "file-changed" && !task.resumed;
}

function carriedOut({ agent }: ChildPlan): RetinueError {
  return new RetinueError("plan-carried-out", `This plan was carried out before, as the agent ${agent.id}.`, {
    advice: `\`retinue resume ${agent.id}\` continues it; \`retinue plan\` makes a new plan.`,
  });
}

/** The plan in a file, or what is piped in for `-`; one that bypasses permissions only where that is asked for here. */
export async function loadPlan(
  { stdin, cwd }: Pick<CommandContext["host"], "stdin" | "cwd">,
  file: string,
  options: Pick<RunFlags, "dangerouslySkipPermissions">,
): Promise<ChildPlan> {
  const text = file === "-" ? await stdin.readAll({ limit: maxBytes }) : readText(resolve(cwd, file));
  const plan = readPlan(file, text);
  refuseUnaskedBypass(plan, options);
  return plan;
}

/** No file alone bypasses permissions, and a plan is a file. */
function refuseUnaskedBypass(
  { policy }: ChildPlan,
  options: Pick<RunFlags, "dangerouslySkipPermissions">,
): void {
  if (policy.mode !== "bypassPermissions" || options.dangerouslySkipPermissions === true) return;
  throw misuse(
    "The plan bypasses permissions, which no file can say alone.",
    "Read it, then add --dangerously-skip-permissions if that is meant.",
  );
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
  const reading = readAgentPlan(value, "child");
  if (reading.type === "plan") return reading.plan;
  const { at, expected, found } = reading;
  const where = at === "" ? "the file" : `\`${at}\``;
  throw new RetinueError(
    "plan-invalid",
    `${file} is not the plan of an agent: ${where} must be ${expected}, but it is ${found}.`,
    { advice },
  );
}
