import type { MergeOptions } from "@retinue/core/kernel/merge/merge-options.ts";
import { startMerge } from "@retinue/core/kernel/merge/start-merge.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { MergeEvent, MergeQueue } from "@retinue/core/protocol/merge-step.ts";
import { emptyQueue, foldMerge } from "@retinue/core/protocol/merge-step.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import {
  describeEntry,
  describeHeading,
  describeOutcome,
  describeQueue,
  describeReason,
  entryDone,
  type MergeStyle,
} from "../shared/describe-merge.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../shared/open-print-session.ts";
import { createPaint } from "../shared/paint.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

export interface MergeCommandOptions extends RunFlags {
  readonly into?: string;
  readonly check?: readonly string[];
  readonly unchecked?: boolean;
  readonly only?: readonly string[];
  readonly resolver?: string;
  readonly apply?: boolean;
  readonly discard?: readonly string[];
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const defaultWidth = 80;

/** `retinue merge [SESSION]`: brings the changes of a session's children back, checked and in order. */
export async function merge(
  context: CommandContext,
  words: readonly string[],
  options: MergeCommandOptions,
): Promise<number> {
  const { host } = context;
  const { into, check, unchecked, only, resolver, apply, discard, dryRun } = options;
  if (
    discard !== undefined &&
    [into, check, unchecked, only, resolver, apply, dryRun].some((option) => option !== undefined)
  )
    throw misuse("--discard removes children and merges nothing.", "Leave the other options out.");
  if (unchecked === true && check !== undefined)
    throw misuse("--unchecked runs no checks, and --check names one.", "Write one of the two.");
  const empty = (check ?? []).find((command) => command.trim() === "");
  if (empty !== undefined)
    throw misuse("--check needs a command.", "Write, for example, --check 'npm test'.");
  const asked: MergeOptions = {
    into,
    checks: unchecked === true ? [] : check,
    only,
    resolver: resolver === "none" ? false : resolver,
    apply,
    discard,
    dryRun,
  };
  const { check: _check, ...flags } = options;
  const request = readPrintOptions(flags, { words: [], cwd: host.cwd, session: context.session });
  const written = words.length === 0 ? undefined : words.join(" ");
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    await using runtime = createPrintRuntime(context, options, {
      canUseTool: decideChecks(host, options.check ?? []),
    });
    const own = {
      ...request.session,
      childrenOnly: true,
      // Only a conflict needs a model.
      offlineDemo: true,
      ...(options.dryRun === true ? { planOnly: true } : {}),
    };
    await using session = await openPrintSession(runtime, own, stop.signal);
    const handle = startMerge(
      "merge",
      { parts: session.mergeParts, session: { written }, end: stop.signal },
      asked,
    );
    const shown = options.json === true || options.dryRun === true ? undefined : follow(handle.events, host);
    const queue = await handle.result;
    await shown;
    show(queue, { host, options });
    if (queue.status === "stopped" && stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    const isLeft = queue.entries.some(({ state }) => state === "left");
    return options.dryRun !== true && (isLeft || queue.notApplied !== undefined) ? 1 : 0;
  } catch (error) {
    if (stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    throw error;
  } finally {
    forget();
    host.endQuestions();
  }
}

/** A check that the person has written on the command line is allowed by that, as far as no rule denies it; others are asked about. */
function decideChecks(host: CliHost, written: readonly string[]): NonNullable<RuntimeOptions["canUseTool"]> {
  const answers = new Map<string, Promise<boolean>>();
  return async (tool, input, { agentId }) => {
    const command = input["command"];
    if (tool !== "Bash" || agentId !== "merge" || typeof command !== "string") return { behavior: "ask" };
    if (written.includes(command)) return { behavior: "allow" };
    if (!host.canAsk)
      return {
        behavior: "deny",
        message: "no allow rule matches and no one can be asked; pass it with --check",
      };
    const known = answers.get(command) ?? askAbout(host, command);
    answers.set(command, known);
    return (await known) ? { behavior: "allow" } : { behavior: "deny", message: "you did not allow it" };
  };
}

async function askAbout(host: CliHost, command: string): Promise<boolean> {
  const answer = await host.ask(
    `Run the check \`${stripControlCharacters(command)}\` after each change? [y/N] `,
  );
  return /^y(?:es)?$/i.test(answer.trim());
}

/** A line for each child as it is done; in a terminal also what is done now, in a line that is written over. */
async function follow(events: AsyncIterable<MergeEvent>, host: CliHost): Promise<void> {
  const { stdout } = host;
  const style = styleOf(host);
  let queue = emptyQueue;
  let isBusyShown = false;
  const write = (lines: readonly string[], isBusy: boolean): void => {
    if (lines.length === 0 || (isBusy && !stdout.isTerminal)) return;
    stdout.write(`${lines.join("\n")}\n`, isBusyShown ? { over: 1 } : {});
    isBusyShown = isBusy;
  };
  try {
    for await (const event of events) {
      queue = foldMerge(queue, event);
      if (event.type === "started" && event.into !== "") write([describeHeading(queue)], false);
      if (!("agent" in event)) continue;
      const entry = queue.entries.find(({ agent }) => agent === event.agent);
      if (entry === undefined) continue;
      const isDone = entryDone(event, queue) !== undefined;
      write([describeEntry(entry, style), ...describeReason(entry)], !isDone);
    }
  } catch {
    // The result shows why.
  }
}

function show(
  queue: MergeQueue,
  { host, options }: { readonly host: CliHost; readonly options: MergeCommandOptions },
): void {
  const { stdout } = host;
  if (options.json === true) {
    stdout.write(`${JSON.stringify({ version: 1, ...queue }, undefined, 2)}\n`);
    return;
  }
  if (options.dryRun === true) {
    stdout.write(
      `${[describeHeading(queue), ...describeQueue(queue, styleOf(host)), "Nothing was changed."].join("\n")}\n`,
    );
    return;
  }
  if (options.discard !== undefined) {
    const gone = queue.entries.filter(({ state }) => state === "discarded");
    for (const { branch, tip = "" } of gone)
      stdout.write(
        `${stripControlCharacters(branch)} was at ${tip}; \`git branch NAME ${tip.slice(0, 12)}\` brings it back for some time.\n`,
      );
    return;
  }
  stdout.write(
    `${describeOutcome(queue, options.apply === true ? {} : { applyWith: "retinue merge --apply" }).join("\n")}\n`,
  );
}

function styleOf({ stdout }: CliHost): MergeStyle {
  return { paint: createPaint(stdout.isColourAllowed), width: stdout.columns ?? defaultWidth };
}
