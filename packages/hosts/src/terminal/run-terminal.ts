import type { ReadStream, WriteStream } from "node:tty";
import { setFlagsFromString } from "node:v8";
import type { CommandContext } from "../shared/command-context.ts";
import { endSignals, exitCodeOf } from "../shared/end-signal.ts";
import type { RunFlags } from "../shared/flags.ts";
import { formatCost, formatDuration, plural } from "../shared/format.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { worktreeOption } from "../shared/worktree-option.ts";
import { TerminalApp } from "./app/terminal-app.ts";
import { askAboutLock } from "./ask-about-lock.ts";
import { type Capabilities, findCapabilities } from "./screen/capabilities.ts";
import { TerminalDevice } from "./screen/terminal-device.ts";
import { RuntimeSession } from "./session/runtime-session.ts";
import { fileNamesFrom } from "./text/row-context.ts";

/**
 * `retinue` on a terminal: a conversation until the person leaves; with `-p`, one prompt to its end, with questions and the tree
 * of agents. Returns the exit code.
 */
export async function runTerminal(
  context: CommandContext,
  words: readonly string[],
  options: RunFlags,
  { follows = false }: { readonly follows?: boolean } = {},
): Promise<number> {
  const { host } = context;
  // Leaves the part of the heap for young objects as small as it is at the start. It would grow to thirty times that in a long
  // session, for a speed that no one notices between two requests; what survives is a matter of the old part either way.
  setFlagsFromString("--semi-space-growth-factor=1");
  await askAboutLock(context);
  const request = readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  const capabilities = findCapabilities(host.environment, {
    plain: options.plain === true,
    colours: host.stdout.isColourAllowed,
  });
  const leaving = Promise.withResolvers<unknown>();
  const isOnce = options.print === true;
  const session = new RuntimeSession({
    context,
    session: request.session,
    isOnce,
    asks: options.ask !== false,
    hidesKeys: !capabilities.isPlain,
    follows,
    async createRuntime(more) {
      const { createPrintRuntime } = await import("../shared/open-print-session.ts");
      return createPrintRuntime(context, options, more);
    },
  });
  const face = await openFace(context, {
    session,
    capabilities,
    isOnce,
    leave: () => leaving.resolve(undefined),
  });
  const summary = isOnce ? followOnce(session, leaving.resolve) : undefined;
  const crash = (error: unknown): void => leaving.reject(error);
  process.on("uncaughtException", crash);
  const forget = host.onInterrupt((reason) => leaving.resolve(reason));
  if (words.length > 0) session.submit(words.join(" "));
  try {
    await face.open();
    // Loading the runtime takes longer than all before; what was painted is on its way to the terminal by then.
    setImmediate(() => session.open().catch(leaving.reject));
    const reason = await leaving.promise;
    if (typeof reason === "number") return reason;
    return reason === undefined ? 0 : exitCodeOf(reason);
  } finally {
    const closing = session.closing();
    await face.close();
    await disposeSoon(session);
    if (summary === undefined) printClosing(closing, context);
    else host.stdout.write(summary(closing.sessionId));
    forget();
    process.off("uncaughtException", crash);
    host.leaveSoon?.();
  }
}

/** How the conversation is shown: painted, or as lines. */
interface TerminalView {
  open(): Promise<void> | void;
  close(): Promise<void> | void;
}

interface TerminalViewOptions {
  readonly session: RuntimeSession;
  readonly capabilities: Capabilities;
  readonly isOnce: boolean;
  readonly leave: () => void;
}

async function openFace(
  { host }: CommandContext,
  { session, capabilities, isOnce, leave }: TerminalViewOptions,
): Promise<TerminalView> {
  if (capabilities.isPlain) {
    const { PlainApp } = await import("./plain/plain-app.ts");
    return new PlainApp({
      session,
      input: process.stdin,
      write: (text) => host.stdout.write(text),
      columns: () => host.stdout.columns ?? 80,
      fileName: fileNamesFrom(host),
      now: Date.now,
      onExit: leave,
    });
  }
  // Both are terminals here, or this would not run.
  const streams = { input: process.stdin as ReadStream, output: process.stdout as WriteStream };
  return new TerminalApp({
    device: new TerminalDevice(streams, capabilities),
    capabilities,
    session,
    isOnce,
    environment: host.environment,
    fileName: fileNamesFrom(host),
    now: Date.now,
    onExit: leave,
  });
}

/** Leaves with the exit code of the one prompt, and shows what it took. */
function followOnce(
  session: RuntimeSession,
  leave: (code: number) => void,
): (sessionId: string | undefined) => string {
  const start = Date.now();
  const agents = new Set<string>();
  let costUsd = 0;
  session.subscribe((event) => {
    if (event.type === "agent-changed") agents.add(event.agent.id);
    if (event.type === "status-changed") costUsd = event.status.costUsd ?? costUsd;
    if (event.type === "turn-ended") leave(exitCodes[event.outcome.status]);
  });
  return (sessionId) =>
    `${[
      ...(agents.size === 0 ? [] : [plural(agents.size, "agent")]),
      formatDuration(Date.now() - start),
      ...(costUsd === 0 ? [] : [formatCost(costUsd)]),
      ...(sessionId === undefined ? [] : [`retinue inspect ${sessionId}`]),
    ].join(" · ")}\n`;
}

const exitCodes = { completed: 0, partial: 1, failed: 1, stopped: endSignals.SIGINT } as const;

const timeoutMs = 5_000;

/** Whatever hangs must not keep the person from leaving. */
async function disposeSoon(session: AsyncDisposable): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([session[Symbol.asyncDispose](), late]);
  clearTimeout(timer);
}

function printClosing(
  { sessionId, running }: ReturnType<RuntimeSession["closing"]>,
  { host }: CommandContext,
): void {
  const stopped = running.map((one) => `Stopped: ${stripControlCharacters(one)}\n`).join("");
  const how =
    sessionId === undefined ? "" : `Continue: retinue${worktreeOption(host)} --resume ${sessionId}\n`;
  host.stdout.write(`${stopped}${how}`);
}
