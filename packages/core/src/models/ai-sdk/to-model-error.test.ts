import { APICallError, InvalidResponseDataError, JSONParseError, LoadAPIKeyError } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { toModelError } from "./to-model-error.ts";

const place = { model: "openai/gpt", hasStarted: false };

describe("[MDL-3] errors of provider packages become errors with a code", () => {
  test.each([
    [429, "slow down", "rate-limited"],
    [429, "You exceeded your quota: insufficient_quota", "unauthorized"],
    [503, "", "overloaded"],
    [529, "", "overloaded"],
    [500, "", "server-error"],
    [408, "", "server-error"],
    [401, "", "unauthorized"],
    [403, "", "unauthorized"],
    [404, "", "not-found"],
    [413, "", "context-too-long"],
    [400, "This model's maximum context length is 8192 tokens", "context-too-long"],
    [400, "The input token count (9) exceeds the maximum number of tokens allowed", "context-too-long"],
    [400, "temperature is odd", "invalid-request"],
  ])("status %d with %j is %s", (statusCode, message, code) => {
    const error = apiError({ statusCode, message });
    expect(toModelError(error, place)).toMatchObject({ code, status: statusCode });
  });

  test("what the answer's body says counts as well", () => {
    const responseBody = JSON.stringify({ error: { code: "context_length_exceeded" } });
    expect(toModelError(apiError({ statusCode: 400, responseBody }), place).code).toBe("context-too-long");
  });

  test.each([
    [{ "retry-after": "3" }, 3_000],
    [{ "retry-after-ms": "250", "retry-after": "1" }, 250],
    [{ "retry-after": "Wed, 01 Jan 2025 00:00:30 GMT", date: "Wed, 01 Jan 2025 00:00:00 GMT" }, 30_000],
    [{}, undefined],
  ])("the headers %j ask for %s milliseconds", (responseHeaders: Record<string, string>, expected) => {
    const failure = toModelError(apiError({ statusCode: 429, responseHeaders }), place);
    expect(failure.retryAfterMs).toBe(expected);
  });

  test.each([
    [new TypeError("terminated"), "connection-failed", "stream-cut"],
    [Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }), "connection-failed", "stream-cut"],
    [apiError({ message: "Cannot connect to API: connect ECONNREFUSED" }), "connection-failed", "stream-cut"],
    [new JSONParseError({ text: "{", cause: undefined }), "stream-malformed", "stream-malformed"],
    [
      new InvalidResponseDataError({ data: {}, message: "Response stream ended without a finish reason." }),
      "stream-cut",
      "stream-cut",
    ],
    [new LoadAPIKeyError({ message: "OpenAI API key is missing." }), "unauthorized", "unauthorized"],
    [{ message: "Rate limit reached", type: "tokens" }, "rate-limited", "rate-limited"],
    [{ message: "The server is overloaded", type: "server_error" }, "overloaded", "overloaded"],
    [{ error: { message: "busy", code: "overloaded" } }, "overloaded", "overloaded"],
    ["something", "server-error", "server-error"],
    [undefined, "server-error", "server-error"],
    [null, "server-error", "server-error"],
  ])("%s is %s before an answer and %s inside it", (error, before, inside) => {
    expect(toModelError(error, place).code).toBe(before);
    expect(toModelError(error, { ...place, hasStarted: true }).code).toBe(inside);
  });

  test("the message names the model and what the provider said", () => {
    const failure = toModelError({ error: { message: "no such thing" } }, place);
    expect(failure.message).toBe("openai/gpt: no such thing");
  });
});

function apiError(fields: Partial<ConstructorParameters<typeof APICallError>[0]>): APICallError {
  return new APICallError({ message: "", url: "http://box", requestBodyValues: {}, ...fields });
}
