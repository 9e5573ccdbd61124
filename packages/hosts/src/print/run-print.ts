import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "@retinue/core/conversation/agent-event.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { AgentTree, TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { runPrompt } from "@retinue/core/kernel/agent-tree.ts";
import { sessionRecord } from "@retinue/core/kernel/session-record.ts";
import { thrownError } from "@retinue/core/kernel/turn-driver.ts";
import { isRunEvent } from "@retinue/core/protocol/agent-event.ts";
import type { AgentState } from "@retinue/core/protocol/agent-state.ts";
import { checkAgentSdkOptions, sdkSessionOptions } from "../shared/agent-sdk-options.ts";
import type { CliHost, CliInput } from "../shared/cli-host.ts";
import { codeOfEnding } from "../shared/code-of-ending.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { debugLine } from "../shared/debug-line.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import {
  createNotice,
  createPrintRuntime,
  openPrintTree,
  refuseKeyless,
} from "../shared/open-print-session.ts";
import { type PrintRequest, readPrintOptions } from "../shared/print-options.ts";
import { reportInterruption } from "../shared/report-interruption.ts";
import { worktreeOption } from "../shared/worktree-option.ts";
import { createTextPrinter, type Printer } from "./printer.ts";

/** `retinue -p`: runs the prompt to its end, prints the result in the asked form, and returns the exit code. */
export async function runPrint(
  context: CommandContext,
  words: readonly string[],
  options: RunFlags,
): Promise<number> {
  const { host } = context;
  const request = readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  refuseTakingNothing(options);
  if (request.output !== "text") return printForProgram(context, words, { options, request });
  const { thinkingTokens, notes } = checkAgentSdkOptions(options, { isForProgram: false });
  for (const note of notes) host.stderr.write(`retinue: ${note}\n`);
  const first = request.input === "text" ? await readPrompt(words, host.stdin) : undefined;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const { closed } = host.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  try {
    const { code, tree } = await runSession(context, { request, options, first, signal, thinkingTokens });
    if (isReaderGone(closed)) host.stderr.write(`${readerGone(tree.sessionId, options.approvals, host)}\n`);
    if (!stop.signal.aborted) return code;
    reportStopped(
      tree.facts,
      { reason: stop.signal.reason, approvals: options.approvals, tasks: tree.list() },
      host,
    );
    return exitCodeOf(stop.signal.reason);
  } catch (error) {
    // A reader that went away has what it wanted.
    if (isReaderGone(closed) && !stop.signal.aborted) return 0;
    throw error;
  } finally {
    forget();
  }
}

/** What programs read is made by the program for hosts, so that it is the same with and without one. */
async function printForProgram(
  context: CommandContext,
  words: readonly string[],
  { options, request }: Pick<PrintRun, "options" | "request">,
): Promise<number> {
  const { host } = context;
  const prompt = request.input === "text" ? await readPrompt(words, host.stdin) : undefined;
  const { printMessages } = await import("../agent-sdk/print-messages.ts");
  return printMessages(context, prompt, {
    options,
    request,
    report({ host: { current }, stop }, closed) {
      const opened = current();
      if (opened === undefined) return;
      const { session, tree } = opened;
      const { approvals } = options;
      if (isReaderGone(closed)) host.stderr.write(`${readerGone(session.plan.sessionId, approvals, host)}\n`);
      if (stop.signal.aborted)
        reportStopped(session, { reason: stop.signal.reason, approvals, tasks: tree.list() }, host);
    },
  });
}

interface PrintRun {
  readonly request: PrintRequest;
  readonly options: RunFlags;
  readonly thinkingTokens: number | undefined;
  /** The prompt; absent where messages are read instead. */
  readonly first: string | undefined;
  readonly signal: AbortSignal;
}

/** The tree comes back when it is over, with what it reports of its end. */
async function runSession(
  context: CommandContext,
  { request, options, first, signal, thinkingTokens }: PrintRun,
): Promise<{ readonly code: number; readonly tree: AgentTree }> {
  const { host } = context;
  const reported = new Set<string>();
  const notice = createNotice(host, reported);
  let printer: Printer | undefined;
  await using runtime = createPrintRuntime(context, options, { onWarning: notice });
  await using tree = await openPrintTree({
    runtime,
    session: { ...request.session, ...sdkSessionOptions(options) },
    signal,
    effort: thinkingTokens,
    live: { transcript: { title: options.name } },
    onEvent(event) {
      if (event.type === "notice") notice(event.text);
      if (!isRunEvent(event) || printer === undefined) return;
      if (event.agentId === mainAgentId) {
        if (event.type !== "run-ended") printer.show(event);
        return;
      }
      printer.showChild?.(event, () => tree.get(event.agentId)?.state());
    },
  });
  const { facts } = tree;
  if (!host.stdout.isTerminal) refuseKeyless(facts, host.environment);
  const budget = request.session.maxBudgetUsd;
  const prompts = first === undefined ? readMessages(host.stdin, signal) : once(first);
  const shown = writingDown(context, createTextPrinter(host, facts, { reported, budget }));
  context.debug?.(`session ${tree.sessionId}, model ${facts.plan.model.value}`);
  printer = shown;
  const code = await answerAll(tree, prompts, { printer: shown, signal }).finally(() => {
    printer = undefined;
  });
  return { code, tree };
}

/** With `--debug-file`, what happens goes there too. */
function writingDown({ debug }: CommandContext, printer: Printer): Printer {
  if (debug === undefined) return printer;
  return {
    ...printer,
    show(event) {
      const line = debugLine(event);
      if (line !== undefined) debug(line);
      printer.show(event);
    },
    end(ending) {
      debug(debugLine({ type: "run-ended", ending }) ?? "");
      printer.end(ending);
    },
  };
}

function reportStopped(
  { plan, discovered }: Pick<TreeFacts, "plan" | "discovered">,
  {
    reason,
    approvals,
    tasks,
  }: {
    readonly reason: unknown;
    readonly approvals: string | undefined;
    readonly tasks: readonly AgentState[];
  },
  host: CliHost,
): void {
  const { transcript } = sessionRecord({ discovered, plan });
  const command = `${resumeCommand(plan.sessionId, approvals, host)} "Continue."`;
  reportInterruption({ reason, tasks, command, transcript }, host.stderr);
}

/** Without `--approvals wait`, a call that waits for an answer would be refused. */
function resumeCommand(sessionId: string, approvals: string | undefined, host: CliHost): string {
  return `retinue -p${worktreeOption(host)} --resume ${sessionId}${approvals === "wait" ? " --approvals wait" : ""}`;
}

function isReaderGone(closed: AbortSignal | undefined): boolean {
  return closed?.aborted === true && isRetinueError(closed.reason) && closed.reason.code === "reader-gone";
}

function readerGone(sessionId: string, approvals: string | undefined, host: CliHost): string {
  return `retinue: The output is no longer being read, so the run was stopped. Resume it with \`${resumeCommand(sessionId, approvals, host)}\`.`;
}

function refuseTakingNothing({ takeOver, resume, continue: continues, forkSession }: RunFlags): void {
  if (takeOver !== true) return;
  if (forkSession === true)
    throw misuse("A copy does not change the session, so there is nothing to take over.");
  if (resume === undefined && continues !== true)
    throw misuse("--take-over needs a session.", "Add --resume SESSION or --continue.");
}

async function answerAll(
  tree: AgentTree,
  prompts: AsyncIterable<UserMessage["content"]>,
  { printer, signal }: { readonly printer: Printer; readonly signal: AbortSignal },
): Promise<number> {
  let code: number | undefined;
  printer.begin();
  for await (const prompt of prompts) {
    code = Math.max(code ?? 0, await answerOne(tree, prompt, { printer, signal }));
    if (signal.aborted) break;
  }
  if (code === undefined && !signal.aborted) throw noPrompt();
  return code ?? 0;
}

async function answerOne(
  tree: AgentTree,
  content: UserMessage["content"],
  { printer, signal }: { readonly printer: Printer; readonly signal: AbortSignal },
): Promise<number> {
  const outcome = await runPrompt(tree, { content }, signal);
  if (outcome.outcome === "withdrawn") throw signal.reason;
  if (outcome.outcome === "failed") {
    const error = thrownError(outcome.error);
    if (!signal.aborted) printer.fail(error);
    throw error;
  }
  const { ending } = outcome;
  printer.end(ending);
  if (ending.reason === "reader-gone") return 0;
  return codeOfEnding(ending);
}

async function* once(prompt: string): AsyncGenerator<UserMessage["content"], void> {
  yield prompt;
}

/** A pipe that stays silent this long beside a prompt in the arguments has nothing to add. */
const timeoutMs = 2000;
const largestPrompt = 10 * 1024 * 1024;

/** The prompt: the arguments, what is piped in, or both; else the usual one, where there is one. */
export async function readPrompt(words: readonly string[], stdin: CliInput, usual?: string): Promise<string> {
  const given = words.join(" ").trim();
  const isAnswered = given !== "" || usual !== undefined;
  const piped = stdin.isTerminal
    ? ""
    : (await stdin.readAll({ limit: largestPrompt, ...(isAnswered ? { timeoutMs } : {}) })).trim();
  const prompt = [given, piped].filter((part) => part !== "").join("\n\n");
  if (prompt !== "") return prompt;
  if (usual !== undefined) return usual;
  throw noPrompt();
}

export function noPrompt(): RetinueError {
  return misuse("No prompt was given.", 'Pass one, as in: retinue -p "what is in this folder?"');
}

/** The user messages of `--input-format stream-json`, one per line; other types are skipped. */
export async function* readMessages(
  stdin: CliInput,
  signal: AbortSignal,
): AsyncGenerator<UserMessage["content"], void> {
  let number = 0;
  for await (const line of stdin.lines({ signal })) {
    number += 1;
    if (line.trim() === "") continue;
    const content = contentOf(parseLine(line, number), number);
    if (content !== undefined) yield content;
  }
}

function parseLine(line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new RetinueError("bad-input", `Line ${number} of the input is not JSON.`, {
      advice: 'Write one message per line: {"type":"user","message":{"role":"user","content":"…"}}.',
    });
  }
}

function contentOf(value: unknown, number: number): UserMessage["content"] | undefined {
  if (typeof value !== "object" || value === null || Reflect.get(value, "type") !== "user") return undefined;
  const message: unknown = Reflect.get(value, "message");
  const content: unknown =
    typeof message === "object" && message !== null ? Reflect.get(message, "content") : undefined;
  if (typeof content === "string") return content;
  if (Array.isArray(content) && content.length > 0 && content.every(isBlock)) return content;
  throw new RetinueError("bad-input", `Line ${number} of the input has no message content.`, {
    advice: '"content" must be a string or a list of content blocks.',
  });
}

type UserContentBlock = Exclude<UserMessage["content"], string>[number];

function isBlock(value: unknown): value is UserContentBlock {
  return (
    typeof value === "object" &&
    value !== null &&
    ["text", "image", "document"].includes(String(Reflect.get(value, "type")))
  );
}
