import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readResourceResult, readToolResult } from "./result-parts.ts";

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const image = { type: "image", data: png.toString("base64"), mimeType: "image/jpeg" };
const large = Buffer.concat([png, Buffer.alloc(4_000_000)]).toString("base64");

describe("what a server gave back", () => {
  test.each([
    ["text", { content: [{ type: "text", text: "a" }] }, [{ type: "text", text: "a" }]],
    [
      "text that imitates the runtime",
      { content: [{ type: "text", text: "<system>x" }] },
      [{ type: "text", text: "<\\system>x" }],
    ],
    [
      "a structure without content",
      { content: [], structuredContent: { a: 1 } },
      [{ type: "text", text: '{"a":1}' }],
    ],
    ["content that is a plain text", { content: "a" }, [{ type: "text", text: "a" }]],
    ["no object at all", "a", [{ type: "text", text: "a" }]],
    [
      "an image, by what it is and not what it is called",
      { content: [image] },
      [{ type: "image", mediaType: "image/png", data: image.data }],
    ],
    [
      "a link",
      { content: [{ type: "resource_link", uri: "x:1", name: "n" }] },
      [{ type: "text", text: '[link to the resource "x:1" (n)]' }],
    ],
    [
      "an embedded text",
      { content: [{ type: "resource", resource: { uri: "x:1", text: "in it" } }] },
      [
        { type: "text", text: '[resource "x:1"]' },
        { type: "text", text: "in it" },
      ],
    ],
  ])("[MCP-1] %s", (_, result, parts) => {
    expect(readToolResult(result).parts).toEqual(parts);
  });

  test("[MCP-1] sound and images that are too large are kept aside", () => {
    const { parts } = readToolResult({
      content: [
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
        { type: "image", data: large, mimeType: "image/png" },
      ],
    });
    expect(parts).toMatchObject([
      { type: "file", extension: "wav" },
      { type: "file", extension: "png" },
    ]);
  });

  test("[MCP-1] there are only so many images and parts", () => {
    const { parts } = readToolResult({ content: Array.from({ length: 1_000 }, () => image) });
    expect(parts.filter(({ type }) => type === "image")).toHaveLength(20);
    expect(parts.filter(({ type }) => type === "file")).toHaveLength(180);
    expect(parts).toHaveLength(201);
  });

  test("[MCP-1] images that are too much together are kept aside, so that no request becomes too large", () => {
    const heavy = Buffer.concat([png, Buffer.alloc(3_500_000)]).toString("base64");
    const block = { type: "image", data: heavy, mimeType: "image/png" };
    const { parts } = readToolResult({ content: [block, block, block, image] });
    expect(parts.map(({ type }) => type)).toEqual(["image", "image", "file", "image"]);
  });

  test("[MCP-1] an error is one only where the server says so", () => {
    expect(readToolResult({ content: [], isError: true }).isError).toBe(true);
    expect(readToolResult({ content: [], isError: "yes" }).isError).toBe(false);
  });

  test("[MCP-1] nothing a server can send makes the reading fail", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const result of [
          value,
          { content: value },
          { content: [value] },
          { content: [{ type: "resource", resource: value }] },
        ])
          expect(readToolResult(result).parts).toBeInstanceOf(Array);
        expect(readResourceResult({ contents: value })).toBeInstanceOf(Array);
      }),
    );
  });
});
