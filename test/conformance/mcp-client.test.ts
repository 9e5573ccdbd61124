import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { installOnDemand } from "../on-demand/install-on-demand.ts";
import { projectRoot } from "../project-files.ts";

const { folder, missing } = await installOnDemand("conformance");
const skipped = missing === undefined ? "" : ` (skipped: ${missing})`;
const suite = join(folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const client = `${process.execPath} ${join(projectRoot, "test/conformance/mcp-client.ts")}`;

/** Runs scenarios of the official suite, and gives those that passed and those that failed. */
async function conform(...what: readonly string[]) {
  const words = ["client", "--command", client, ...what, "--timeout", "120000"];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [suite, ...words], {
    maxBuffer: 2 ** 26,
    // Programs that start it may forbid the cache of compiled code to all that they start; it starts dozens of clients.
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      // What the clients leave goes with the rest of the run.
      TMPDIR: process.env["TMPDIR"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    },
  }).catch((failure: { stdout: string; stderr: string }) => failure);
  const said = stripVTControlCharacters(`${stdout}${stderr}`);
  const names = (mark: string) =>
    [...said.matchAll(new RegExp(`^${mark} (\\S+):`, "gm"))].map(([, name]) => name).toSorted();
  return { said, passed: names("✓"), failed: names("✗") };
}

describe.skipIf(missing !== undefined)(`the official conformance suite${skipped}`, () => {
  test("the official scenarios for authorization of clients pass [MCP-4]", { timeout: 240_000 }, async () => {
    const { said, passed } = await conform("--suite", "auth");
    expect(passed).toHaveLength(14);
    expect(said).toMatch(/^Total: \d{3} passed, 0 failed, 0 warnings$/m);
  });

  // The suite's `sse-retry` measures how soon a client comes back, which a busy machine delays.
  test.each([
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
  ])("the official scenario %s passes [MCP-1]", { timeout: 120_000 }, async (scenario) => {
    expect((await conform("--scenario", scenario)).said).toMatch(
      /^Passed: (\d+)\/\1, 0 failed, 0 warnings$/m,
    );
  });

  test.each([
    [
      "draft",
      ["auth/offline-access-not-supported", "auth/offline-access-scope", "auth/resource-mismatch"],
      [],
    ],
    // Not there: assertions that are signed with a key, and access that another application grants.
    [
      "extensions",
      ["auth/client-credentials-basic"],
      ["auth/client-credentials-jwt", "auth/cross-app-access-complete-flow"],
    ],
    // Metadata that name another issuer than their address are refused, as later versions demand.
    [
      "backcompat",
      ["auth/2025-03-26-oauth-endpoint-fallback"],
      ["auth/2025-03-26-oauth-metadata-backcompat"],
    ],
  ])(
    "of the official suite %s passes what is there [MCP-4]",
    { timeout: 120_000 },
    async (name, passed, failed) => {
      expect(await conform("--suite", name)).toMatchObject({ passed, failed });
    },
  );
});
