import { describe, expect, test } from "vitest";
import { isContextTooLong } from "./model-error.ts";

describe("[CMP-4] a refusal for size", () => {
  test.each([
    "prompt is too long: 1250041 tokens > 1000000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
    "Request exceeds the maximum size (request_too_large)",
    "Input is too long for requested model.",
    "Too many input tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "context_length_exceeded",
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000.",
    "Invalid 'messages[0].content': string too long (string_above_max_length). Expected a string with maximum length 10485760",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "the request exceeds the available context size, try increasing it",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "Please reduce the length of the messages or completion.",
    "too many tokens: total number of tokens in the prompt exceeds the limit of 4081",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "This endpoint's maximum context length is 131072 tokens.",
    "`inputs` must have less than 1024 tokens. Given: 3000",
    "Trying to keep the first 9000 tokens when context the overflows. Number of tokens to keep from the initial prompt is greater than the context length.",
    "413 Request Entity Too Large",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes",
    "At least one of the image dimensions exceed max allowed size: 8000 pixels, and the maximum is",
    "A maximum of 100 PDF pages may be provided.",
    "Could not process image",
  ])("is seen: %s", (words) => {
    expect(isContextTooLong(words)).toBe(true);
  });

  test.each([
    "messages: roles must alternate between user and assistant",
    "max_tokens: must be greater than or equal to 1",
    "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for this model",
    "tools.0.name: String should match pattern",
    "Your credit balance is too low to access the API.",
    "Rate limit reached for requests per minute. Please try again in 20s.",
    "Number of request tokens has exceeded your per-minute rate limit",
    "The server had an error while processing your request.",
    "temperature: range: 0..1",
    "model: field required",
    "This model does not support images",
    "The file was not found",
  ])("is not taken for one: %s", (words) => {
    expect(isContextTooLong(words)).toBe(false);
  });
});
