import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { ProgramServer } from "../../../../src/mcp.ts";
import type { ControlChannel } from "./control-channel.ts";

/** The part of an MCP transport that is used here. */
interface McpTransportEnd {
  onmessage?: (message: unknown) => void;
  onclose?: () => void;
  start?(): Promise<void>;
  send(message: unknown): Promise<void>;
  close?(): Promise<void>;
}

/** An MCP server in the memory of the host, reached through `mcp_message`. */
export interface HostMcpServer {
  readonly server: ProgramServer;
  /** Passes on what the server says by itself, such as that its tools have changed. */
  receive(message: unknown): void;
}

export function createHostMcpServer(name: string, channel: Pick<ControlChannel, "ask">): HostMcpServer {
  let end: McpTransportEnd | undefined;
  const pending = new Map<unknown, AbortController>();

  async function forward(message: unknown): Promise<void> {
    const request = isRecord(message) ? message : {};
    const { id, method, params } = request;
    if (method === "notifications/cancelled" && isRecord(params)) pending.get(params["requestId"])?.abort();
    const controller = new AbortController();
    if (id !== undefined) pending.set(id, controller);
    try {
      const answer = await channel.ask(
        { subtype: "mcp_message", server_name: name, message: request },
        controller.signal,
      );
      const { mcp_response: response } = answer;
      if (id !== undefined && isRecord(response)) await end?.send(response);
    } catch (error) {
      if (id === undefined || controller.signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      await end?.send(errorAnswer(id, reason));
    } finally {
      pending.delete(id);
    }
  }

  return {
    server: {
      async connect(transport) {
        // The linked pair of the MCP package has these members; the interface of the runtime leaves the type open.
        end = transport as McpTransportEnd;
        end.onmessage = (message) => void forward(message).catch(() => undefined);
        await end.start?.();
      },
      async close() {
        for (const controller of pending.values()) controller.abort();
        await end?.close?.();
      },
    },
    receive: (message) => void end?.send(message).catch(() => undefined),
  };
}

function errorAnswer(id: unknown, message: string): JsonRecord {
  return { jsonrpc: "2.0", id, error: { code: -32603, message } };
}
