// @io
/** The web's `fetch`, but that an answer ends in an error as soon as one message in it is longer than the limit. */
export function createBoundedFetch(limit: number): typeof fetch {
  return async (address, init) => {
    const response = await fetch(address, init);
    const { body, status, statusText, headers } = response;
    if (body === null || status < 200) return response;
    const isStream = headers.get("content-type")?.includes("text/event-stream") === true;
    // An event stream lasts as long as it likes, but each of its lines is only so long.
    let size = 0;
    const limiter = new TransformStream({
      transform(chunk, controller) {
        const end = isStream ? chunk.lastIndexOf(0x0a) : -1;
        size = end === -1 ? size + chunk.length : chunk.length - end - 1;
        if (size > limit) controller.error(new Error(`it sent a message of more than ${limit} bytes`));
        else controller.enqueue(chunk);
      },
    });
    return new Response(body.pipeThrough(limiter), { status, statusText, headers });
  };
}
