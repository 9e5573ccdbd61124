import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import type { Client, ElicitResult, RequestOptions, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import { version } from "@retinue/base/foundation/version.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import { connectTransport, type Sdk, type ServerTransport } from "./connect-transport.ts";
import { hideInAnswer, hideSecrets } from "./hide-secrets.ts";
import {
  boundedText,
  type CallEnd,
  describeFailure,
  describeStart,
  isUnknownMethod,
  type ListedTool,
  messageOf,
  readListedTools,
  refusesHandshake,
} from "./listed-tool.ts";
import type { McpConnectionOptions, McpQuestion, McpStatus } from "./mcp-connections.ts";

/** The name in `_meta` of a call under which its idempotency key is sent. */
const idempotencyMeta = "retinue/idempotency-key";

export interface RequestLimits {
  readonly signal: AbortSignal;
  readonly limitMs: number;
  readonly onProgress?: (text: string) => void;
  /** Sent along with a call of a tool, for servers that do a thing once per key. */
  readonly idempotencyKey?: string;
  /** The trace that a call belongs to, as W3C Trace Context writes it. */
  readonly traceParent?: string;
}

/** One living connection. After its end every request fails; the next caller makes another one. */
export interface ServerConnection {
  readonly version?: string;
  readonly instructions?: string;
  readonly hasResources: boolean;
  readonly hasPrompts: boolean;
  /** All of them, from all pages; rejects when they cannot be listed. */
  listTools(limits: RequestLimits): Promise<readonly ListedTool[]>;
  /** Rejects only with the signal's reason. */
  callTool(tool: ListedTool, input: JsonRecord, limits: RequestLimits): Promise<CallEnd>;
  request(method: string, parameters: JsonRecord, limits: RequestLimits): Promise<CallEnd>;
  /** Like a request, but its result is the list under the key, from all pages. */
  list(method: string, key: string, limits: RequestLimits): Promise<CallEnd>;
  isOpen(): boolean;
  /** Resolves with what is known of the end. */
  readonly ended: Promise<string>;
  /** Resolves when nothing of it is left. */
  close(): Promise<void>;
}

export type ConnectResult =
  | {
      readonly type: "connected";
      readonly connection: ServerConnection;
      readonly tools: readonly ListedTool[];
    }
  | ({ readonly type: "failed" } & Pick<FailedStatus, "reason" | "advice" | "needsAuth" | "canLogIn">);

type FailedStatus = Extract<McpStatus, { type: "failed" }>;

export interface ConnectOptions extends McpConnectionOptions {
  readonly signal: AbortSignal;
  readonly onListChanged?: () => void;
}

/** Connects and lists the tools, both within the start limit. Never rejects; what failed has left nothing behind. */
export async function connectServer(server: McpServer, options: ConnectOptions): Promise<ConnectResult> {
  const limit = new AbortController();
  const timer = setTimeout(() => {
    limit.abort(new RetinueError("mcp-timeout", `it did not answer within ${options.startLimitMs / 1000} s`));
  }, options.startLimitMs);
  const signal = AbortSignal.any([options.signal, limit.signal]);
  try {
    const sdk = await import("@modelcontextprotocol/client");
    const first = await attempt(server, { ...options, signal }, { sdk, mode: "legacy" });
    if (first.type === "connected" || !first.isRefused) return first;
    return await attempt(server, { ...options, signal }, { sdk, mode: "auto" });
  } catch (error) {
    return { type: "failed", reason: hideSecrets(describeStart(error, ""), server.transport) };
  } finally {
    clearTimeout(timer);
  }
}

interface Negotiation {
  readonly sdk: Sdk;
  /** Nearly every server speaks the older handshake, and some end when they get anything else first. */
  readonly mode: "legacy" | "auto";
}

async function attempt(
  server: McpServer,
  options: ConnectOptions,
  { sdk, mode }: Negotiation,
): Promise<ConnectResult & { readonly isRefused?: boolean }> {
  const { signal, startLimitMs } = options;
  const way = await abortable(connectTransport(server, sdk, options), signal);
  const client = createClient(server, options, { sdk, mode });
  const ended = Promise.withResolvers<string>();
  let isOpen = true;
  let closing: Promise<void> | undefined;
  client.onclose = () => {
    isOpen = false;
    ended.resolve(hideSecrets(way.describe(), server.transport, way.secrets?.()));
  };
  // Errors outside of a request have no receiver.
  client.onerror = () => undefined;
  const send = createSend(server, way, { ...options, isOpen: () => isOpen });

  const connection: ServerConnection = {
    hasResources: false,
    hasPrompts: false,
    async listTools(limits) {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const listed = await listAll(client, { method: "tools/list", key: "tools" }, limits).catch(
        (error: unknown) => {
          // Servers without a tool may say that they have some, and not know the request.
          if (isUnknownMethod(error)) return [];
          throw error;
        },
      );
      // Descriptions are shown to models, and a server that repeats what it was sent does so here too.
      return readListedTools(hideInAnswer(listed, way.secrets?.() ?? []));
    },
    callTool: ({ name, inputSchema }, input, limits) =>
      send(limits, (options) => {
        const { idempotencyKey, traceParent } = limits;
        const marks = {
          ...(idempotencyKey === undefined ? {} : { [idempotencyMeta]: idempotencyKey }),
          ...(traceParent === undefined ? {} : { traceparent: traceParent }),
        };
        const meta = Object.keys(marks).length === 0 ? {} : { _meta: marks };
        const parameters = { name, arguments: { ...input }, ...meta };
        if (client.getProtocolEra() !== "modern") {
          return client.request({ method: "tools/call", params: parameters }, anything, options);
        }
        const toolDefinition = { name, inputSchema: { ...inputSchema, type: "object" as const } };
        return client.callTool(parameters, { ...options, toolDefinition });
      }),
    request: (method, parameters, limits) =>
      send(limits, (options) => client.request({ method, params: { ...parameters } }, anything, options)),
    list: (method, key, limits) => send(limits, () => listAll(client, { method, key }, limits)),
    isOpen: () => isOpen,
    ended: ended.promise,
    close() {
      closing ??= closeAll(client, way);
      return closing;
    },
  };
  try {
    await abortable(client.connect(way.transport, { timeout: startLimitMs, signal }), signal);
    const tools = await abortable(connection.listTools({ signal, limitMs: startLimitMs }), signal);
    const serverVersion = client.getServerVersion()?.version;
    const given = client.getInstructions()?.trim();
    const instructions =
      given === undefined ? undefined : hideSecrets(given, server.transport, way.secrets?.());
    const facts: Pick<ServerConnection, "version" | "instructions" | "hasResources" | "hasPrompts"> = {
      ...(typeof serverVersion === "string" ? { version: boundedText(serverVersion, 100) } : {}),
      ...(instructions
        ? { instructions: escapeControlTags(boundedText(instructions, maxInstructions)) }
        : {}),
      hasResources: client.getServerCapabilities()?.resources !== undefined,
      hasPrompts: client.getServerCapabilities()?.prompts !== undefined,
    };
    return { type: "connected", connection: { ...connection, ...facts }, tools };
  } catch (error) {
    // The process shows more than the handshake: why it ended, what it complained about.
    await connection.close();
    const failure = describeStart(signal.aborted ? signal.reason : error, way.describe());
    const reason = hideSecrets(failure, server.transport, way.secrets?.());
    if (!signal.aborted && isUnauthorized(error))
      return {
        type: "failed",
        reason,
        needsAuth: true,
        advice: adviseLogin(server, options),
        ...(canLogIn(server, options) ? { canLogIn: true } : {}),
      };
    return { type: "failed", reason, isRefused: !signal.aborted && refusesHandshake(error) };
  }
}

/** What a person does so that the server knows who asks. */
export function adviseLogin(server: McpServer, options: Pick<McpConnectionOptions, "credentials">): string {
  return canLogIn(server, options)
    ? `Run \`retinue mcp login ${shellWord(server.name)}\`.`
    : "Check the token in its configuration: `headers`, `headersHelper` or `oauth`.";
}

/** Unless the configuration has its own way to say who asks. */
function canLogIn(
  { transport }: McpServer,
  { credentials }: Pick<McpConnectionOptions, "credentials">,
): boolean {
  const hasOwn =
    "headers" in transport &&
    (transport.headersHelper !== undefined ||
      transport.oauth?.grant === "client_credentials" ||
      Object.keys(transport.headers).some((header) => header.toLowerCase() === "authorization"));
  return !hasOwn && credentials !== undefined;
}

/** A server that is there and refuses an unknown client, by either way of HTTP. */
function isUnauthorized(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return [Reflect.get(error, "status"), Reflect.get(error, "code")].some(
    (code) => code === 401 || code === "mcp-needs-login",
  );
}

function createClient(server: McpServer, options: ConnectOptions, { sdk, mode }: Negotiation): Client {
  const { directory, ask, onListChanged } = options;
  const client = new sdk.Client(
    { name: "retinue", version },
    {
      // What a person leaves out of a form gets the default that its schema names.
      capabilities: {
        roots: {},
        elicitation: ask === undefined ? undefined : { form: { applyDefaults: true }, url: {} },
      },
      versionNegotiation: { mode },
      listChanged:
        onListChanged === undefined
          ? undefined
          : { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => onListChanged() } },
    },
  );
  client.setRequestHandler("roots/list", () => ({
    roots: [{ uri: pathToFileURL(directory).href, name: basename(directory) }],
  }));
  if (ask !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }): Promise<ElicitResult> => {
      const schema = "requestedSchema" in params ? { schema: { ...params.requestedSchema } } : {};
      const message = escapeControlTags(boundedText(params.message, 2_000));
      const { action, content } = await ask(
        { server: server.name, message, ...schema, ...urlOf(params) },
        { signal: mcpReq.signal },
      );
      return { action, content: action === "accept" && "schema" in schema ? { ...content } : undefined };
    });
  }
  return client;
}

function urlOf(params: object): Pick<McpQuestion, "url" | "elicitationId"> {
  const [url, id] = [Reflect.get(params, "url"), Reflect.get(params, "elicitationId")];
  return {
    ...(typeof url === "string" ? { url } : {}),
    ...(typeof id === "string" ? { elicitationId: id } : {}),
  };
}

const maxInstructions = 4_000;
const maxPages = 500;
const maxTimer = 2 ** 31 - 1;

type Send = (limits: RequestLimits, work: (options: RequestOptions) => Promise<unknown>) => Promise<CallEnd>;

/** Sends requests within their limits; a failure is an answer that explains itself and shows no secret. */
function createSend(
  server: McpServer,
  way: ServerTransport,
  facts: Pick<McpConnectionOptions, "credentials"> & { readonly isOpen: () => boolean },
): Send {
  const { isOpen } = facts;
  return async (limits, work) => {
    const { signal, onProgress } = limits;
    const limitMs = Math.min(limits.limitMs, maxTimer);
    signal.throwIfAborted();
    const options = {
      signal,
      timeout: limitMs,
      ...(onProgress === undefined ? {} : followProgress(onProgress)),
    };
    try {
      return { type: "answered", result: hideInAnswer(await work(options), way.secrets?.() ?? []) };
    } catch (error) {
      signal.throwIfAborted();
      if (isUnauthorized(error)) {
        const reason = `The MCP server ${JSON.stringify(server.name)} refused the call: ${messageOf(error)}. ${adviseLogin(server, facts)}`;
        return { type: "failed", reason: hideSecrets(reason, server.transport, way.secrets?.()) };
      }
      const ending = way.describe();
      const end = describeFailure({ server: server.name, error, ending, isClosed: !isOpen(), limitMs });
      return { ...end, reason: hideSecrets(end.reason, server.transport, way.secrets?.()) };
    }
  };
}

async function closeAll(client: Client, way: ServerTransport): Promise<void> {
  await way.release?.();
  await client.close().catch(() => undefined);
  // A client that never got through its handshake does not close the way it was to take.
  await way.transport.close().catch(() => undefined);
}

async function listAll(
  client: Pick<Client, "request">,
  { method, key }: { readonly method: string; readonly key: string },
  { signal, limitMs }: RequestLimits,
): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const options = { signal, timeout: Math.min(limitMs, maxTimer) };
    const result = await client.request({ method, params }, anything, options);
    if (!isRecord(result)) return all;
    const items = result[key];
    if (Array.isArray(items)) all.push(...(items as unknown[]));
    const next = result["nextCursor"];
    if (typeof next !== "string" || next === "" || next === cursor) return all;
    cursor = next;
  }
  return all;
}

const maxProgress = 1_000;

function followProgress(onProgress: (text: string) => void): Pick<RequestOptions, "onprogress"> {
  let reported = 0;
  return {
    onprogress: ({ progress, total, message }) => {
      reported += 1;
      if (reported > maxProgress) return;
      const share = total === undefined ? String(progress) : `${progress}/${total}`;
      onProgress(message === undefined ? share : `${share}: ${boundedText(escapeControlTags(message), 300)}`);
    },
  };
}

/** Takes every result as it came: one flaw in a server's answer must cost that part, not all of it. */
const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "retinue", validate: (value) => ({ value }) },
};
