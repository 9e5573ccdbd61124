// The client that the MCP conformance suite drives: logs in as `retinue mcp login` does, with a browser that says yes to everything.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readServer } from "@retinue/config/mcp/mcp-server-config.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import { connectServers } from "@retinue/core/mcp/connect-servers.ts";
import { createCredentialStore } from "@retinue/core/mcp/oauth/credential-store.ts";
import { logIn } from "@retinue/core/mcp/oauth/log-in.ts";

const url = process.argv.at(-1) ?? "";
const context: Record<string, string> = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const { client_id: clientId, client_secret: clientSecret } = context;
const oauth = {
  ...(scenario.includes("client-credentials") ? { grant: "client_credentials" } : {}),
  ...(scenario.includes("cimd")
    ? { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" }
    : {}),
  ...(clientId === undefined ? {} : { clientId }),
  ...(clientSecret === undefined ? {} : { clientSecret }),
};
const { transport, unusable } = readServer("conformance", { type: "http", url, oauth }, [], []);
if (transport === undefined || transport.type !== "http") throw new Error(unusable);
const server: McpServer = { name: "conformance", scope: "flag", transport };
const store = createCredentialStore(mkdtempSync(join(tmpdir(), "conformance-")), undefined);
const { signal } = new AbortController();

async function visit(address: string): Promise<void> {
  const answer = await fetch(address, { redirect: "manual" });
  await fetch(answer.headers.get("location") ?? "");
}

const options = {
  environment: {},
  directory: process.cwd(),
  startLimitMs: 100_000,
  callLimitMs: 100_000,
  maxResultCharacters: 10_000,
  credentials: store,
  // A person who sends each form as it is.
  ask: async () => ({ action: "accept" as const, content: {} }),
};

/** As a person would: whenever it asks for a login, log in and continue, a few times. */
for (let logins = 0; logins < 3; logins += 1) {
  await using connections = connectServers([server], options);
  await connections.ready;
  const [state] = connections.states();
  let wantsLogin = state?.status.type === "failed" && state.status.needsAuth === true;
  if (state?.status.type === "failed" && !wantsLogin) throw new Error(state.status.reason);
  for (const tool of connections.tools()) {
    const { text, isError } = await connections.call(
      "conformance",
      tool.mcp?.tool ?? "",
      { a: 1, b: 2 },
      { signal },
    );
    wantsLogin ||= isError && text.includes("retinue mcp login");
  }
  if (!wantsLogin) break;
  await logIn("conformance", transport, { store, visit, signal });
}
