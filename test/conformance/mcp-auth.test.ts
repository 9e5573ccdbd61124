import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";

const suite = join(projectRoot, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const client = `${process.execPath} ${join(projectRoot, "test/conformance/mcp-client.ts")}`;

test("the official scenarios for authorization of clients pass [MCP-4]", { timeout: 240_000 }, async () => {
  const words = ["client", "--command", client, "--suite", "auth", "--timeout", "120000"];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [suite, ...words], {
    maxBuffer: 2 ** 26,
    // Those who start it may forbid the cache of compiled code to all that they start.
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"] },
  });
  const said = stripVTControlCharacters(`${stdout}${stderr}`);
  expect(said.match(/^[✓✗] .+$/gm)).toHaveLength(14);
  expect(said).toMatch(/^Total: \d{3} passed, 0 failed, 0 warnings$/m);
});
