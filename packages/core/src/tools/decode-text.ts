export type TextEncodingName = "utf-8" | "utf-16le" | "utf-16be";

/** How a text is kept as bytes; enough to write it back as it was. */
export interface TextShape {
  readonly encoding: TextEncodingName;
  readonly bom: boolean;
}

export interface DecodedText extends TextShape {
  readonly text: string;
  /** False when some bytes are not text in this encoding and were replaced: writing it back would harm the file. */
  readonly exact: boolean;
}

export function decodeText(bytes: Uint8Array): DecodedText {
  const shape = shapeOf(bytes);
  const body = bytes.subarray(bomLength(shape));
  try {
    const text = new TextDecoder(shape.encoding, { fatal: true, ignoreBOM: true }).decode(body);
    return { ...shape, text, exact: true };
  } catch {
    return {
      ...shape,
      text: new TextDecoder(shape.encoding, { ignoreBOM: true }).decode(body),
      exact: false,
    };
  }
}

export function encodeText(text: string, { encoding, bom }: TextShape): Buffer {
  const marked = bom ? `\ufeff${text}` : text;
  if (encoding === "utf-8") return Buffer.from(marked, "utf8");
  const bytes = Buffer.from(marked, "utf16le");
  return encoding === "utf-16be" ? bytes.swap16() : bytes;
}

/** The encoding that the first bytes announce; UTF-8 when they announce none. */
export function shapeOf(bytes: Uint8Array): TextShape {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return { encoding: "utf-16le", bom: true };
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return { encoding: "utf-16be", bom: true };
  return { encoding: "utf-8", bom: bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf };
}

function bomLength({ encoding, bom }: TextShape): number {
  if (!bom) return 0;
  return encoding === "utf-8" ? 3 : 2;
}

/** Whether the beginning of a file is no text: a NUL, or many control characters. */
export function looksBinary(bytes: Uint8Array): boolean {
  if (shapeOf(bytes).encoding !== "utf-8") return false;
  const sample = bytes.subarray(0, sampleLength);
  let controls = 0;
  for (const byte of sample) {
    if (byte === 0) return true;
    if (byte < 0x07 || (byte > 0x0d && byte < 0x1b)) controls += 1;
  }
  return controls * 10 > sample.length;
}

const sampleLength = 8192;
