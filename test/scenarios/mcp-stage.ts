import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import {
  Client,
  type ClientOptions,
  type ElicitRequest,
  type ElicitResult,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step, StepAnswer, StepFunction } from "@retinue/testing/script.ts";
import { onTestFinished } from "vitest";
import { projectRoot } from "../project-files.ts";
import { type InProcessCommand, startInProcess } from "../start-in-process.ts";
import { type AtEnd, createPlace, type Place } from "./run-command.ts";

export const program = join(projectRoot, "bin/retinue.js");

/** A project whose agents talk to a scripted provider. */
export interface McpStage extends Place {
  readonly provider: FakeProvider;
  readonly environment: Record<string, string>;
}

export async function createMcpStage(steps: readonly Step[]): Promise<McpStage> {
  return stageOf(await startFakeProvider({ script: steps }), onTestFinished);
}

/** A stage for several tests; what the model answers is added by each test, for a task of its own. */
export interface SharedStage extends McpStage {
  /** Answers the requests of the agent whose task contains the text, in this order. */
  answer(task: string, ...answers: readonly (StepAnswer | StepFunction)[]): void;
  /** The requests of the agent whose task contains the text. */
  requestsOf(task: string): FakeProvider["requests"];
  /** How many answers for a task are left. */
  left(task: string): number;
}

export async function createSharedStage(atEnd: AtEnd): Promise<SharedStage> {
  const answers = new Map<string, (StepAnswer | StepFunction)[]>();
  const isFor = (task: string, { messages }: ModelRequest) => JSON.stringify(messages[0]).includes(task);
  const provider = await startFakeProvider({
    respond(request) {
      const task = [...answers.keys()].find((each) => isFor(each, request));
      const next = task === undefined ? undefined : answers.get(task)?.shift();
      if (next === undefined) throw new Error("no answer is left for this request");
      return typeof next === "function" ? next(request) : next;
    },
  });
  return {
    ...stageOf(provider, atEnd),
    answer: (task, ...list) => void answers.set(task, [...list]),
    requestsOf: (task) => provider.requests.filter(({ request }) => isFor(task, request)),
    left: (task) => answers.get(task)?.length ?? 0,
  };
}

function stageOf(provider: FakeProvider, atEnd: AtEnd): McpStage {
  atEnd(() => provider[Symbol.asyncDispose]());
  const place = createPlace(atEnd);
  const environment = {
    HOME: place.home,
    PATH: process.env["PATH"] ?? "",
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
  };
  return { ...place, provider, environment };
}

/** Each era is a protocol of its own, and the same server speaks both. */
export type Era = "legacy" | "modern";

export interface ConnectOptions {
  readonly era?: Era;
  readonly arguments_?: readonly string[];
  readonly atEnd?: AtEnd;
  /** Answers what is asked; without it the client cannot be asked. */
  readonly answer?: (question: ElicitRequest["params"]) => ElicitResult | Promise<ElicitResult>;
}

/** The official client over stdin and stdout of the command, in this process. */
export async function connectInProcess(stage: McpStage, options: ConnectOptions = {}): Promise<Client> {
  const client = createClient(options);
  const transport = new InProcessTransport(stage, ["mcp", "serve", ...(options.arguments_ ?? [])]);
  await client.connect(transport);
  (options.atEnd ?? onTestFinished)(() => client.close());
  return client;
}

/** What the transport over a process does, without one. */
class InProcessTransport implements Transport {
  readonly #stage: McpStage;
  readonly #arguments: readonly string[];
  #command: InProcessCommand | undefined;
  onclose?: (() => void) | undefined;
  onmessage?: Transport["onmessage"];

  constructor(stage: McpStage, arguments_: readonly string[]) {
    this.#stage = stage;
    this.#arguments = arguments_;
  }

  async start(): Promise<void> {
    const { cwd, environment } = this.#stage;
    let rest = "";
    this.#command = startInProcess(this.#arguments, {
      cwd,
      environment,
      out: (text) => {
        const lines = `${rest}${text}`.split("\n");
        rest = lines.pop() ?? "";
        // As from a pipe: not in the middle of what the command does.
        for (const line of lines) setImmediate(() => this.onmessage?.(JSON.parse(line)));
      },
      err: () => undefined,
    });
    void this.#command.code.then(() => this.onclose?.());
  }

  async send(message: unknown): Promise<void> {
    this.#command?.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.#command?.stdin.end();
    await this.#command?.code;
  }
}

/** The official client over stdin and stdout of the built command. */
export async function connectProcess(stage: McpStage, options: ConnectOptions = {}): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, "mcp", "serve", ...(options.arguments_ ?? [])],
    cwd: stage.cwd,
    env: stage.environment,
    stderr: "ignore",
  });
  const client = createClient(options);
  await client.connect(transport);
  (options.atEnd ?? onTestFinished)(() => client.close());
  return client;
}

export interface HttpServer {
  readonly url: string;
  readonly token: string;
  readonly child: ChildProcess;
}

/** `retinue mcp serve --http` in this process, ready for requests. */
export async function startHttpInProcess(
  stage: McpStage,
  atEnd: AtEnd = onTestFinished,
): Promise<Pick<HttpServer, "url" | "token">> {
  const ready = Promise.withResolvers<Pick<HttpServer, "url" | "token">>();
  let reported = "";
  const { kill, code } = startInProcess(["mcp", "serve", "--http"], {
    cwd: stage.cwd,
    environment: stage.environment,
    out: () => undefined,
    err: (text) => {
      reported += text;
      const [, url, token] = /MCP server at (\S+)\n.*token (\S+)\n/s.exec(reported) ?? [];
      if (url !== undefined && token !== undefined) ready.resolve({ url, token });
    },
  });
  void code.then(() => ready.reject(new Error(`The server ended: ${reported}`)));
  atEnd(async () => {
    kill("SIGTERM");
    await code;
  });
  return ready.promise;
}

/** `retinue mcp serve --http`, ready for requests. */
export async function startHttp(
  stage: McpStage,
  environment: Readonly<Record<string, string>> = {},
  atEnd: AtEnd = onTestFinished,
): Promise<HttpServer> {
  const child = spawn(process.execPath, [program, "mcp", "serve", "--http"], {
    cwd: stage.cwd,
    env: { ...stage.environment, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  atEnd(() => void child.kill("SIGKILL"));
  let reported = "";
  return new Promise((resolve, reject) => {
    child.on("exit", () => reject(new Error(`The server ended: ${reported}`)));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      reported += text;
      const url = /MCP server at (\S+)\n/.exec(reported)?.[1];
      const token = environment["RETINUE_MCP_TOKEN"] ?? /token (\S+)\n/.exec(reported)?.[1];
      if (url !== undefined && token !== undefined) resolve({ url, token, child });
    });
  });
}

export async function connectHttp(
  server: Pick<HttpServer, "url" | "token">,
  options: ConnectOptions = {},
): Promise<Client> {
  const transport = new StreamableHTTPClientTransport(new URL(server.url), {
    requestInit: { headers: { authorization: `Bearer ${server.token}` } },
  });
  const client = createClient(options);
  // The SDK's transport declares optional members without `undefined`, the interface it implements with it.
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  onTestFinished(() => client.close());
  return client;
}

function createClient({ era = "legacy", answer }: ConnectOptions): Client {
  const options: ClientOptions = {
    versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" },
    capabilities: answer === undefined ? {} : { elicitation: { form: {} } },
  };
  const client = new Client({ name: "test", version: "1.0.0" }, options);
  if (answer !== undefined)
    client.setRequestHandler("elicitation/create", async ({ params }) => answer(params));
  return client;
}

/** The text and the structured content of a call, and whether it says that something went wrong. */
export interface Called {
  readonly text: string;
  readonly data: Record<string, unknown>;
  readonly isError: boolean;
}

export async function call(
  client: Client,
  name: string,
  arguments_: Record<string, unknown>,
  options: Parameters<Client["callTool"]>[1] = {},
): Promise<Called> {
  const result = await client.callTool({ name, arguments: arguments_ }, { timeout: 50_000, ...options });
  return read(result);
}

export function read(result: unknown): Called {
  const { content, structuredContent, isError } = result as {
    readonly content: readonly { readonly text?: string }[];
    readonly structuredContent?: Record<string, unknown>;
    readonly isError?: boolean;
  };
  return {
    text: content.map(({ text }) => text ?? "").join("\n"),
    data: structuredContent ?? {},
    isError: isError === true,
  };
}
