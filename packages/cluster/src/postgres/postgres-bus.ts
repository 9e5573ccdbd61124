import { createHash, randomUUID } from "node:crypto";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { Bus, JsonValue } from "../store.ts";
import { connectSession, type Database, type Session } from "./database.ts";
import type { Place } from "./schema.ts";

/** NOTIFY takes less than 8000 bytes. */
const maxPayloadBytes = 7_900;
/** What a part of a larger event holds of it, in base64 a third longer, and how many parts there may be. */
const partBytes = 5_700;
const maxParts = 64;
/** Events that could not be sent yet; more are dropped, oldest first. */
const maxPending = 10_000;
const reconnectMs = 200;

export interface PostgresBus extends Bus {
  /** The channel of a topic, for a NOTIFY inside another transaction. */
  channelOf(topic: string): string;
  /** Called when the connection is back after a break, in which events may have been missed. */
  onGap(listener: () => void): void;
  /** False while notifications cannot arrive. */
  readonly isConnected: boolean;
  close(): Promise<void>;
}

/** LISTEN and NOTIFY, with a channel for each topic so that the server filters. Needs a direct connection. */
export function createPostgresBus(database: Database, { schema, tenant }: Place): PostgresBus {
  const channelOf = (topic: string): string =>
    `r${createHash("sha256")
      .update(JSON.stringify([schema, tenant, topic]))
      .digest("hex")
      .slice(0, 40)}`;
  const listener = createListener(database);
  const publisher = createPublisher(database);
  return {
    channelOf,
    publish(topic, event) {
      for (const payload of toPayloads(JSON.stringify(event))) publisher.send(channelOf(topic), payload);
    },
    async subscribe(topic, onEvent) {
      const stop = await listener.listen(channelOf(topic), joinParts(onEvent));
      return { close: stop };
    },
    onGap: (onReconnect) => listener.gaps.add(onReconnect),
    get isConnected() {
      return listener.session !== undefined;
    },
    async close() {
      publisher.close();
      await listener.close();
    },
  };
}

/** One payload, or several parts of a text that does not fit into one. */
function toPayloads(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxPayloadBytes) return [text];
  const count = Math.ceil(bytes.length / partBytes);
  if (count > maxParts) return [JSON.stringify({ oversize: bytes.length })];
  const id = randomUUID();
  return Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      part: [id, at, count],
      data: bytes.subarray(at * partBytes, (at + 1) * partBytes).toString("base64"),
    }),
  );
}

/** Events of one channel arrive in order, but those of several publishers may come between the parts of one. */
function joinParts(onEvent: (event: JsonValue) => void): OnText {
  const incomplete = new Map<string, string[]>();
  return (text) => {
    const event = JSON.parse(text) as JsonValue;
    const part = isRecord(event) ? event["part"] : undefined;
    if (!isRecord(event) || !Array.isArray(part) || typeof event["data"] !== "string") return onEvent(event);
    const [id, at, count] = part as [string, number, number];
    const parts = at === 0 ? [] : incomplete.get(id);
    // The beginning was published before this subscription.
    if (parts === undefined) return;
    parts.push(event["data"]);
    incomplete.set(id, parts);
    if (parts.length < count) return;
    incomplete.delete(id);
    const whole = Buffer.concat(parts.map((data) => Buffer.from(data, "base64"))).toString("utf8");
    onEvent(JSON.parse(whole) as JsonValue);
  };
}

interface Publisher {
  send(channel: string, text: string): void;
  close(): void;
}

/** Sends what has come together since the last statement, in order and one statement at a time. */
function createPublisher({ pool }: Database): Publisher {
  let pending: { readonly channel: string; readonly text: string }[] = [];
  let isSending = false;
  let isClosed = false;
  const flush = async (): Promise<void> => {
    isSending = true;
    while (pending.length > 0 && !isClosed) {
      const batch = pending;
      pending = [];
      const values = [batch.map(({ channel }) => channel), batch.map(({ text }) => text)];
      const text =
        "SELECT pg_notify(n.channel, n.payload) FROM unnest($1::text[], $2::text[]) AS n(channel, payload)";
      // Live events may be lost; the log has the truth.
      await pool.query({ name: "bus-notify", text, values }).catch(() => undefined);
    }
    isSending = false;
  };
  return {
    send(channel, text) {
      if (isClosed) return;
      pending.push({ channel, text });
      if (pending.length > maxPending) pending.shift();
      if (!isSending) queueMicrotask(() => !isSending && void flush());
    },
    close() {
      isClosed = true;
    },
  };
}

type OnText = (text: string) => void;

interface Listener {
  readonly session: Session | undefined;
  readonly gaps: Set<() => void>;
  listen(channel: string, onText: OnText): Promise<() => void>;
  close(): Promise<void>;
}

/** One session that listens; it is opened with the first subscription and opened again whenever it breaks. */
function createListener({ clientConfig }: Database): Listener {
  const channels = new Map<string, Set<OnText>>();
  const gaps = new Set<() => void>();
  const line = createListeningSession(() => openListening(clientConfig, channels), gaps);
  return {
    gaps,
    get session() {
      return line.session();
    },
    async listen(channel, onText) {
      const listeners = channels.get(channel) ?? new Set();
      const own: OnText = (text) => onText(text);
      channels.set(channel, listeners.add(own));
      const stop = (): void => {
        listeners.delete(own);
        if (listeners.size > 0 || channels.get(channel) !== listeners) return;
        channels.delete(channel);
        void line.run(`UNLISTEN ${channel}`).catch(() => undefined);
      };
      try {
        await line.connect();
        await line.run(`LISTEN ${channel}`);
      } catch (error) {
        // A session that breaks in between listens to all channels when it is back.
        if (!line.isComingBack()) {
          stop();
          throw error;
        }
      }
      return stop;
    },
    close: line.close,
  };
}

/** A session that listens to all channels. */
async function openListening(
  config: Database["clientConfig"],
  channels: ReadonlyMap<string, ReadonlySet<OnText>>,
): Promise<Session> {
  const opened = await connectSession(config);
  opened.client.on("notification", ({ channel, payload }) => {
    for (const onText of channels.get(channel) ?? []) onText(payload ?? "null");
  });
  for (const channel of channels.keys()) await opened.client.query(`LISTEN ${channel}`);
  return opened;
}

/** Keeps a session open, and calls those in `gaps` whenever it is back after a break. */
function createListeningSession(open: () => Promise<Session>, gaps: ReadonlySet<() => void>) {
  const closing = new AbortController();
  let session: Session | undefined;
  let ready: Promise<void> | undefined;
  const keepOpen = (first: () => void, failed: (error: unknown) => void): void => {
    void (async () => {
      let isFirst = true;
      while (!closing.signal.aborted) {
        try {
          session = await open();
          if (isFirst) first();
          else for (const onReconnect of gaps) onReconnect();
          isFirst = false;
          await session.ended;
        } catch (error) {
          if (isFirst) return failed(error);
        }
        session = undefined;
        await sleep(reconnectMs, closing.signal).catch(() => undefined);
      }
    })();
  };
  // One statement at a time: a session takes no second one while it works on the first.
  let last: Promise<unknown> = Promise.resolve();
  const run = (statement: string): Promise<unknown> => {
    const turn = last.then(() => session?.client.query(statement));
    last = turn.catch(() => undefined);
    return turn;
  };
  const connect = (): Promise<void> => {
    ready ??= new Promise<void>((resolve, reject) =>
      keepOpen(resolve, (error) => {
        ready = undefined;
        reject(error);
      }),
    );
    return ready;
  };

  return {
    connect,
    run,
    session: () => session,
    /** Whether it broke after it had been open, so that it is being opened again. */
    isComingBack: () => session === undefined && ready !== undefined,
    async close(): Promise<void> {
      closing.abort();
      await session?.client.end().catch(() => undefined);
    },
  };
}
