import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import { expect, test } from "vitest";
import { hideInAddress, hideInAnswer, hideSecrets } from "./hide-secrets.ts";

const web: McpTransport = {
  type: "http",
  url: "https://anna:pass-word@docs.example.com/mcp?token=abc%2Fdef&v=1",
  headers: { Authorization: "Bearer head-er-key" },
};
const variable = "$" + "{KEY}";
const program: McpTransport = {
  type: "stdio",
  command: "x",
  args: [],
  env: { API_KEY: "env-secret", MODE: "production" },
};

test.each([
  [
    "a request to https://anna:pass-word@docs.example.com/mcp",
    web,
    "a request to https://anna:…@docs.example.com/mcp",
  ],
  ["?token=abc%2Fdef or abc/def, v=1", web, "?token=… or …, v=1"],
  ["Bearer head-er-key is not head-er-key", web, "… is not …"],
  ["env-secret in production", program, "… in production"],
  ["nothing to hide", { type: "sdk" }, "nothing to hide"],
] satisfies [
  string,
  McpTransport,
  string,
][])("[MCP-1] %j of a failure shows no key", (text, transport, shown) => {
  expect(hideSecrets(text, transport)).toBe(shown);
});

test.each([
  ["https://docs.example.com/mcp", "https://docs.example.com/mcp"],
  ["https://anna:pw@docs.example.com/mcp", "https://…@docs.example.com/mcp"],
  ["https://x.example.com/mcp?key=abc&mode=b#c", "https://x.example.com/mcp?key=…&mode=…#c"],
  [`https://x.example.com/mcp?key=${variable}`, `https://x.example.com/mcp?key=${variable}`],
])("[MCP-1] %j is shown without what only its owner may see", (address, shown) => {
  expect(hideInAddress(address)).toBe(shown);
});

test("[MCP-4] an answer is without tokens, in its keys, in addresses and between quotes too", () => {
  const tokens = ["to/ken+one=", 'to"ken\\two'];
  const answer = {
    content: [{ type: "text", text: 'to/ken+one= and to"ken\\two' }, { uri: "x://to%2Fken%2Bone%3D" }],
    structuredContent: { "to/ken+one=": [{ deep: "to/ken+one=" }], other: 1 },
  };
  expect(hideInAnswer(answer, tokens)).toEqual({
    content: [{ type: "text", text: "… and …" }, { uri: "x://…" }],
    structuredContent: { "…": [{ deep: "…" }], other: 1 },
  });
  expect(hideInAnswer(answer, [])).toBe(answer);
});
