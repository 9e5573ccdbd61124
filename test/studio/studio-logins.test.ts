import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import { openFolder } from "@retinue/hosts/shared/open-project.ts";
import { startStudio } from "@retinue/hosts/studio/start-studio.ts";
import { createStudioLogins } from "@retinue/hosts/studio/studio-logins.ts";
import { expect, onTestFinished, test } from "vitest";
import { startAuthorizationServer } from "../scenarios/authorization-server.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { launchBrowser, missingBrowser } from "./sample-sessions.ts";

const token = "0123456789abcdef0123";

async function createStage() {
  const server = await startAuthorizationServer();
  const place = createPlace();
  const marker = join(place.home, "started");
  const local = { command: "/bin/sh", args: ["-c", `touch ${marker}`] };
  writeFileSync(
    join(place.home, ".claude.json"),
    JSON.stringify({ mcpServers: { docs: { type: "http", url: server.url }, local } }),
  );
  mkdirSync(join(place.home, "projects"));
  const closing = new AbortController();
  const host = { cwd: place.cwd, home: place.home, environment: {}, platform: process.platform };
  const studio = await startStudio({
    scope: { projects: join(place.home, "projects") },
    host: "127.0.0.1",
    port: 0,
    token,
    acting: { user: "ada", program: { file: "", arguments: [] }, environment: {}, cwd: place.cwd },
    // Only what finds the files is used of it.
    logins: createStudioLogins(openFolder(host as unknown as CliHost).mcp, closing.signal),
    log: () => undefined,
  });
  onTestFinished(async () => {
    closing.abort();
    await studio.close();
  });
  const ask = async (path: string, init: RequestInit = {}, key = token) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(new URL(path, studio.origin), {
      ...init,
      headers: { ...headers, ...init.headers },
    });
    return { status: response.status, text: await response.text() };
  };
  const begin = (name: string) =>
    ask("/api/login", { method: "POST", body: JSON.stringify({ server: name }) });
  const started = () => readdirSync(place.home).includes("started");
  return { server, studio, place, ask, begin, started };
}

test("the studio offers logins, takes the person there, and hears of their coming back [MCP-4] [STU-1]", async () => {
  const { server, ask, begin, place, started } = await createStage();
  expect(JSON.parse((await ask("/api/logins")).text)).toEqual({ servers: ["docs"] });
  // Looking for logins starts no programs.
  expect(started()).toBe(false);
  const { address } = JSON.parse((await begin("docs")).text);
  expect(address).toMatch(new RegExp(`^${server.issuer}/authorize\\?`));
  const ended = ask("/api/login?server=docs");
  await fetch(await server.logIn(address));
  expect(JSON.parse((await ended).text).outcome).toMatch(/^Logged in to docs at http/);
  expect(JSON.parse((await ask("/api/logins")).text)).toEqual({ servers: [] });
  const [file = ""] = readdirSync(join(place.home, ".claude/retinue/mcp-credentials"));
  expect(readFileSync(join(place.home, ".claude/retinue/mcp-credentials", file), "utf8")).toContain(
    server.given[0],
  );
});

test("a login that is begun again ends the one before; others are refused with a sentence [MCP-4]", async () => {
  const { server, ask, begin } = await createStage();
  await begin("docs");
  const first = ask("/api/login?server=docs");
  const { address } = JSON.parse((await begin("docs")).text);
  expect(await first).toMatchObject({
    status: 409,
    text: expect.stringContaining("Another login was started"),
  });
  const second = ask("/api/login?server=docs");
  await fetch(await server.logIn(address));
  expect(await second).toMatchObject({ status: 200 });
  expect(await begin("nothing")).toMatchObject({
    status: 409,
    text: expect.stringContaining("no MCP server"),
  });
  expect(await begin("local")).toMatchObject({ text: expect.stringContaining("not an HTTP server") });
  expect(await ask("/api/login?server=local2")).toMatchObject({ status: 400 });
  expect(await ask("/api/login", { method: "POST", body: "[]" })).toMatchObject({ status: 400 });
});

test("nobody begins a login without the token, nor from another page [MCP-4] [STU-1]", async () => {
  const { server, ask, studio } = await createStage();
  const body = JSON.stringify({ server: "docs" });
  expect(await ask("/api/login", { method: "POST", body }, "wrong")).toMatchObject({ status: 401 });
  expect(await ask("/api/logins", {}, "wrong")).toMatchObject({ status: 401 });
  const foreign = { origin: "http://evil.example" };
  expect(await ask("/api/login", { method: "POST", body, headers: foreign })).toMatchObject({ status: 403 });
  const plain = await fetch(new URL("/api/login", studio.origin), {
    method: "POST",
    body,
    headers: { authorization: `Bearer ${token}`, "content-type": "text/plain" },
  });
  expect(plain.status).toBe(400);
  expect(server.log).toEqual([]);
});

test.skipIf(missingBrowser)("the page shows the offer and what came of it [MCP-4] [STU-1]", async () => {
  const { server, studio } = await createStage();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(studio.link);
  const tab = page.waitForEvent("popup");
  await page.getByRole("button", { name: "Log in" }).click();
  await tab;
  await page.getByText(`Logged in to docs at ${server.issuer}.`).waitFor();
});
