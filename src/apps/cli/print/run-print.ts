import type { UserMessage } from "../../../conversation/message.ts";
import type { RunEnding } from "../../../conversation/run-event.ts";
import { abortable } from "../../../foundation/abort.ts";
import { Fault, isFault } from "../../../foundation/fault.ts";
import { createRuntime, type Runtime } from "../../../runtime/create-runtime.ts";
import type { Session } from "../../../runtime/session.ts";
import { checkSessionOptions } from "../check-session-options.ts";
import { loadAgentsOption, refuseBrokenOption } from "../load-agents-option.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { harmless } from "../views/text-width.ts";
import { type PrintOptions, type PrintRequest, readPrintOptions } from "./print-options.ts";
import { createPrinter, type Printer } from "./printer.ts";
import { noPrompt, readMessages, readPrompt } from "./read-input.ts";

/** `retinue -p`: runs the prompt to its end, prints the result in the asked form, and returns the exit code. */
export async function runPrint(
  context: CommandContext,
  words: readonly string[],
  options: PrintOptions,
): Promise<number> {
  const { host } = context;
  checkSessionOptions(context.session, host.cwd);
  const request = readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  const first = request.input === "text" ? await readPrompt(words, host.stdin) : undefined;
  const stop = new AbortController();
  const forget = host.onInterrupt(() => stop.abort(new Fault("interrupted", "Interrupted.")));
  const { closed } = host.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  try {
    await using runtime = createPrintRuntime(context, options);
    await using session = await openSession(runtime, request, signal);
    const printer = createPrinter(host, request, session);
    const prompts = first === undefined ? readMessages(host.stdin, signal) : once(first);
    const code = await answerAll(session, prompts, { printer, signal });
    return stop.signal.aborted ? 130 : code;
  } catch (error) {
    // A reader that went away has what it wanted.
    if (closed?.aborted === true && !stop.signal.aborted) return 0;
    throw error;
  } finally {
    forget();
  }
}

/** What the runtime finds wrong with a value of an option is a misuse of the command. */
const misuseCodes: ReadonlySet<string> = new Set([
  "bad-session-id",
  "invalid-rule",
  "invalid-schema",
  "invalid-settings",
  "session-conflict",
  "unclear-model",
  "unusable-limit",
  "unusable-tools",
]);

async function openSession(runtime: Runtime, request: PrintRequest, signal: AbortSignal): Promise<Session> {
  try {
    return await abortable(runtime.open(request.session), signal);
  } catch (error) {
    if (isFault(error) && misuseCodes.has(error.code)) throw misuse(error.message, error.advice);
    throw error;
  }
}

async function answerAll(
  session: Session,
  prompts: AsyncIterable<UserMessage["content"]>,
  { printer, signal }: { readonly printer: Printer; readonly signal: AbortSignal },
): Promise<number> {
  let code: number | undefined;
  printer.begin();
  for await (const prompt of prompts) {
    code = Math.max(code ?? 0, await answerOne(session, prompt, { printer, signal }));
    if (signal.aborted) break;
  }
  if (code === undefined && !signal.aborted) throw noPrompt();
  return code ?? 0;
}

async function answerOne(
  session: Session,
  prompt: UserMessage["content"],
  { printer, signal }: { readonly printer: Printer; readonly signal: AbortSignal },
): Promise<number> {
  let ending: RunEnding | undefined;
  for await (const event of session.stream(prompt, signal)) {
    if (event.type === "run-ended") ending = event.ending;
    else printer.show(event);
  }
  if (ending === undefined) throw new Fault("run-without-end", "The run ended without saying how.");
  printer.end(ending);
  if (ending.reason === "reader-gone") return 0;
  return ending.status === "completed" ? 0 : 1;
}

async function* once(prompt: string): AsyncGenerator<UserMessage["content"], void> {
  yield prompt;
}

function createPrintRuntime({ host, session }: CommandContext, options: PrintOptions): Runtime {
  const agents = session.agents === undefined ? undefined : loadAgentsOption(session.agents, host.cwd);
  if (agents?.isBroken === true) throw refuseBrokenOption(agents);
  return createRuntime({
    cwd: host.cwd,
    home: host.home,
    environment: host.environment,
    platform: host.platform,
    entrypoint: "cli",
    ...(agents === undefined ? {} : { agents: agents.definitions }),
    ...(session.settings === undefined ? {} : { settings: session.settings }),
    ...(session.settingSources === undefined ? {} : { settingSources: session.settingSources }),
    ...(session.pluginDir === undefined ? {} : { pluginDirectories: session.pluginDir }),
    ...(session.addDir === undefined ? {} : { additionalDirectories: session.addDir }),
    ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
    ...(session.trust === true ? { trusted: true } : {}),
    transcripts: options.sessionPersistence ?? true,
    notice: (text) => host.stderr.write(`retinue: ${harmless(text)}\n`),
  });
}
