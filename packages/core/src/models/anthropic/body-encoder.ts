/** Writes request bodies as JSON bytes. */
export interface BodyEncoder {
  /** `conversation` is the same object for all requests that continue each other. */
  encode(parameters: object, conversation: object): EncodedBody;
}

export interface EncodedBody {
  readonly bytes: Uint8Array;
  /** The body was sent and answered: its memory may hold the next one. Bodies whose fate is unknown are not released. */
  release(): void;
}

/**
 * Encodes what a conversation sends again only once, so that a turn costs what is new in it. Serialising everything
 * each time costs more with every turn, and one character beyond Latin-1 anywhere in the body makes the whole of it a
 * string of twice the size.
 */
export function createBodyEncoder(): BodyEncoder {
  const conversations = new WeakMap<object, EncodedList>();
  const fixed = new WeakMap<object, Buffer>();
  // Memory for whole bodies, used again. A long conversation sends its whole text with every turn; a fresh buffer for each
  // request leaves tens of megabytes behind before the collector notices, because almost none of it is on its heap.
  const free: Buffer[] = [];
  let freeBytes = 0;
  const pool: { join(parts: readonly Uint8Array[]): EncodedBody } = {
    join(parts) {
      const length = parts.reduce((sum, part) => sum + part.length, 0);
      const used = free.pop() ?? Buffer.alloc(0);
      freeBytes -= used.length;
      const buffer = withRoom(used, 0, length);
      let end = 0;
      for (const part of parts) {
        buffer.set(part, end);
        end += part.length;
      }
      let isReleased = false;
      return {
        bytes: buffer.subarray(0, length),
        release() {
          const isKept = free.length < maxFree || freeBytes + buffer.length <= maxFreeBytes;
          if (!isReleased && isKept) {
            free.push(buffer);
            freeBytes += buffer.length;
          }
          isReleased = true;
        },
      };
    },
  };

  const fixedBytes = (item: object): Buffer => {
    const bytes = fixed.get(item) ?? Buffer.from(JSON.stringify(item));
    fixed.set(item, bytes);
    return bytes;
  };
  const listOf = (conversation: object): EncodedList => {
    const list = conversations.get(conversation) ?? createEncodedList();
    conversations.set(conversation, list);
    return list;
  };

  return {
    encode(parameters, conversation) {
      const parts: Uint8Array[] = [];
      for (const [key, value] of Object.entries(parameters)) {
        if (value === undefined) continue;
        parts.push(Buffer.from(`${parts.length === 0 ? "{" : ","}${JSON.stringify(key)}:`));
        if (key === "messages" && isList(value)) parts.push(listOf(conversation).encode(value));
        else if (isList(value))
          parts.push(
            ...[
              opening,
              ...value.map(fixedBytes).flatMap((item, index) => (index === 0 ? [item] : [comma, item])),
              closing,
            ],
          );
        else parts.push(Buffer.from(JSON.stringify(value)));
      }
      parts.push(Buffer.from(parts.length === 0 ? "{}" : "}"));
      return pool.join(parts);
    },
  };
}

/** As many bodies as are usually on their way together, and of small ones as many as a hundred agents send; more are left to the garbage collector. */
const maxFree = 4;
const maxFreeBytes = 4 * 2 ** 20;

function isList(value: unknown): value is readonly object[] {
  return Array.isArray(value) && value.every((item) => typeof item === "object" && item !== null);
}

const opening = Buffer.from("[");
const comma = Buffer.from(",");
const closing = Buffer.from("]");

interface EncodedList {
  /** The bytes are good until the next call. */
  encode(items: readonly object[]): Uint8Array;
}

/** The bytes of a list that grows at its end: what precedes the first item that is another one is kept. */
function createEncodedList(): EncodedList {
  let known: readonly object[] = [];
  /** Where each item ends in the bytes. */
  const ends: number[] = [];
  let bytes: Buffer = Buffer.from("[");

  return {
    encode(items) {
      const first = items.findIndex((item, index) => item !== known[index]);
      const kept = first === -1 ? items.length : first;
      ends.length = kept;
      const start = ends[kept - 1] ?? opening.length;
      const added = items.slice(kept).map((item) => JSON.stringify(item));
      const text = `${kept > 0 && added.length > 0 ? "," : ""}${added.join(",")}]`;
      bytes = withRoom(bytes, start, Buffer.byteLength(text));
      let end = start;
      for (const [index, one] of added.entries()) {
        if (kept + index > 0) end += bytes.write(",", end);
        end += bytes.write(one, end);
        ends.push(end);
      }
      known = items;
      end += bytes.write("]", end);
      return bytes.subarray(0, end);
    },
  };
}

/** Keeps the first bytes and has room for so many more; grows by half, so that growing costs little in the long run. */
function withRoom(bytes: Buffer, used: number, more: number): Buffer {
  if (used + more <= bytes.length) return bytes;
  const larger = Buffer.allocUnsafeSlow(Math.ceil((used + more) * 1.5));
  bytes.copy(larger, 0, 0, used);
  return larger;
}
