import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { errorKinds, failsConcurrency, piecesOf, type ScriptedAnswer } from "./scripted-answer.ts";
import { isStatusError, textOfValue, type Wire, type WireStream } from "./wire.ts";

export interface Line {
  readonly wire: Wire;
  readonly body: JsonRecord;
  readonly response: ServerResponse;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly deltaSize: number;
  /** Called once the answer is sure to begin. */
  readonly onBegin: () => void;
}

/** Says an answer over HTTP, or does to the connection what its error says. */
export async function sendAnswer(answer: ScriptedAnswer, line: Line): Promise<void> {
  if (failsConcurrency(answer)) return failBefore(answer, line);
  line.onBegin();
  if (line.body["stream"] === true) return sendStream(answer, line);
  return sendWhole(answer, line);
}

async function failBefore({ failure, retryAfterMs }: ScriptedAnswer, line: Line): Promise<void> {
  if (failure === "stall") return untilGone(line.signal);
  if (failure === undefined || !isStatusError(failure)) {
    line.response.socket?.resetAndDestroy();
    return;
  }
  const { wire, response } = line;
  response.writeHead(wire.statusOf(failure), {
    "content-type": "application/json",
    ...requestIds,
    ...(retryAfterMs === undefined ? {} : retryHeaders(retryAfterMs)),
  });
  response.end(JSON.stringify(wire.errorBody(failure, errorKinds[failure].message)));
}

async function sendWhole(answer: ScriptedAnswer, line: Line): Promise<void> {
  const { wire, body, response, signal } = line;
  const json = JSON.stringify(wire.whole(answer, textOfValue(body["model"]), answer.usage));
  const { failure } = answer;
  if (failure !== undefined && isStatusError(failure)) return failBefore(answer, line);
  response.writeHead(200, { "content-type": "application/json", ...requestIds });
  if (failure === undefined) return void response.end(json);
  const half = json.slice(0, json.length / 2);
  if (failure === "malformed") return void response.end(half);
  await write(response, half);
  if (failure === "stall") return untilGone(signal);
  response.destroy();
}

async function sendStream(answer: ScriptedAnswer, line: Line): Promise<void> {
  const { wire, body, response, signal } = line;
  const stream = wire.openStream(answer, body, answer.usage);
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    ...requestIds,
  });
  let ready = stream.begin();
  for (const piece of piecesOf(answer, line.deltaSize)) {
    if (piece.type === "delta" && answer.delayMs > 0) {
      await write(response, ready);
      ready = "";
      await wait(answer.delayMs, undefined, { signal });
    }
    ready += stream.piece(piece);
  }
  if (answer.failure === undefined) return void response.end(ready + stream.end());
  await write(response, ready);
  await failInside(answer.failure, stream, line);
}

async function failInside(
  failure: NonNullable<ScriptedAnswer["failure"]>,
  stream: WireStream,
  { response, signal }: Line,
): Promise<void> {
  if (failure === "stall") return untilGone(signal);
  if (failure === "malformed") return void response.end(stream.malformed());
  if (isStatusError(failure)) return void response.end(stream.error(failure, errorKinds[failure].message));
  response.destroy();
}

const requestIds = { "request-id": "req_fake", "x-request-id": "req_fake" };

function retryHeaders(ms: number): Readonly<Record<string, string>> {
  const seconds = { "retry-after": String(Math.ceil(ms / 1_000)) };
  return ms % 1_000 === 0 ? seconds : { ...seconds, "retry-after-ms": String(ms) };
}

/** Resolves when the bytes have left, so that what follows cannot overtake them. */
function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

function untilGone(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
