import { checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import type { ProgramServer } from "@retinue/core/mcp/mcp-connections.ts";

export interface FakeMcpTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  /** A text, or a whole result as the protocol has it; what it throws is a result that is an error. */
  readonly call: (input: Readonly<Record<string, unknown>>) => unknown;
}

export interface FakeMcpServer extends ProgramServer {
  /** The calls so far, in order. */
  readonly calls: readonly { readonly tool: string; readonly input: Readonly<Record<string, unknown>> }[];
}

interface FakeTransport {
  onmessage?: (message: Message) => void;
  start(): Promise<void>;
  send(message: unknown): Promise<void>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly protocolVersion?: string;
    readonly arguments?: Readonly<Record<string, unknown>>;
  };
}

/** An MCP server in memory, for `mcpServers`: its tools are functions. */
export function createFakeMcpServer(
  tools: readonly FakeMcpTool[],
  options: { readonly instructions?: string } = {},
): FakeMcpServer {
  const isTool = checks.shape({ name: checks.filled, call: checks.call }, ["name"]);
  checkArgument("The first argument of createFakeMcpServer()", checks.listOf(isTool, "tools"), tools);
  checkTable("createFakeMcpServer", { instructions: checks.text }, options);
  const { instructions } = options;
  const calls: { tool: string; input: Readonly<Record<string, unknown>> }[] = [];
  let connected: FakeTransport | undefined;

  async function answer({ method, params = {} }: Message): Promise<unknown> {
    if (method === "initialize") {
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "fake", version: "1.0.0" },
        instructions,
      };
    }
    if (method === "tools/list") {
      return {
        tools: tools.map(({ call: _call, ...tool }) => ({ inputSchema: { type: "object" }, ...tool })),
      };
    }
    const tool = method === "tools/call" ? tools.find(({ name }) => name === params.name) : undefined;
    if (tool === undefined) return undefined;
    const input = params.arguments ?? {};
    calls.push({ tool: tool.name, input });
    try {
      const result = await tool.call(input);
      return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
    } catch (error) {
      return { content: [{ type: "text", text: String(error) }], isError: true };
    }
  }

  return {
    calls,
    async connect(given) {
      // The one that connects hands over a transport of the official packages; the interface is theirs.
      const transport = given as FakeTransport;
      connected = transport;
      transport.onmessage = async (message) => {
        const { id } = message;
        if (id === undefined || message.method === undefined) return;
        const result = await answer(message);
        const error = { code: -32601, message: `The fake server has no ${message.method}.` };
        await transport.send({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
      };
      await transport.start();
    },
    async close() {
      await connected?.close();
    },
  };
}
