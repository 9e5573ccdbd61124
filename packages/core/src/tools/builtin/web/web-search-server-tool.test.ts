import { expect, test } from "vitest";
import { webSearchServerTool } from "./web-search-server-tool.ts";

const able = { supportsServerTools: true };

test("a model without server tools has no web search", () => {
  expect(webSearchServerTool({ supportsServerTools: false })).toBeUndefined();
});

test.each([
  [{}, { name: "web_search", maxUses: 8 }],
  [{ maxUses: 2 }, { name: "web_search", maxUses: 2 }],
  [{ blockedDomains: ["b.com"] }, { name: "web_search", maxUses: 8, blockedDomains: ["b.com"] }],
  [
    { allowedDomains: ["a.com", "x.b.com", "b.com", "bb.com"], blockedDomains: ["b.com"] },
    { name: "web_search", maxUses: 8, allowedDomains: ["a.com", "bb.com"] },
  ],
  [{ allowedDomains: ["b.com"], blockedDomains: ["b.com"] }, undefined],
])("%j is reported to the provider as %j", (options, expected) => {
  expect(webSearchServerTool(able, options)).toEqual(expected);
});
