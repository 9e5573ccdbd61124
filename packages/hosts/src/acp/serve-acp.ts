import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type * as Acp from "@agentclientprotocol/sdk";
import type { AgentContext, ListSessionsResponse, McpServer, SessionUpdate } from "@agentclientprotocol/sdk";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import { openStoredConversations } from "@retinue/core/kernel/project/stored-conversations.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import type { RunFlags } from "../shared/flags.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { type AcpSession, openAcpSession } from "./acp-session.ts";

interface AcpServer {
  readonly acp: typeof Acp;
  readonly context: CommandContext;
  readonly options: RunFlags;
  readonly sessions: Map<string, AcpSession>;
  /** What the editor said that it can do. */
  capabilities: Acp.ClientCapabilities;
}

/** `retinue acp`: serves an editor over stdin and stdout by the Agent Client Protocol, until its input ends. */
export async function serveAcp(context: CommandContext, options: RunFlags): Promise<number> {
  const { host } = context;
  readPrintOptions(options, { words: [], cwd: host.cwd, session: context.session });
  const acp = await import("@agentclientprotocol/sdk");
  const server: AcpServer = { acp, context, options, sessions: new Map(), capabilities: {} };
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const connection = createAgent(server).connect(streamOf(server, stop.signal));
  stop.signal.addEventListener("abort", () => connection.close(), { once: true });
  try {
    await connection.closed;
    return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
  } finally {
    forget();
    stop.abort();
    await Promise.allSettled([...server.sessions.values()].map((each) => each[Symbol.asyncDispose]()));
  }
}

function streamOf({ acp, context: { host } }: AcpServer, signal: AbortSignal): Acp.Stream {
  const decoder = new TextDecoder();
  const output = new WritableStream<Uint8Array>({
    write: (bytes) => host.stdout.write(decoder.decode(bytes, { stream: true })),
  });
  return acp.ndJsonStream(output, ReadableStream.from(bytesOf(host, signal)));
}

async function* bytesOf({ stdin }: CliHost, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const line of stdin.lines({ signal })) yield encoder.encode(`${line}\n`);
}

function createAgent(server: AcpServer): Acp.AgentApp {
  const { acp, sessions } = server;
  const { agent: methods } = acp.methods;
  return acp
    .agent({ name: "retinue" })
    .onRequest(methods.initialize, ({ params }) => {
      server.capabilities = params.clientCapabilities ?? {};
      return {
        protocolVersion: acp.PROTOCOL_VERSION,
        agentInfo: { name: "retinue", title: "Retinue", version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: false, embeddedContext: true },
          mcpCapabilities: { http: true, sse: true },
          sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {} },
        },
        authMethods: [],
      };
    })
    .onRequest(methods.authenticate, () => ({}))
    .onRequest(methods.session.new, async ({ params, client, requestId }) => {
      const session = await open(server, client, { ...params, requestId });
      return { sessionId: session.id, ...choicesOf(session) };
    })
    .onRequest(
      methods.session.load,
      async ({ params: { sessionId: resume, ...params }, client, requestId }) =>
        choicesOf(await open(server, client, { ...params, resume, requestId, showsHistory: true })),
    )
    .onRequest(
      methods.session.resume,
      async ({ params: { sessionId: resume, ...params }, client, requestId }) =>
        choicesOf(await open(server, client, { ...params, resume, requestId })),
    )
    .onRequest(methods.session.list, ({ params }) =>
      answering(server, () => listEditorSessions(server.context.host, params)),
    )
    .onRequest(methods.session.delete, ({ params: { sessionId } }) =>
      answering(server, async () => {
        await closeSession(server, sessionId);
        // Deletes a session with its agents, in whichever folder it worked; one that is gone is deleted already.
        for (const folder of await transcriptFolders(server.context.host)) {
          const names = await readdir(folder).catch((): readonly string[] => []);
          if (names.includes(`${sessionId}.jsonl`)) await openStoredConversations(folder).remove(sessionId);
        }
        return {};
      }),
    )
    .onRequest(methods.session.setMode, ({ params }) =>
      answering(server, async () => {
        await find(server, params.sessionId).setMode(params.modeId);
        return {};
      }),
    )
    .onRequest(methods.session.setConfigOption, ({ params }) =>
      answering(server, async () => {
        const session = find(server, params.sessionId);
        await session.choose(params.configId, params.value);
        return { configOptions: session.options() };
      }),
    )
    .onRequest(methods.session.prompt, ({ params }) =>
      answering(server, async () => ({
        stopReason: await find(server, params.sessionId).prompt(params.prompt),
      })),
    )
    .onRequest(methods.session.close, async ({ params: { sessionId } }) => {
      await closeSession(server, find(server, sessionId).id);
      return {};
    })
    .onNotification(methods.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel());
}

function choicesOf(session: AcpSession) {
  return { modes: session.modes(), configOptions: session.options() };
}

async function closeSession({ sessions }: AcpServer, id: string): Promise<void> {
  const session = sessions.get(id);
  sessions.delete(id);
  await session?.[Symbol.asyncDispose]();
}

interface Opening {
  readonly requestId: Acp.RequestId;
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[];
  readonly additionalDirectories?: readonly string[] | null;
  readonly resume?: string;
  /** Whether the editor wants to be shown the conversation so far. */
  readonly showsHistory?: true;
}

async function open(server: AcpServer, client: AgentContext, given: Opening): Promise<AcpSession> {
  const { acp, context, options, sessions, capabilities } = server;
  const { cwd, mcpServers = [], additionalDirectories, resume, requestId, showsHistory } = given;
  const isPath = isAbsolute(cwd) && !cwd.includes("\0");
  if (!isPath || statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw acp.RequestError.invalidParams({ cwd }, "cwd must be the absolute path of a folder");
  const own: CommandContext = { ...context, host: { ...context.host, cwd } };
  // Opened again on the same connection, it takes the place of the one that is open.
  if (resume !== undefined) await closeSession(server, resume);
  const session = await answering(server, () =>
    openAcpSession({
      context: own,
      options,
      request: readPrintOptions(options, { words: [], cwd, session: context.session }),
      mcpServers,
      additionalDirectories: additionalDirectories ?? [],
      resume,
      requestId,
      ...clientOf(server, client),
      capabilities,
      mayBypass:
        options.dangerouslySkipPermissions === true || options.allowDangerouslySkipPermissions === true,
    }),
  );
  sessions.set(session.id, session);
  // An editor knows the session by the answer to this request, which is sent first.
  if (showsHistory === true) session.introduce(true);
  else setImmediate(() => session.introduce(false));
  return session;
}

function clientOf({ acp }: AcpServer, client: AgentContext) {
  const { session: methods, elicitation } = acp.methods.client;
  const until = (signal: AbortSignal) => ({ cancellationSignal: signal });
  return {
    // An editor that has gone reads nothing more; the connection ends by itself.
    send: (sessionId: string, update: SessionUpdate): void =>
      void client.notify(methods.update, { sessionId, update }).catch(() => undefined),
    requestPermission: (request: Acp.RequestPermissionRequest, signal: AbortSignal) =>
      client.request(methods.requestPermission, request, until(signal)),
    elicit: (request: Acp.CreateElicitationRequest, signal: AbortSignal) =>
      client.request(elicitation.create, request, until(signal)),
  };
}

function find({ acp, sessions }: AcpServer, id: string): AcpSession {
  const session = sessions.get(id);
  if (session === undefined)
    throw acp.RequestError.invalidParams({ sessionId: id }, `no session ${id} is open`);
  return session;
}

/** The editor asked for what cannot be, and can ask for something else. */
const badRequests: ReadonlySet<string> = new Set([
  "no-prompt",
  "permission-update-refused",
  "session-missing",
  "unknown-option",
  "unknown-value",
  "unsupported-content",
]);

/** What goes wrong is an error answer with its sentence and advice. */
async function answering<Result>({ acp }: AcpServer, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    const { code, message, advice } = error;
    const text = advice === undefined ? message : `${message} ${advice}`;
    const fail = badRequests.has(code) ? acp.RequestError.invalidParams : acp.RequestError.internalError;
    throw fail({ code }, text);
  }
}

const pageSize = 100;

/** The stored sessions of a folder, or of all folders, the newest first; `cursor` is where the next page begins. */
async function listEditorSessions(
  host: CliHost,
  { cwd, cursor }: { readonly cwd?: string | null | undefined; readonly cursor?: string | null | undefined },
): Promise<ListSessionsResponse> {
  const folders = typeof cwd === "string" ? [transcriptsOf({ ...host, cwd })] : await transcriptFolders(host);
  const found = await Promise.all(folders.map((folder) => openStoredConversations(folder).list()));
  const sessions = found
    .flat()
    .toSorted((a, b) => b.modified - a.modified)
    .flatMap(({ id, title, modified, cwd: own = cwd }) =>
      typeof own === "string"
        ? [{ sessionId: id, cwd: own, title, updatedAt: new Date(modified).toISOString() }]
        : [],
    );
  const from = Math.max(0, Number.parseInt(cursor ?? "0", 10) || 0);
  const next = from + pageSize;
  return {
    sessions: sessions.slice(from, next),
    ...(next < sessions.length ? { nextCursor: String(next) } : {}),
  };
}

function transcriptsOf(host: CliHost): string {
  return projectPaths({ ...host, env: host.environment }).transcripts;
}

async function transcriptFolders(host: CliHost): Promise<readonly string[]> {
  const projects = dirname(transcriptsOf(host));
  const entries = await readdir(projects, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(projects, name));
}
