import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord, parseJsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** What a host sends besides answers; each handler is called in the order of the lines and must not wait. */
export interface ControlHandlers {
  /** The resolved value is the payload of the success answer; an error becomes an error answer. */
  request(subtype: string, request: JsonRecord, asked: Asked): Promise<JsonRecord | undefined>;
  user(message: JsonRecord): void;
  /** A line that cannot be used. */
  invalid(reason: string): void;
}

/** How a request can be withdrawn, and by which id the host knows it. */
export interface Asked {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Both directions of the pipe: requests of either side, their answers and their cancellation. */
export interface ControlChannel {
  send(message: JsonRecord): void;
  /** Asks the host; an abort withdraws the question. Rejects when the host answers with an error or has gone. */
  ask(request: JsonRecord & { readonly subtype: string }, signal?: AbortSignal): Promise<JsonRecord>;
  /** Reads until the input ends. */
  read(lines: AsyncIterable<string>, handlers: ControlHandlers): Promise<void>;
  /** Whether the host can still answer. */
  isOpen(): boolean;
}

interface PendingAsk {
  resolve(payload: JsonRecord): void;
  reject(error: Error): void;
}

export function createControlChannel(write: (line: string) => void): ControlChannel {
  const asked = new Map<string, PendingAsk>();
  const answering = new Map<string, AbortController>();
  let open = true;
  const send = (message: JsonRecord): void => write(`${JSON.stringify(message)}\n`);
  return {
    send,
    isOpen: () => open,
    ask: (request, signal) => (open ? ask(request, { asked, send, signal }) : Promise.reject(hostGone())),
    async read(lines, handlers) {
      for await (const line of lines)
        if (line.trim() !== "") take(line, { asked, answering, send, handlers });
      open = false;
      for (const pending of asked.values()) pending.reject(hostGone());
      asked.clear();
    },
  };
}

interface Asking {
  readonly asked: Map<string, PendingAsk>;
  readonly send: (message: JsonRecord) => void;
}

function ask(
  request: JsonRecord,
  { asked, send, signal }: Asking & { readonly signal: AbortSignal | undefined },
): Promise<JsonRecord> {
  if (signal?.aborted === true) return Promise.reject(signal.reason);
  const id = randomUUID();
  const { promise, resolve, reject } = Promise.withResolvers<JsonRecord>();
  const withdraw = (): void => {
    if (!asked.delete(id)) return;
    send({ type: "control_cancel_request", request_id: id });
    reject(signal?.reason);
  };
  const release = (): void => signal?.removeEventListener("abort", withdraw);
  signal?.addEventListener("abort", withdraw, { once: true });
  asked.set(id, {
    resolve(payload) {
      release();
      resolve(payload);
    },
    reject(error) {
      release();
      reject(error);
    },
  });
  send({ type: "control_request", request_id: id, request });
  return promise;
}

interface Reading extends Asking {
  readonly answering: Map<string, AbortController>;
  readonly handlers: ControlHandlers;
}

function take(line: string, reading: Reading): void {
  const { handlers, answering } = reading;
  const { type, request, response, request_id: id, ...rest } = parseJsonRecord(line) ?? { type: "invalid" };
  const isAsked = type === "control_request" && isRecord(request) && typeof id === "string";
  if (isAsked) void answer(id, request, reading);
  else if (type === "control_response" && isRecord(response)) {
    const { asked } = reading;
    const id = String(response["request_id"]);
    const pending = asked.get(id);
    asked.delete(id);
    const { subtype, response: payload, error } = response;
    if (subtype === "success" && (payload === undefined || payload === null)) pending?.resolve({});
    else if (subtype === "success" && isRecord(payload)) pending?.resolve(payload);
    else if (subtype === "success")
      pending?.reject(
        new RetinueError("host-error", `the host must answer with an object, but answered ${quote(payload)}`),
      );
    else
      pending?.reject(new RetinueError("host-error", typeof error === "string" ? error : "the host failed"));
  } else if (type === "control_cancel_request")
    answering.get(String(id))?.abort(new RetinueError("cancelled", "The host withdrew its request."));
  else if (type === "user") handlers.user({ type, ...rest });
  // What is sent only as a sign of life, or by newer hosts for others to read, needs no answer.
  else if (type === "invalid" || type === "control_request")
    handlers.invalid(`A line of the input is not a message: ${line.slice(0, 200)}`);
}

async function answer(
  id: string,
  request: JsonRecord,
  { answering, handlers, send }: Reading,
): Promise<void> {
  const controller = new AbortController();
  answering.set(id, controller);
  try {
    const asked = { id, signal: controller.signal };
    const payload = await handlers.request(String(request["subtype"]), request, asked);
    const response = payload === undefined ? {} : { response: payload };
    // Questions of this process are asked again by no other, so none waits when a host introduces itself.
    const pending = { pending_permission_requests: [], pending_user_dialog_requests: [] };
    const beside = request["subtype"] === "initialize" ? pending : {};
    send({
      type: "control_response",
      response: { subtype: "success", request_id: id, ...response, ...beside },
    });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    send({ type: "control_response", response: { subtype: "error", request_id: id, error: text } });
  } finally {
    answering.delete(id);
  }
}

/** An answer to a request of the host that says why it cannot be carried out. */
export function refused(reason: string): RetinueError {
  return new RetinueError("control-refused", reason);
}

function hostGone(): RetinueError {
  return new RetinueError("host-gone", "The host has closed its input and can no longer answer");
}
