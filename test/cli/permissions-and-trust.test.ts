import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";

function createFixture() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-permissions-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(cwd);
  mkdirSync(home);
  return {
    cwd,
    home,
    write(path: string, content: unknown) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), typeof content === "string" ? content : JSON.stringify(content));
    },
    state: () => JSON.parse(readFileSync(join(home, ".claude.json"), "utf8")),
    run: (arguments_: readonly string[], host: Partial<CliHost> = {}) =>
      runInProcess({ cwd, home }, arguments_, { environment: { COLUMNS: "100" }, host }),
  };
}

const projectSettings = {
  permissions: { allow: ["Bash(npm test)"], deny: ["Read(.env)"] },
  hooks: { Stop: [{ hooks: [{ type: "command", command: "./notify.sh" }] }] },
  env: { NODE_OPTIONS: "--require ./x.js" },
  apiKeyHelper: "./key.sh",
};

describe("retinue permissions add and remove", () => {
  it("write a rule to the settings of a scope and take it out again; what cannot be meant is an error [PRM-8]", async () => {
    const fixture = createFixture();
    const said = await fixture.run(["permissions", "add", "Bash(npm test *)"]);
    expect(said).toMatchObject({
      code: 0,
      out: 'Added Bash(npm test *) to "allow" in .claude/settings.local.json.\n',
    });
    await fixture.run(["permissions", "add", "Read(.env)", "--list", "deny", "--scope", "project"]);
    await fixture.run(["permissions", "add", "WebFetch", "--list", "ask", "--scope", "user"]);
    const read = (file: string) => JSON.parse(readFileSync(file, "utf8")).permissions;
    expect(read(join(fixture.cwd, ".claude/settings.local.json"))).toEqual({ allow: ["Bash(npm test *)"] });
    expect(read(join(fixture.cwd, ".claude/settings.json"))).toEqual({ deny: ["Read(.env)"] });
    expect(read(join(fixture.home, ".claude/settings.json"))).toEqual({ ask: ["WebFetch"] });
    const again = await fixture.run(["permissions", "add", "Bash(npm test *)", "--json"]);
    expect(JSON.parse(again.out)).toMatchObject({ changed: false, list: "allow", scope: "local" });

    const removed = await fixture.run(["permissions", "remove", "Bash(npm test:*)"]);
    expect(removed).toMatchObject({
      code: 0,
      out: 'Took Bash(npm test:*) out of "allow" in .claude/settings.local.json.\n',
    });
    expect(read(join(fixture.cwd, ".claude/settings.local.json"))).toEqual({ allow: [] });
    for (const [words, text] of [
      [["remove", "Bash(npm test *)"], "has no rule Bash(npm test *)"],
      [["add", "Bash("], "The rule Bash( is not valid"],
      [["add", "Read", "--scope", "planet"], "--scope"],
      [["add"], "permissions add"],
    ] as const) {
      const { code, err } = await fixture.run(["permissions", ...words]);
      expect(code).not.toBe(0);
      expect(err).toContain(text);
    }
  });
});

describe("retinue permissions list", () => {
  it("lists every rule with the file it is in, the strictest list first [PRM-8]", async () => {
    const fixture = createFixture();
    fixture.write("home/.claude/settings.json", {
      permissions: { allow: ["Read(~/notes/**)"], ask: ["Bash(git push *)"] },
    });
    fixture.write("project/.claude/settings.json", { permissions: { deny: ["Bash(rm *)"] } });
    const { code, out } = await fixture.run(["permissions", "list", "--disallowedTools", "WebFetch"]);
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.trimEnd().split(/\s{2,}/))).toEqual([
      ["LIST", "RULE", "FROM"],
      ["deny", "WebFetch", "--disallowedTools"],
      ["deny", "Bash(rm *)", ".claude/settings.json"],
      ["ask", "Bash(git push *)", "~/.claude/settings.json"],
      ["allow", "Read(~/notes/**)", "~/.claude/settings.json"],
      [""],
    ]);
  });

  it("shows what trust holds back and why, and counts it once the folder is trusted [PRM-11]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", projectSettings);
    const before = await fixture.run(["permissions"]);
    expect(before.out).toMatch(
      /Held back\n.*\npermissions\.allow +Bash\(npm test\).* the folder is not trusted/,
    );
    expect(before.err).toContain("held back: `retinue trust --show` shows.");
    const after = await fixture.run(["--trust", "permissions"]);
    expect(after.out).toMatch(/^allow +Bash\(npm test\)/m);
    expect(after.out).not.toContain("Held back");
  });

  it("shows broken rules, and ends with 1 when a restriction is among them", async () => {
    const fixture = createFixture();
    fixture.write("home/.claude/settings.json", { permissions: { allow: ["Bash("] } });
    const mild = await fixture.run(["permissions", "list"]);
    expect(mild).toMatchObject({ code: 0 });
    expect(mild.out).toContain("Broken");
    fixture.write("home/.claude/settings.json", { permissions: { deny: ["Bash("] } });
    const { code, out } = await fixture.run(["permissions", "list", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      version: 1,
      mode: "default",
      rules: [],
      broken: [{ list: "deny", rule: "Bash(", from: "~/.claude/settings.json" }],
    });
  });
});

describe("retinue permissions test", () => {
  const settled = () => {
    const fixture = createFixture();
    fixture.write("home/.claude/settings.json", {
      permissions: { allow: ["Bash(npm test)"], ask: ["Bash(git push *)"], deny: ["Read(~/.ssh/**)"] },
    });
    return fixture;
  };
  const decided = async (fixture: ReturnType<typeof createFixture>, ...words: string[]) =>
    JSON.parse((await fixture.run(["permissions", "test", "--json", ...words])).out);

  it.each([
    ["Bash(npm test)", "allow", "Bash(npm test)"],
    ["Bash(git push origin main)", "ask", "Bash(git push *)"],
    ["Read(~/.ssh/id_rsa)", "deny", "Read(~/.ssh/**)"],
  ])("names the rule and the file that decide %s [PRM-8]", async (call, decision, rule) => {
    const fixture = settled();
    expect(await decided(fixture, call)).toMatchObject({ decision, rule, from: "~/.claude/settings.json" });
    const { code, out } = await fixture.run(["permissions", "test", call]);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^${decision}: `));
    expect(out).toContain(`rule: ${rule}, from ~/.claude/settings.json`);
  });

  it("shows what each part of a shell command gets by itself [PRM-9]", async () => {
    const fixture = settled();
    const { out } = await fixture.run([
      "permissions",
      "test",
      "Bash(npm test && git push origin x; npm publish)",
    ]);
    expect(out).toMatch(/^ask: /);
    expect(out).toMatch(/^ {2}allow +npm test: Bash\(npm test\), from ~\/\.claude\/settings\.json$/m);
    expect(out).toMatch(/^ {2}ask +git push origin x: Bash\(git push \*\)/m);
    expect(out).toMatch(/^ {2}ask +npm publish: /m);
  });

  it("takes a tool with its whole input, a mode, and rules of the call", async () => {
    const fixture = settled();
    const write = ["--tool", "Write", "--input", JSON.stringify({ file_path: "a.txt", content: "x" })];
    expect(await decided(fixture, ...write)).toMatchObject({ decision: "ask" });
    expect(await decided(fixture, ...write, "--mode", "acceptEdits")).toMatchObject({
      decision: "allow",
      mode: { value: "acceptEdits", from: "the call" },
    });
    expect(await decided(fixture, "Bash(npm publish)", "--allowedTools", "Bash(npm publish)")).toMatchObject({
      decision: "allow",
      from: "--allowedTools",
    });
    expect(await decided(fixture, "Bash(npm test)", "--disallowedTools", "Bash(npm *)")).toMatchObject({
      decision: "deny",
      from: "--disallowedTools",
    });
  });

  it("shows with --explain all that was looked at", async () => {
    const { out } = await settled().run(["permissions", "test", "--explain", "Bash(npm publish)"]);
    expect(out).toContain("mode: default, from the default");
    expect(out).toContain("rules: 1 deny, 1 ask, 1 allow");
    expect(out).toContain("with -p no one can be asked, so the call is refused");
  });

  it.each([
    [[]],
    [["Bash(git"]],
    [["Bsh(ls)"]],
    [["Bash(ls)", "--tool", "Read"]],
    [["--tool", "Read", "--input", "[]"]],
    [["--tool", "Read", "--input", "{"]],
    [["Bash(ls)", "--mode", "yolo"]],
  ])("refuses %j", async (words) => {
    expect((await settled().run(["permissions", "test", ...words])).code).toBe(2);
  });

  it("decides nothing while a restriction cannot be read", async () => {
    const fixture = createFixture();
    fixture.write("home/.claude/settings.json", { permissions: { deny: ["Bash("] } });
    expect((await fixture.run(["permissions", "test", "Bash(ls)"])).code).toBe(1);
  });
});

describe("retinue trust [PRM-11]", () => {
  it("shows what trusting would let run, and changes nothing with --show", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", projectSettings);
    fixture.write(
      "project/.claude/agents/sql.md",
      "---\nname: sql\ndescription: Reviews SQL.\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: ./agent-hook.sh\n---\nYou review.\n",
    );
    const { code, out } = await fixture.run(["trust", "--show"]);
    expect(out).toMatch(/^Commands that run without asking are (?:not )?isolated/m);
    expect(code).toBe(0);
    expect(out).toContain(`Not trusted: ${fixture.cwd}`);
    expect(out).toContain("hooks.Stop: ./notify.sh  (.claude/settings.json)");
    expect(out).toContain("apiKeyHelper: ./key.sh");
    expect(out).toContain("agent sql, hooks.Stop: ./agent-hook.sh  (.claude/agents/sql.md)");
    expect(out).toContain("permissions.allow: Bash(npm test)");
    expect(() => fixture.state()).toThrow("ENOENT");
  });

  it("shows everything that would run or be set, in full", async () => {
    const fixture = createFixture();
    const long = `./helper.sh ${"--quiet ".repeat(60)}; ./evil.sh`;
    fixture.write("project/.claude/settings.json", {
      permissions: { allow: ["Bash(npm *)"], additionalDirectories: ["/srv"], defaultMode: "acceptEdits" },
      hooks: {
        Stop: [
          {
            hooks: [
              {
                type: "http",
                url: "https://h.test/x",
                headers: { A: "Bearer $KEY" },
                allowedEnvVars: ["KEY"],
              },
              { type: "command", command: "run", args: ["--now", "a b"] },
              { type: "prompt", prompt: "Was it\ngood?", model: "haiku" },
              { type: "mcp_tool", server: "db", tool: "drop", input: { all: true } },
            ],
          },
        ],
      },
      env: { APP_URL: "https://evil.test", PATH: "./bin" },
      apiKeyHelper: long,
      statusLine: { type: "command", command: "./status.sh" },
      enabledPlugins: { "p@m": true },
      extraKnownMarketplaces: { m: { source: { source: "github", repo: "evil/m" } } },
      sandbox: { network: { allowedDomains: ["evil.test"] } },
      model: "opus",
    });
    fixture.write("project/.mcp.json", {
      mcpServers: {
        local: { command: "npx", args: ["-y", "thing"], env: { TOKEN: "$TOKEN" } },
        far: { type: "http", url: "https://m.test", headers: { K: "$KEY" }, headersHelper: "./headers.sh" },
      },
    });
    fixture.write(
      "project/.claude/agents/a.md",
      "---\nname: a\ndescription: d\nmcpServers:\n  - own: { command: ./server, args: [--x], env: { S: t } }\n---\nA.\n",
    );
    fixture.write(
      "project/.claude/agents/r.md",
      "---\nname: r\ndescription: d\nrunner: { acp: ./vendor --acp, unguarded: true }\nverify: ./check.sh --all\n---\nR.\n",
    );
    fixture.write("project/packages/b/.claude/settings.json", { hooks: {} });
    fixture.write("project/node_modules/c/.mcp.json", {});
    const { out } = await fixture.run(["trust", "--show"]);
    const lines = out.split("\n").map((line) => line.trim().replace(/ {2}\(.*\)$/, ""));
    for (const line of [
      'hooks.Stop: sends to https://h.test/x headers={"A":"Bearer $KEY"} allowedEnvVars=["KEY"]',
      "hooks.Stop: run --now a b",
      'hooks.Stop: asks a model: "Was it\\ngood?" model=haiku',
      'hooks.Stop: calls drop of the MCP server db input={"all":true}',
      `apiKeyHelper: ${long}`,
      'statusLine: {"type":"command","command":"./status.sh"}',
      'enabledPlugins: {"p@m":true}',
      'extraKnownMarketplaces: {"m":{"source":{"source":"github","repo":"evil/m"}}}',
      'MCP server local: npx -y thing env={"TOKEN":"$TOKEN"}',
      'MCP server far: https://m.test headers={"K":"$KEY"} headersHelper=./headers.sh',
      'agent a, MCP server own: ./server --x env={"S":"t"}',
      "agent r, runner: ./vendor --acp (unguarded)",
      "agent r, verify: ./check.sh --all",
      "env.APP_URL: https://evil.test",
      "permissions.allow: Bash(npm *)",
      "permissions.additionalDirectories: /srv",
      "permissions.defaultMode: acceptEdits",
      'sandbox.network.allowedDomains: ["evil.test"]',
      "model: opus",
      "packages/b/.claude/settings.json",
    ])
      expect(lines).toContain(line);
    // What trust would not change is not promised by it.
    expect(out).not.toMatch(/env\.PATH|node_modules/);
    expect(JSON.parse((await fixture.run(["trust", "--json"])).out)).toMatchObject({
      nested: ["packages/b/.claude/settings.json"],
    });
  });

  it("asks in a terminal, and stores only a yes", async () => {
    const fixture = createFixture();
    const answering = (answer: string) => ({ canAsk: true, ask: async () => answer });
    expect(await fixture.run(["trust"], answering(""))).toMatchObject({ code: 1 });
    expect(() => fixture.state()).toThrow("ENOENT");
    expect((await fixture.run(["trust"], answering("y"))).code).toBe(0);
    expect(fixture.state().projects[fixture.cwd]).toEqual({ hasTrustDialogAccepted: true });
  });

  it("needs --yes where nobody can be asked", async () => {
    const fixture = createFixture();
    expect(await fixture.run(["trust"])).toMatchObject({ code: 2 });
    expect(await fixture.run(["trust", "--yes"])).toMatchObject({ code: 0 });
    const again = await fixture.run(["trust", "--show"]);
    expect(again.out).toContain(`Trusted: ${fixture.cwd} is accepted as trusted`);
  });

  it("shows what skills of the project would run and allow, and memory that all projects share [SKL-3, MEM-1]", async () => {
    const fixture = createFixture();
    const hooks = "hooks:\n  Stop:\n    - hooks: [{type: command, command: ./heard.sh}]\n";
    fixture.write(
      "project/.claude/skills/ship/SKILL.md",
      `---\ndescription: d\nallowed-tools: Bash(git *)\n${hooks}---\n!\`git status\`\n`,
    );
    fixture.write("project/.claude/skills/text/SKILL.md", "---\ndescription: d\n---\nOnly text.\n");
    fixture.write("home/.claude/skills/mine/SKILL.md", "---\ndescription: d\n---\n!`pwd`\n");
    fixture.write("project/.claude/agents/a.md", "---\nname: a\ndescription: d\nmemory: user\n---\nA.\n");
    const { out } = await fixture.run(["trust", "--json"]);
    expect(JSON.parse(out).parts).toMatchObject([
      { kind: "runs", name: "skill ship, command", value: "git status" },
      { kind: "runs", name: "skill ship, hooks.Stop", value: "./heard.sh" },
      { kind: "right", name: "skill ship, allowed-tools", value: "Bash(git *)" },
      { kind: "setting", name: "agent a, memory", value: "user" },
    ]);
  });

  it("trusts another folder by its path, and takes trust back with --remove", async () => {
    const fixture = createFixture();
    fixture.write("project/sub/file", "");
    const sub = join(fixture.cwd, "sub");
    await fixture.run(["trust", "sub", "--yes"]);
    expect(fixture.state().projects[sub]).toEqual({ hasTrustDialogAccepted: true });
    const { code, out } = await fixture.run(["trust", "sub", "--remove"]);
    expect({ code, out }).toEqual({ code: 0, out: `${sub} is no longer trusted.\n` });
    expect(fixture.state().projects[sub]).toEqual({ hasTrustDialogAccepted: false });
    expect((await fixture.run(["trust", "sub", "--remove"])).out).toContain("nothing was changed");
  });

  it("says when the folder above still gives it trust", async () => {
    const fixture = createFixture();
    fixture.write("project/sub/file", "");
    await fixture.run(["trust", "sub", "--yes"]);
    await fixture.run(["trust", "--yes"]);
    const { code, err } = await fixture.run(["trust", "sub", "--remove"]);
    expect(code).toBe(1);
    expect(err).toContain("still trusted");
  });

  it("refuses the home directory, a broken state file, a folder that is not there, and contradictions", async () => {
    const fixture = createFixture();
    expect((await fixture.run(["trust", fixture.home, "--yes"])).code).toBe(1);
    expect((await fixture.run(["trust", "nowhere"])).code).toBe(2);
    expect((await fixture.run(["trust", "--remove", "--yes"])).code).toBe(2);
    fixture.write("home/.claude.json", "{");
    const broken = await fixture.run(["trust", "--yes"]);
    expect(broken.code).toBe(1);
    expect(broken.err).toContain("not valid JSON");
    expect(readFileSync(join(fixture.home, ".claude.json"), "utf8")).toBe("{");
  });

  it("ignores --trust, which is for one run only", async () => {
    const fixture = createFixture();
    expect((await fixture.run(["--trust", "trust", "--show"])).out).toContain("Not trusted");
  });

  it("shows control characters in a repository's files as harmless text", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", { permissions: { allow: ["Bash(x\u001b[2J)"] } });
    expect((await fixture.run(["trust", "--show"])).out).not.toContain("\u001b");
    expect((await fixture.run(["permissions", "list"])).out).not.toContain("\u001b");
  });

  it("prints JSON", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", projectSettings);
    const { out } = await fixture.run(["trust", "--json"]);
    expect(JSON.parse(out)).toMatchObject({
      version: 1,
      folder: fixture.cwd,
      trusted: false,
      parts: expect.arrayContaining([
        { kind: "runs", name: "hooks.Stop", value: "./notify.sh", from: ".claude/settings.json" },
      ]),
    });
  });
});
