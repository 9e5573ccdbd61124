import { describe, expect, it } from "vitest";
import { emptyJsonFile } from "./empty-json-file.ts";

describe("a JSON file that is made here", () => {
  it.each([
    ["/p/.claude/settings.local.json", "settings"],
    ["/home/me/.claude/settings.json", "settings"],
    ["/p/.mcp.json", "mcp"],
  ])("%s names the schema %s [PUB-1]", (file, name) => {
    expect(JSON.parse(emptyJsonFile(file))).toEqual({
      $schema: `https://unpkg.com/retinue/schemas/${name}.json`,
    });
  });

  it("names none where people do not edit it", () => {
    expect(emptyJsonFile("/home/me/.claude.json")).toBe("{}\n");
    expect(emptyJsonFile("/home/me/.claude/retinue/mcp-approvals.json")).toBe("{}\n");
  });
});
