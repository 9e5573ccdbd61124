import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";

/** What one request says, whatever its format: the texts and results in their order, and the names of the tools. */
export interface Heard {
  readonly parts: readonly { readonly kind: "user" | "result" | "assistant"; readonly text: string }[];
  readonly tools: readonly string[];
}

export type Reply =
  | { readonly text: string }
  | { readonly call: { readonly name: string; readonly input: JsonRecord } };

export interface FakeModels extends AsyncDisposable {
  readonly url: string;
  readonly paths: readonly string[];
}

/** One server on loopback with the formats of Gemini and of OpenAI's Responses; the other two are in `@retinue/testing`. */
export async function startFakeModels(reply: (heard: Heard) => Reply): Promise<FakeModels> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    serve(request, response, { reply, paths }).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    paths,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

let count = 0;

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { reply, paths }: { readonly reply: (heard: Heard) => Reply; readonly paths: string[] },
): Promise<void> {
  const path = (request.url ?? "").split("?")[0] ?? "";
  paths.push(`${request.method} ${path}`);
  const written = await readText(request);
  const parsed: unknown = written === "" ? {} : JSON.parse(written);
  const body = isRecord(parsed) ? parsed : {};
  count += 1;
  if (path.endsWith("/responses")) return sendResponses(response, reply(hearResponses(body)));
  if (/:(?:streamG|g)enerateContent$/.test(path))
    return sendGemini(response, reply(hearGemini(body)), path.includes(":stream"));
  const known = path.endsWith(":countTokens") ? { totalTokens: 10 } : { data: [], models: [] };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(known));
}

function list(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function hearResponses({ input, tools }: JsonRecord): Heard {
  const parts = list(input).flatMap((item): Heard["parts"] => {
    if (item["type"] === "function_call_output" || item["type"] === "custom_tool_call_output") {
      const { output } = item;
      return [{ kind: "result", text: typeof output === "string" ? output : JSON.stringify(output) }];
    }
    if (item["type"] !== "message" && item["role"] === undefined) return [];
    const content = typeof item["content"] === "string" ? [{ text: item["content"] }] : list(item["content"]);
    const kind = item["role"] === "assistant" ? "assistant" : "user";
    return content.flatMap(({ text }) => (typeof text === "string" ? [{ kind, text } as const] : []));
  });
  return { parts, tools: list(tools).map(({ name, type }) => String(name ?? type)) };
}

function sendResponses(response: ServerResponse, reply: Reply): void {
  const id = `resp_${count}`;
  const usage = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 15,
  };
  const item = itemOf(reply);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (event: JsonRecord): void =>
    void response.write(`event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`);
  send({ type: "response.created", response: { id } });
  send({ type: "response.output_item.added", output_index: 0, item });
  send({ type: "response.output_item.done", output_index: 0, item });
  send({ type: "response.completed", response: { id, output: [item], usage } });
  response.end();
}

function itemOf(reply: Reply): JsonRecord {
  if ("text" in reply) {
    const content = [{ type: "output_text", text: reply.text, annotations: [] }];
    return { type: "message", id: `msg_${count}`, role: "assistant", content };
  }
  const { name, input } = reply.call;
  const call = { id: `fc_${count}`, call_id: `call_${count}`, name };
  return { type: "function_call", ...call, arguments: JSON.stringify(input) };
}

function hearGemini({ contents, tools }: JsonRecord): Heard {
  const parts = list(contents).flatMap(({ role, parts: given }): Heard["parts"] =>
    list(given).flatMap((part): Heard["parts"] => {
      if (isRecord(part["functionResponse"]))
        return [{ kind: "result", text: JSON.stringify(part["functionResponse"]["response"]) }];
      if (typeof part["text"] !== "string") return [];
      return [{ kind: role === "model" ? "assistant" : "user", text: part["text"] }];
    }),
  );
  const declared = list(tools).flatMap((tool) => list(tool["functionDeclarations"]));
  return { parts, tools: declared.map(({ name }) => String(name)) };
}

function sendGemini(response: ServerResponse, reply: Reply, streams: boolean): void {
  const part =
    "text" in reply
      ? { text: reply.text }
      : { functionCall: { name: reply.call.name, args: reply.call.input } };
  const answer = {
    candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    modelVersion: "fake",
  };
  response.writeHead(200, { "content-type": streams ? "text/event-stream" : "application/json" });
  response.end(streams ? `data: ${JSON.stringify(answer)}\n\n` : JSON.stringify(answer));
}
