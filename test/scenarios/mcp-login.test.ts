import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type AuthorizationOptions,
  type AuthorizationServer,
  startAuthorizationServer,
} from "./authorization-server.ts";
import {
  createPlace,
  type Finished,
  type InProcessOptions,
  type Place,
  runInProcess,
} from "./run-command.ts";

interface Stage extends Place {
  readonly server: AuthorizationServer;
  run(words: readonly string[], options?: InProcessOptions): Promise<Finished>;
  /** Logs in by pasting what the person makes of the address that is shown. */
  paste(make: (address: string) => Promise<string>): Promise<Finished>;
  files(): readonly string[];
  /** What the model was sent. */
  asked(): readonly unknown[];
}

async function createStage(options: AuthorizationOptions = {}, steps: readonly Step[] = []): Promise<Stage> {
  const server = await startAuthorizationServer(options);
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  writeFileSync(
    join(place.home, ".claude.json"),
    JSON.stringify({ mcpServers: { docs: { type: "http", url: server.url } } }),
  );
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const run: Stage["run"] = (words, more = {}) =>
    runInProcess(place, words, { ...more, environment: { ...environment, ...more.environment } });
  const folder = join(place.home, ".claude/retinue/mcp-credentials");
  return {
    ...place,
    server,
    run,
    paste(make) {
      const shown = Promise.withResolvers<string>();
      return run(["mcp", "login", "docs", "--no-browser"], {
        watch(out) {
          const address = /^http\S+$/m.exec(out)?.[0];
          if (address !== undefined && out.includes(`${address}\n`)) shown.resolve(address);
        },
        host: {
          canAsk: true,
          ask: async () => make(await shown.promise),
          endQuestions: () => undefined,
        },
      });
    },
    asked: () => provider.requests.map(({ body }) => body),
    files: () => (existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []),
  };
}

const whoami: Step = { calls: [{ name: "mcp__docs__whoami", input: {} }] };

describe("[MCP-4] servers that want a login", () => {
  test("a browser logs in; the login serves runs, is shown nowhere, and is ended by logout [CLI-2]", async () => {
    const stage = await createStage({}, [whoami, "Done."]);
    const { server } = stage;
    const browser = join(stage.home, "browser");
    writeFileSync(browser, `#!${process.execPath}\nfetch(process.argv[2]);\n`);
    chmodSync(browser, 0o755);
    const login = await stage.run(["mcp", "login", "docs"], { environment: { BROWSER: browser } });
    expect(login).toMatchObject({ code: 0, err: "" });
    expect(login.out).toContain(
      `Logged in to \`docs\` at ${server.issuer}.\n✔ Connected, 1 tool, logged in at`,
    );
    expect(server.log).toEqual(["registered", "authorization_code: granted"]);
    const [file = "", ...others] = stage.files();
    expect(others).toEqual([]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const run = await stage.run([
      "-p",
      "Go.",
      "--allowedTools",
      "mcp__docs",
      "--output-format",
      "stream-json",
    ]);
    expect(run.code).toBe(0);
    expect(run.out).toContain("You are known by …");
    const asked = JSON.stringify(stage.asked());
    expect(asked).toContain("Knows ….");
    for (const secret of server.given) expect(asked).not.toContain(secret);
    const json = await stage.run(["mcp", "list", "--json"]);
    expect(JSON.parse(json.out).servers).toMatchObject([{ name: "docs", login: { renews: true } }]);
    const get = await stage.run(["mcp", "get", "docs"]);
    expect(get.out).toMatch(/login\s+yes, renewed by itself/);
    const doctor = await stage.run(["doctor"]);
    expect(doctor.out).toMatch(/ok\s+MCP servers\s+connected: docs/);
    const written = [login, run, json, get, doctor].map(({ out, err }) => out + err);
    const kept = [...stage.transcripts().values()].map((lines) => JSON.stringify(lines));
    expect(kept.length).toBeGreaterThan(0);
    expect(readFileSync(file, "utf8")).toContain(server.given[0]);
    for (const secret of server.given) expect([...written, ...kept].join("\n")).not.toContain(secret);
    expect((await stage.run(["mcp", "logout", "docs"])).out).toBe("Logged out of `docs`.\n");
    expect(server.log.at(-1)).toBe("revoked");
    expect(stage.files()).toEqual([]);
    expect((await stage.run(["mcp", "logout", "docs"])).out).toMatch(/^There was no login/);
  });

  test("without a browser the pasted address counts, or its code; the address of another login does not", async () => {
    const stage = await createStage();
    const { logIn } = stage.server;
    expect(await stage.paste(logIn)).toMatchObject({ code: 0 });
    const code = await stage.paste(
      async (address) => new URL(await logIn(address)).searchParams.get("code") ?? "",
    );
    expect(code).toMatchObject({ code: 0, out: expect.stringContaining("✔ Connected, 1 tool") });
    const before = stage.files().map((file) => readFileSync(file, "utf8"));
    const foreign = await stage.paste(async (address) =>
      (await logIn(address)).replace(/state=\w/, "state=x"),
    );
    expect(foreign).toMatchObject({ code: 1, err: expect.stringContaining("belongs to another login") });
    expect(stage.files().map((file) => readFileSync(file, "utf8"))).toEqual(before);
  });

  test("a run and `mcp list` without a login name the command immediately, and doctor warns", async () => {
    const stage = await createStage({}, ["Fine."]);
    const run = await stage.run(["-p", "Go."]);
    expect(run).toMatchObject({ code: 0, err: expect.stringContaining("Run `retinue mcp login docs`.") });
    const list = await stage.run(["mcp", "list"]);
    expect(list.out).toMatch(/! Needs authentication: .+ Run `retinue mcp login docs`\.$/m);
    const doctor = await stage.run(["doctor"]);
    expect(doctor.out).toMatch(
      /warning\s+MCP servers\s+docs needs a login\.\n\s+→ Run `retinue mcp login docs`\./,
    );
    expect(stage.server.log).toEqual([]);
  });

  test("a token that ends is renewed, by one process at a time, as a refresh token counts once", async () => {
    const stage = await createStage({ expiresIn: 1 });
    await stage.paste(stage.server.logIn);
    const lists = await Promise.all([1, 2, 3].map(() => stage.run(["mcp", "list"])));
    for (const { out } of lists) expect(out).toMatch(/✔ Connected, 1 tool/);
    expect(stage.server.log).toContain("refresh_token: granted");
    expect(stage.server.log).not.toContain("refresh_token: invalid_grant");
  });

  test("one that cannot be renewed ahead is used until it ends", async () => {
    const answer = (type: string) => (type === "refresh_token" ? 503 : undefined);
    const stage = await createStage({ expiresIn: 19, answer });
    await stage.paste(stage.server.logIn);
    expect((await stage.run(["mcp", "list"])).out).toMatch(/✔ Connected, 1 tool/);
    expect(stage.server.log).toContain("refresh_token: 503");
  });

  test("a renewal that says nothing of scope or refresh token leaves both as they were", async () => {
    const silent = { refresh_token: undefined, scope: undefined, expires_in: 3600 };
    const answer = (type: string) => (type === "refresh_token" ? silent : { scope: "read write" });
    const stage = await createStage({ expiresIn: 1, answer });
    await stage.paste(stage.server.logIn);
    expect((await stage.run(["mcp", "list"])).out).toMatch(/✔ Connected, 1 tool/);
    const { tokens } = JSON.parse(readFileSync(stage.files()[0] ?? "", "utf8")).credentials;
    const [, refreshToken, accessToken] = stage.server.given;
    expect(tokens).toMatchObject({ accessToken, refreshToken, scope: "read write" });
  });

  test("a lifetime of 0 is none: such a token is not renewed for every request", async () => {
    const stage = await createStage({ expiresIn: 0 });
    await stage.paste(stage.server.logIn);
    expect((await stage.run(["mcp", "list"])).out).toMatch(/✔ Connected, 1 tool/);
    expect(stage.server.log).toEqual(["registered", "authorization_code: granted"]);
  });

  test("a token that no header takes is refused, and is not shown", async () => {
    const stage = await createStage({ answer: () => ({ access_token: "secret\r\nX-Other: 1" }) });
    const { code, out, err } = await stage.paste(stage.server.logIn);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'retinue: The login at "docs" failed: the authorization server gave a token that cannot be sent.\n',
    });
    expect(out).not.toContain("secret");
    expect(stage.files()).toEqual([]);
  });

  test("a server that registers no clients is reported once, with what to do", async () => {
    const stage = await createStage({ metadata: { registration_endpoint: undefined } });
    const { err } = await stage.run(["mcp", "login", "docs"]);
    expect(err).toBe(
      'retinue: The login at "docs" failed: the authorization server does not register clients.\nRegister a client there, and set its id as `oauth.clientId`.\n',
    );
  });

  test("a wrong `oauth` is reported at its line, with what to do", async () => {
    const stage = await createStage();
    const docs = { type: "http", url: stage.server.url, oauth: { callbackPort: "8080" } };
    writeFileSync(join(stage.home, ".claude.json"), JSON.stringify({ mcpServers: { docs } }, undefined, 2));
    const { out } = await stage.run(["agents", "check"]);
    expect(out.replace(/\s+/g, " ")).toContain("`oauth.callbackPort` must be a port from 1 to 65535");
    expect(out).toContain("~/.claude.json:6:7");
    expect(out).toContain('→ Correct "oauth", or remove it');
  });

  test("client credentials need no person and leave nothing behind; wrong ones are not repeated", async () => {
    const stage = await createStage();
    const { url: address } = stage.server;
    const oauth = (clientSecret: string) => ({
      grant: "client_credentials",
      clientId: "robot",
      clientSecret,
    });
    const listed = (clientSecret: string) => {
      const robot = { type: "http", url: address, oauth: oauth(clientSecret) };
      return stage.run([
        "mcp",
        "list",
        "--strict-mcp-config",
        "--mcp-config",
        JSON.stringify({ mcpServers: { robot } }),
      ]);
    };
    expect((await listed("robot-secret")).out).toMatch(/^robot: .+ - ✔ Connected, 1 tool$/m);
    expect(stage.files()).toEqual([]);
    const wrong = await listed("wrong-secret");
    expect(wrong.out).toMatch(/invalid_client\. Check `oauth\.clientId` and `oauth\.clientSecret`\.?$/m);
    expect(wrong.out + wrong.err).not.toContain("wrong-secret");
  });

  test("no login is made for metadata about another server, nor at one that a project brings unapproved", async () => {
    const stage = await createStage({ resource: "https://bank.example.com/mcp" });
    const other = await stage.run(["mcp", "login", "docs", "--no-browser"]);
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining("about another server") });
    stage.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { theirs: { type: "http", url: stage.server.url } } }),
    );
    const untrusted = await stage.run(["mcp", "login", "theirs"]);
    expect(untrusted).toMatchObject({ code: 1, err: expect.stringContaining("the folder is not trusted") });
    const unapproved = await stage.run(["mcp", "login", "theirs", "--trust"]);
    expect(unapproved).toMatchObject({ code: 1, err: expect.stringContaining("retinue mcp approve theirs") });
    expect(stage.server.log).toEqual([]);
  });

  test("a login that was ended elsewhere fails the call with the command, and is not tried again", async () => {
    const stage = await createStage({}, [whoami, "Done."]);
    await stage.paste(stage.server.logIn);
    stage.server.endAll();
    const run = await stage.run(["-p", "Go.", "--output-format", "json"]);
    expect(run.err).toContain("Run `retinue mcp login docs`.");
    const [file = ""] = stage.files();
    expect(readFileSync(file, "utf8")).not.toMatch(/accessToken|refreshToken/);
    const refused = stage.server.log.filter((line) => line === "refresh_token: invalid_grant");
    await stage.run(["mcp", "list"]);
    expect(refused).toHaveLength(1);
    expect(stage.server.log.filter((line) => line === refused[0])).toHaveLength(1);
    expect(await stage.paste(stage.server.logIn)).toMatchObject({ code: 0 });
  });

  test("a damaged file counts as no login, and the next one repairs it", async () => {
    const stage = await createStage();
    await stage.paste(stage.server.logIn);
    const [file = ""] = stage.files();
    for (const text of ["", "{", "[]", '{"keptIn":"file"}', '{"keptIn":"file","credentials":{"client":1}}']) {
      writeFileSync(file, text);
      const list = await stage.run(["mcp", "list"]);
      expect(list.out).toContain("Run `retinue mcp login docs`.");
    }
    expect(await stage.paste(stage.server.logIn)).toMatchObject({ code: 0 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.each([
    { token_endpoint: "http://evil.example/token" },
    { authorization_endpoint: "file:///etc/passwd" },
    { authorization_endpoint: "javascript:alert(1)" },
    { registration_endpoint: "http://10.0.0.1/register" },
  ])("nothing is sent to, and no browser is opened at, %j", async (metadata) => {
    const stage = await createStage({ metadata });
    const opened = join(stage.home, "opened");
    const browser = join(stage.home, "browser");
    writeFileSync(browser, `#!/bin/sh\necho "$1" >> ${opened}\n`);
    chmodSync(browser, 0o755);
    const login = stage.run(["mcp", "login", "docs", "--no-browser"], {
      environment: { BROWSER: browser },
      input: "code-from-nowhere\n",
    });
    expect(await login).toMatchObject({ code: 1, err: expect.stringMatching(/failed: /) });
    expect(existsSync(opened)).toBe(false);
    expect(stage.files()).toEqual([]);
  });

  test("an agent reads no login and no client's secret, and cannot log in or out itself [PRM-9]", async () => {
    let file = "";
    const command = (text: string) => ({ name: "Bash", input: { command: text } });
    const stage = await createStage({}, [
      () => ({
        calls: [
          { name: "Read", input: { file_path: file } },
          command(`cat ${file}`),
          command("retinue mcp logout docs"),
          command("echo secret-is:$MCP_CLIENT_SECRET:"),
        ],
      }),
      "Done.",
    ]);
    await stage.paste(stage.server.logIn);
    file = stage.files()[0] ?? "";
    const run = await stage.run(
      ["-p", "Go.", "--output-format", "stream-json", "--allowedTools", "Bash(echo:*)"],
      { environment: { MCP_CLIENT_SECRET: "hush-hush" } },
    );
    expect(run.code).toBe(0);
    for (const secret of [...stage.server.given, "hush-hush"]) expect(run.out).not.toContain(secret);
    expect(run.out).toContain("secret-is::");
    expect(stage.files()).toEqual([file]);
  });
});
