import { describeBody } from "./describe-body.ts";
import { ModelError } from "./model-error.ts";

/** The longest line of a stream; one that never ends would fill the memory. */
export const maxLine = 8 * 1024 * 1024;

/** As much of a body that is no stream as is read to say what it is. */
const keptOfBody = 64 * 1024;

/** As much of the body of an error as is read. */
export const maxErrorBody = 256 * 1024;

export function lineTooLong(): ModelError {
  return new ModelError(
    "stream-malformed",
    `The provider sent a line of more than ${maxLine / 1024 / 1024} MiB without an end.`,
  );
}

/**
 * Shows by its first bytes whether an answer is a stream of events. A page of a proxy or a login, or an answer in one
 * piece, comes with status 200 too, and reading it as a stream would only say that the stream broke off.
 */
export function createAnswerGuard(contentType: string) {
  const decoder = new TextDecoder();
  let start = "";
  let isForeign: boolean | undefined = mayBeForeign(contentType) ? undefined : false;
  const judge = (): boolean | undefined => {
    const first = start.trimStart().charAt(0);
    return first === "" ? undefined : first === "<" || first === "{" || first === "[";
  };
  return {
    /** False while the bytes are no part of a stream of events and must not be read as such; throws when it is clear. */
    take(bytes: Uint8Array): boolean {
      if (isForeign === false) return true;
      start += decoder.decode(bytes, { stream: true });
      isForeign ??= judge();
      if (isForeign === undefined) return false;
      if (!isForeign) return true;
      if (start.length >= keptOfBody) throw foreignAnswer(start, contentType);
      return false;
    },
    end(): void {
      if (isForeign === true) throw foreignAnswer(start, contentType);
    },
  };
}

/** What is labelled as a stream is read as one. */
function mayBeForeign(contentType: string): boolean {
  return contentType === "" || /html|json$|json;|text\/plain|xml/i.test(contentType);
}

function foreignAnswer(text: string, contentType: string): ModelError {
  const label = contentType === "" ? "" : ` (${contentType.slice(0, 100)})`;
  return new ModelError(
    "unexpected-answer",
    `The provider answered 200 with something that is not a stream of events${label}: ${describeBody(text)}`,
    {
      advice: "Check the base URL, and look for a proxy or a login page between you and the provider.",
      status: 200,
    },
  );
}

/** A `fetch` for packages that read answers themselves: bounded errors, bounded lines, and no pages taken for streams. */
export function guardFetch(transport: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await transport(input, init);
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    const contentType = headers.get("content-type") ?? "";
    if (response.ok && !/^text\/|json|html|xml|^$/i.test(contentType)) return response;
    const guarded = body.pipeThrough(response.ok ? guardStream(contentType) : limitBytes(maxErrorBody));
    return new Response(guarded, { status, statusText, headers });
  };
}

function guardStream(contentType: string): TransformStream<Uint8Array, Uint8Array> {
  const guard = createAnswerGuard(contentType);
  const held: Uint8Array[] = [];
  let lineLength = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const lastBreak = chunk.lastIndexOf(lineFeed);
      lineLength = lastBreak === -1 ? lineLength + chunk.length : chunk.length - lastBreak - 1;
      if (lineLength > maxLine) throw lineTooLong();
      held.push(chunk);
      if (!guard.take(chunk)) return;
      for (const one of held.splice(0)) controller.enqueue(one);
    },
    flush(controller) {
      guard.end();
      for (const one of held) controller.enqueue(one);
    },
  });
}

const lineFeed = 0x0a;

function limitBytes(limit: number): TransformStream<Uint8Array, Uint8Array> {
  let left = limit;
  return new TransformStream({
    transform(chunk, controller) {
      if (left <= 0) return;
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) controller.terminate();
    },
  });
}
