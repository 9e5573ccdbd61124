import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { startAuthorizationServer } from "../scenarios/authorization-server.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { keys, openPty } from "./pty-stage.ts";

async function createStage() {
  const server = await startAuthorizationServer();
  const provider = await startFakeProvider({ respond: () => "Fine." });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  writeFileSync(
    join(place.home, ".claude.json"),
    JSON.stringify({ mcpServers: { docs: { type: "http", url: server.url } } }),
  );
  const browser = join(place.home, "browser");
  writeFileSync(browser, `#!${process.execPath}\nfetch(process.argv[2]);\n`);
  chmodSync(browser, 0o755);
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", BROWSER: browser };
  return { server, provider, place, environment };
}

test("a server that wants a login is offered, and its tools are there after it [MCP-4]", async () => {
  const { server, provider, place, environment } = await createStage();
  const pty = openPty(place, [], { environment });
  await pty.shows("The MCP server docs wants you to log in", "log in", "not now");
  await pty.takesAnswers();
  pty.type("1");
  await pty.hasShown(`Logged in to docs at ${server.issuer}.`);
  await expect.poll(() => server.log).toContain("authorization_code: granted");
  pty.type("/mcp");
  await pty.shows("/mcp");
  pty.type(keys.enter);
  await pty.shows("docs  connected, 1 tool");
  pty.type(keys.escape);
  await pty.isMissing("connected, 1 tool");
  pty.type(`hello${keys.enter}`);
  await pty.shows("Fine.");
  const { tools } = provider.requests.at(-1)?.request ?? { tools: [] };
  expect(tools.map(({ name }) => name)).toContain("mcp__docs__whoami");
  for (const secret of server.given) expect(pty.bytes()).not.toContain(secret);
});

test("an offer that is declined is not repeated, and `/mcp login` does it later [MCP-4]", async () => {
  const { server, place, environment } = await createStage();
  const pty = openPty(place, ["--plain"], { environment });
  await pty.shows("The MCP server docs wants you to log in");
  pty.type(`/no${keys.enter}`);
  pty.type(`hello${keys.enter}`);
  await pty.shows("Fine.");
  expect(server.log).toEqual([]);
  pty.type(`/mcp login docs${keys.enter}`);
  await pty.shows("Logged in to docs at");
  pty.type(`/mcp login nothing${keys.enter}`);
  await pty.shows("There is no MCP server `nothing`.");
});
