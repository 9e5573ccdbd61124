import { randomUUID } from "node:crypto";
import type { UserMessage } from "../../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import { Fault } from "../../../foundation/fault.ts";
import { createRuntime, type Runtime } from "../../../runtime/create-runtime.ts";
import type { Session } from "../../../runtime/session.ts";
import { loadAgentsOption, refuseBrokenOption } from "../load-agents-option.ts";
import type { CommandContext } from "../session-options.ts";
import {
  initMessage,
  type MessageContext,
  messageOf,
  type OutputMessage,
  resultMessage,
} from "./output-messages.ts";
import {
  chooseFormat,
  inputFormats,
  type OutputFormat,
  outputFormats,
  type PrintOptions,
  readSessionOptions,
} from "./print-options.ts";
import { createProgressView } from "./progress-view.ts";
import { readMessages, readPrompt } from "./read-input.ts";

/** `retinue -p`: runs the prompt to its end, prints the result in the asked form, and returns the exit code. */
export async function runPrint(
  context: CommandContext,
  words: readonly string[],
  options: PrintOptions,
): Promise<number> {
  const { host } = context;
  const output = chooseFormat("--output-format", options.outputFormat, outputFormats);
  const input = chooseFormat("--input-format", options.inputFormat, inputFormats);
  const sessionOptions = readSessionOptions(options, host.cwd);
  const prompts =
    input === "stream-json" ? readMessages(host.stdin) : once(await readPrompt(words, host.stdin));
  const stop = new AbortController();
  const forget = host.onInterrupt(() => stop.abort(new Fault("interrupted", "Interrupted.")));
  try {
    await using runtime = createPrintRuntime(context, options);
    await using session = await runtime.open({ ...sessionOptions, ...deniedTools(context) });
    const printer = createPrinter({ context, options, output, session });
    await printer.begin(runtime);
    let code = 0;
    for await (const prompt of prompts) {
      code = await printOne(session, prompt, { printer, signal: stop.signal });
      if (stop.signal.aborted) break;
    }
    return stop.signal.aborted ? 130 : code;
  } finally {
    forget();
  }
}

async function* once(prompt: string): AsyncGenerator<UserMessage["content"], void> {
  yield prompt;
}

function deniedTools({ session }: CommandContext): { disallowedTools?: readonly string[] } {
  return session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools };
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
    ...(session.trust === true ? { trusted: true } : {}),
    transcripts: options.sessionPersistence ?? true,
  });
}

interface Printer {
  begin(runtime: Runtime): Promise<void>;
  show(event: RunEvent): void;
  end(ending: RunEnding): void;
}

async function printOne(
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
  return ending.status === "completed" ? 0 : 1;
}

function createPrinter({
  context,
  options,
  output,
  session,
}: {
  readonly context: CommandContext;
  readonly options: PrintOptions;
  readonly output: OutputFormat;
  readonly session: Session;
}): Printer {
  const { host } = context;
  const messages: MessageContext = { sessionId: session.plan.sessionId, uuid: randomUUID };
  const line = (message: OutputMessage): void => host.stdout.write(`${JSON.stringify(message)}\n`);
  const finish = (ending: RunEnding): OutputMessage =>
    resultMessage(ending, session.plan.model.value, messages);
  if (output === "json")
    return { begin: async () => undefined, show: () => undefined, end: (ending) => line(finish(ending)) };
  if (output === "stream-json") {
    const shown = {
      partial: options.includePartialMessages === true,
      replay: options.replayUserMessages === true,
    };
    return {
      async begin(runtime) {
        const { registry, plugins } = await runtime.agents();
        const agents = registry.list().map(({ id }) => id);
        line(
          initMessage(
            session.plan,
            { agents, plugins: plugins.map(({ name, root }) => ({ name, path: root })) },
            messages,
          ),
        );
      },
      show(event) {
        const message = messageOf(event, shown, messages);
        if (message !== undefined) line(message);
      },
      end: (ending) => line(finish(ending)),
    };
  }
  const progress = createProgressView(host);
  return {
    begin: async () => progress.begin(session.plan),
    show: progress.show,
    end(ending) {
      progress.end(ending);
      if (ending.output !== undefined) host.stdout.write(`${JSON.stringify(ending.output)}\n`);
      else if (ending.text !== "") host.stdout.write(`${ending.text.trimEnd()}\n`);
    },
  };
}
