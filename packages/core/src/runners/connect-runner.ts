import * as acp from "@agentclientprotocol/sdk";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { knownRunners } from "@retinue/config/agents/agent-runner.ts";
import { connectProcess, type ProcessTransport } from "../mcp/connect-process.ts";
import { within } from "../mcp/within.ts";

/** What the program asks of us while it works. */
export interface RunnerRequests {
  /** As it was sent; nothing of it is checked. */
  readonly update: (update: unknown) => void;
  readonly requestPermission: (
    request: acp.RequestPermissionRequest,
  ) => Promise<acp.RequestPermissionResponse>;
  readonly readTextFile: (request: acp.ReadTextFileRequest) => Promise<acp.ReadTextFileResponse>;
  readonly writeTextFile: (request: acp.WriteTextFileRequest) => Promise<acp.WriteTextFileResponse>;
  readonly createTerminal: (request: acp.CreateTerminalRequest) => Promise<acp.CreateTerminalResponse>;
  readonly terminalOutput: (request: acp.TerminalOutputRequest) => acp.TerminalOutputResponse;
  readonly waitForTerminalExit: (
    request: acp.WaitForTerminalExitRequest,
  ) => Promise<acp.WaitForTerminalExitResponse>;
  readonly killTerminal: (request: acp.KillTerminalRequest) => Promise<void>;
  readonly releaseTerminal: (request: acp.ReleaseTerminalRequest) => Promise<void>;
}

export interface RunnerProcess {
  readonly name: string;
  readonly file: string;
  readonly arguments: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface RunnerConnection {
  readonly agent: acp.ClientConnection["agent"];
  readonly initialized: acp.InitializeResponse;
  /** Rejects once the program is gone, with what is known of its end; never resolves. */
  readonly gone: Promise<never>;
  /** Notes what it has started so far, so that `close` finds it also where it is orphaned meanwhile. */
  readonly look: () => void;
  /** Ends the program with everything it has started; it may finish with its session before, if that takes no longer than the grace. */
  readonly close: (sessionId?: string) => Promise<void>;
}

/** Programs that load slowly on a busy machine still answer in this time; one that does not never will. */
export const startLimitMs = 120_000;
const graceMs = 1500;
/** What it needs to write its conversation: after the request to close its session, and again after the end of its input. */
const finishMs = 2000;

/** Starts a program and opens a connection to it. */
export async function connectRunner(
  { name, file, arguments: words, directory, environment }: RunnerProcess,
  requests: RunnerRequests,
  signal: AbortSignal,
): Promise<RunnerConnection> {
  const wholeTree = { inputGraceMs: finishMs };
  const transport = connectProcess({ file, arguments: words, directory, environment, graceMs, wholeTree });
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  const stream = streamOf(transport, requests.update, () => gone.reject(endedError(name, transport)));
  try {
    await transport.start();
  } catch (error) {
    throw notStarted(name, file, error);
  }
  const connection = createClient(requests).connect(stream);
  void connection.closed.then(() => gone.reject(endedError(name, transport)));
  const close = async (): Promise<void> => {
    await transport.close();
    connection.close();
  };
  const closeSession = async (sessionId: string): Promise<void> => {
    transport.look();
    const closed = connection.agent.request(acp.methods.agent.session.close, { sessionId });
    await within(Promise.race([closed, gone.promise]), finishMs);
  };
  try {
    const initialized = await askProgram(
      Promise.race([
        connection.agent.request(acp.methods.agent.initialize, {
          protocolVersion: acp.PROTOCOL_VERSION,
          clientInfo: { name: "retinue", title: "Retinue", version },
          clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
        }),
        gone.promise,
      ]),
      { name, what: "answer", signal },
    );
    checkAnswer(isRecord(initialized), name, acp.methods.agent.initialize);
    if (initialized.protocolVersion !== acp.PROTOCOL_VERSION)
      throw new RetinueError(
        "runner-protocol",
        `${name} uses version ${initialized.protocolVersion} of the Agent Client Protocol, and Retinue version ${acp.PROTOCOL_VERSION}.`,
        { advice: "Install a release that uses the same version." },
      );
    const closes = (initialized.agentCapabilities?.sessionCapabilities?.close ?? undefined) !== undefined;
    return {
      agent: connection.agent,
      initialized,
      gone: gone.promise,
      look: () => transport.look(),
      async close(sessionId) {
        if (closes && sessionId !== undefined) await closeSession(sessionId);
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Asking {
  readonly name: string;
  readonly what: string;
  readonly signal: AbortSignal;
}

/** Waits for one answer at the start, no longer than it may take; an error answer is one of ours. */
export async function askProgram<T>(answer: Promise<T>, asking: Asking): Promise<T> {
  try {
    return await limited(answer, asking);
  } catch (error) {
    throw programError(error, asking.name);
  }
}

/** An error answer of the program as one of ours, with what it says. */
export function programError(error: unknown, name: string): unknown {
  if (!(error instanceof acp.RequestError)) return error;
  const { code, data } = error;
  const details = isRecord(data) && typeof data["details"] === "string" ? `: ${data["details"]}` : "";
  const isLogin = code === -32000;
  return new RetinueError(
    isLogin ? "runner-login" : "runner-failed",
    `${name} answered with an error: ${error.message}${details}`,
    {
      ...(isLogin
        ? {
            advice: `Log in with ${name} itself, or add the variable that contains its key to \`runner.env\`.`,
          }
        : {}),
    },
  );
}

/** Nothing that a program answers is checked by the package. */
export function checkAnswer(isAnswer: boolean, name: string, method: string): void {
  if (isAnswer) return;
  throw new RetinueError(
    "runner-protocol",
    `${name} answered ${method} with something that is not a valid answer of the Agent Client Protocol.`,
    { advice: "Install another release of it, or report the problem to its vendor." },
  );
}

async function limited<T>(answer: Promise<T>, { name, what, signal }: Asking): Promise<T> {
  const over = new AbortController();
  const late = sleep(startLimitMs, AbortSignal.any([signal, over.signal])).then(() => {
    throw new RetinueError(
      "runner-silent",
      `${name} did not ${what} within ${startLimitMs / 1000} s and was ended.`,
      { advice: `Start it by hand to see whether it is waiting for a login or an update.` },
    );
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    over.abort();
    answer.catch(() => undefined);
  }
}

function createClient(requests: RunnerRequests): acp.ClientApp {
  const { client: methods } = acp.methods;
  return (
    acp
      .client({ name: "retinue" })
      // Read by ourselves: the package would print what it cannot read.
      .onNotification(
        methods.session.update,
        (params) => params,
        ({ params }) => requests.update(params),
      )
      .onRequest(methods.session.requestPermission, ({ params }) => requests.requestPermission(params))
      .onRequest(methods.fs.readTextFile, ({ params }) => requests.readTextFile(params))
      .onRequest(methods.fs.writeTextFile, ({ params }) => requests.writeTextFile(params))
      .onRequest(methods.terminal.create, ({ params }) => requests.createTerminal(params))
      .onRequest(methods.terminal.output, ({ params }) => requests.terminalOutput(params))
      .onRequest(methods.terminal.waitForExit, ({ params }) => requests.waitForTerminalExit(params))
      .onRequest(methods.terminal.kill, async ({ params }) => {
        await requests.killTerminal(params);
        return {};
      })
      .onRequest(methods.terminal.release, async ({ params }) => {
        await requests.releaseTerminal(params);
        return {};
      })
  );
}

/** A transport of lines as the official package wants it. What is no message of the protocol is left out. */
function streamOf(
  transport: ProcessTransport,
  onUpdate: RunnerRequests["update"],
  onEnd: () => void,
): acp.Stream {
  let reading: ReadableStreamDefaultController<acp.AnyMessage> | undefined;
  const asked = new Set<unknown>();
  const readable = new ReadableStream<acp.AnyMessage>({
    start(controller) {
      reading = controller;
    },
  });
  transport.onmessage = (message) => {
    // The reader of lines gives JSON objects; the package checks the rest.
    const record = message as JsonRecord;
    // Updates are read here, in their order: the package would print those that it cannot read.
    if (record["method"] === acp.methods.client.session.update) onUpdate(record["params"]);
    else if (isMessage(record, asked)) reading?.enqueue(message as acp.AnyMessage);
  };
  transport.onclose = () => {
    onEnd();
    try {
      reading?.close();
    } catch {
      // The package has given the stream up before.
    }
    reading = undefined;
  };
  const writable = new WritableStream<acp.AnyMessage>({
    write(message) {
      if ("method" in message && "id" in message) asked.add(message.id);
      // One that reads nothing any more is as good as gone, and why it is says more than that it cannot be written to.
      return transport.send(message as never).catch(() => void transport.close());
    },
  });
  return { readable, writable };
}

/** A request, or the answer to something that was asked. */
function isMessage(message: JsonRecord, asked: Set<unknown>): boolean {
  if (typeof message["method"] === "string") return message["id"] !== undefined && message["id"] !== null;
  return ("result" in message || "error" in message) && asked.delete(message["id"]);
}

function endedError(name: string, transport: ProcessTransport): RetinueError {
  const how = transport.describe();
  return new RetinueError("runner-ended", `${name} is gone${how === "" ? "" : `: ${how}`}.`, {
    advice: "Start it by hand to see what is missing.",
  });
}

function notStarted(name: string, file: string, error: unknown): RetinueError {
  const why = error instanceof Error ? error.message : String(error);
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  const known = knownRunners.get(name);
  return new RetinueError(
    "runner-not-started",
    isMissing
      ? `The program ${file} of the runner ${name} is not on the PATH.`
      : `${name} cannot be started: ${why}.`,
    {
      advice:
        known === undefined
          ? "Check the command under `runner` of the definition."
          : `Install it: ${known.install}`,
    },
  );
}
