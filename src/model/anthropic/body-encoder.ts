/** Writes request bodies as JSON bytes. */
export interface BodyEncoder {
  encode(parameters: object): Uint8Array;
}

/**
 * Encodes the items of lists (messages, tools, system blocks) once and keeps their bytes as long as the item lives, so
 * that a turn costs what is new in it. Serialising the whole conversation each time costs more with every turn, and one
 * character beyond Latin-1 anywhere in it makes all of it a string of twice the size.
 */
export function createBodyEncoder(): BodyEncoder {
  const encoded = new WeakMap<object, Buffer>();

  function bytesOf(item: unknown): Buffer {
    if (typeof item !== "object" || item === null) return Buffer.from(JSON.stringify(item ?? null));
    let bytes = encoded.get(item);
    if (bytes === undefined) {
      bytes = Buffer.from(JSON.stringify(item));
      encoded.set(item, bytes);
    }
    return bytes;
  }

  return {
    encode(parameters) {
      const parts: Buffer[] = [];
      let separator = "{";
      for (const [key, value] of Object.entries(parameters)) {
        if (value === undefined) continue;
        const start = `${separator}${JSON.stringify(key)}:`;
        separator = ",";
        if (Array.isArray(value)) pushList(parts, start, value.map(bytesOf));
        else parts.push(Buffer.from(start + JSON.stringify(value)));
      }
      parts.push(Buffer.from(separator === "{" ? "{}" : "}"));
      return Buffer.concat(parts);
    },
  };
}

function pushList(parts: Buffer[], start: string, items: readonly Buffer[]): void {
  parts.push(Buffer.from(`${start}[`));
  for (const [index, item] of items.entries()) {
    if (index > 0) parts.push(comma);
    parts.push(item);
  }
  parts.push(closing);
}

const comma = Buffer.from(",");
const closing = Buffer.from("]");
