import { PassThrough } from "node:stream";
import { streamLines } from "@retinue/base/foundation/stream-lines.ts";
import { describe, expect, it } from "vitest";
import { readAll } from "../cli/create-real-host.ts";
import type { CliInput } from "../shared/cli-host.ts";
import { readMessages, readPrompt } from "./run-print.ts";

const never = new AbortController().signal;

function pipe(text: string): CliInput {
  return {
    isTerminal: false,
    readAll: async () => text,
    async *lines() {
      yield* text.split("\n");
    },
  };
}

const terminal: CliInput = { ...pipe(""), isTerminal: true };

describe("the prompt [CLI-1]", () => {
  it.each([
    ["the words", ["what", "is here"], terminal, "what is here"],
    ["what is piped in", [], pipe("  explain this\n"), "explain this"],
    ["both, the words first", ["explain"], pipe("code\n"), "explain\n\ncode"],
    ["the words, where the pipe is empty", ["explain"], pipe(""), "explain"],
  ])("is %s", async (_, words, stdin, prompt) => {
    expect(await readPrompt(words, stdin)).toBe(prompt);
  });

  it.each([
    ["a terminal", terminal],
    ["an empty pipe", pipe(" \n")],
  ])("that is not there is a misuse, at %s [CLI-6]", async (_, stdin) => {
    await expect(readPrompt([], stdin)).rejects.toMatchObject({ code: "misuse" });
  });
});

describe("messages on stdin [CLI-1]", () => {
  const user = (content: unknown) => JSON.stringify({ type: "user", message: { role: "user", content } });
  const collect = async (text: string) => {
    const contents: unknown[] = [];
    for await (const content of readMessages(pipe(text), never)) contents.push(content);
    return contents;
  };

  it("are user messages, one per line; blank lines and other types are skipped", async () => {
    const blocks = [{ type: "text", text: "b" }];
    const lines = [user("a"), "", '{"type":"control_request"}', user(blocks)];
    expect(await collect(lines.join("\n"))).toEqual(["a", blocks]);
  });

  it.each([
    ["not json", /Line 2 of the input is not JSON/],
    [user(7), /Line 2 of the input has no message content/],
    [user([{ type: "tool_result" }]), /Line 2/],
    [user([]), /Line 2/],
    ['{"type":"user"}', /Line 2/],
  ])("that are %j end with their line [CLI-6]", async (line, message) => {
    await expect(collect(`${user("a")}\n${line}`)).rejects.toThrow(message);
  });
});

describe("a stream", () => {
  it("is read to its end, in whatever pieces it comes", async () => {
    const stream = new PassThrough();
    const text = readAll(stream, { limit: 100, timeoutMs: 10_000 });
    const bytes = Buffer.from("grüße");
    for (const byte of bytes) stream.write(Buffer.of(byte));
    stream.end();
    expect(await text).toBe("grüße");
  });

  it("that stays open and silent is let go", async () => {
    const stream = new PassThrough();
    expect(await readAll(stream, { limit: 100, timeoutMs: 1 })).toBe("");
    expect(stream.destroyed).toBe(true);
  });

  it("larger than the limit is refused", async () => {
    const stream = new PassThrough();
    stream.end("x".repeat(101));
    await expect(readAll(stream, { limit: 100 })).rejects.toThrow(/larger than 100 bytes/);
  });

  it("read by lines ends with its signal, also while it waits for a line", async () => {
    const stream = new PassThrough();
    const stop = new AbortController();
    stream.write("one\r\ntwo\nthr");
    const lines: string[] = [];
    for await (const line of streamLines(stream, stop.signal)) {
      lines.push(line);
      if (lines.length === 2) setImmediate(() => stop.abort());
    }
    expect(lines.slice(0, 2)).toEqual(["one", "two"]);
    expect(stream.destroyed).toBe(true);
  });
});
