import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { digestOf } from "@retinue/gate/grants/approval-record.ts";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Finished, runInProcess } from "../scenarios/run-command.ts";

const good = "Reviews SQL migrations for locks. Use when a migration changes. Not for tuning queries.";

interface Fixture {
  readonly cwd: string;
  readonly home: string;
  write(path: string, text: string): void;
  run(arguments_: readonly string[], changes?: Partial<CliHost>): Promise<Finished>;
}

function createFixture(): Fixture {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-cli-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(cwd);
  mkdirSync(home);
  return {
    cwd,
    home,
    write(path, text) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    },
    run: (arguments_, changes = {}) =>
      runInProcess({ cwd, home }, arguments_, {
        environment: { COLUMNS: "80" },
        host: {
          stdin: { isTerminal: true, readAll: async () => "", async *lines() {} },
          platform: "linux",
          version: "9.9.9",
          ...changes,
        },
      }),
  };
}

function agent(name: string, fields = "", description = good): string {
  return `---\nname: ${name}\ndescription: ${description}\n${fields}---\nYou review.\n`;
}

describe("retinue agents", () => {
  it("lists the built-in agents in an empty folder and says how to make one [CLI-2]", async () => {
    const { code, out, err } = await createFixture().run(["agents"]);
    expect(code).toBe(0);
    expect(out).toContain("general-purpose");
    expect(err).toContain("`retinue agents new` makes one of your own");
  });

  it("marks who shadows whom, and lists the losers with --all [CLI-2, SCP-3]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/a.md", agent("sql", "model: opus\n"));
    fixture.write("home/.claude/agents/a.md", agent("sql", "model: haiku\n"));
    expect((await fixture.run(["agents"])).out).toMatch(/^sql +project \(over user\) +opus/m);
    expect((await fixture.run(["agents", "list"])).out).not.toMatch(/shadowed/);
    expect((await fixture.run(["agents", "--all"])).out).toMatch(/^ {2}sql +user \(shadowed\) +haiku/m);
  });

  it("hides what a deny rule denies, until --all [SCP-5]", async () => {
    const fixture = createFixture();
    const flags = ["--disallowedTools", "Task(Explore)"];
    const { out, err } = await fixture.run([...flags, "agents"]);
    expect(out).not.toContain("Explore ");
    expect(err).toContain("1 agent hidden by deny rules");
    expect((await fixture.run(["agents", "--all", ...flags])).out).toMatch(/^Explore +built-in \(hidden\) /m);
  });

  it("shows in one line that files have problems, and keeps JSON alone on stdout [CLI-2]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/bad.md", "---\nname: bad\n---\n");
    fixture.write("project/.claude/agents/sql.md", agent("sql"));
    expect((await fixture.run(["agents"])).err).toContain("1 file has problems: run `retinue agents check`.");
    const { out, err } = await fixture.run(["agents", "list", "--json"]);
    expect(err).toBe("");
    const json: unknown = JSON.parse(out);
    expect(json).toMatchObject({
      version: 1,
      agents: [
        {
          id: "sql",
          name: "sql",
          scope: "project",
          file: join(fixture.cwd, ".claude/agents/sql.md"),
          model: "inherit",
          tools: null,
          disallowedTools: [],
          description: good,
          shadows: [],
        },
        ...Array.from({ length: 6 }, () => ({ scope: "builtin" })),
      ],
      diagnostics: { errors: 1, warnings: 0, notes: 0 },
    });
  });

  it("takes definitions from --agents as JSON or as a path [DEF-9]", async () => {
    const fixture = createFixture();
    const json = JSON.stringify({ quick: { description: good, prompt: "Go." } });
    fixture.write("project/agents.json", json);
    for (const value of [json, "agents.json", join(fixture.cwd, "agents.json")]) {
      expect((await fixture.run(["--agents", value, "agents"])).out).toMatch(/^quick +session/m);
    }
  });

  it.each([
    ["{bad", /--agents:1:2: The agents cannot be used: .*not valid JSON/],
    ["[]", /must be a JSON object/],
    ["", /--agents was given nothing/],
    ['{"a": 5}', /--agents:1:\d+: The agents cannot be used: The agent "a" must be a JSON object/],
    [
      '{"ok": {"description": "Works.", "prompt": "Go."}, "a": {}}',
      /The agents cannot be used: .*description/,
    ],
    ['{"a": {"description": "Works.", "prompt": "Go.", "tools": 5}}', /`tools` cannot be read/],
    ["nowhere.json", /neither JSON nor a file that can be read: "nowhere.json" \(ENOENT\)/],
  ])("ends with one clear error for --agents %j [DEF-9, CLI-6]", async (value, message) => {
    const { code, out, err } = await createFixture().run(["--agents", value, "agents"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(message);
    expect(err).not.toMatch(/^\s+at /m);
  });

  it("reads the folders and sources that options name", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/own.md", agent("own"));
    fixture.write("home/.claude/agents/mine.md", agent("mine"));
    fixture.write("other/.claude/agents/more.md", agent("more"));
    fixture.write("plug/.claude-plugin/plugin.json", '{"name": "plug"}');
    fixture.write("plug/agents/tool.md", agent("tool"));
    const names = async (...flags: string[]) => {
      const { agents } = JSON.parse((await fixture.run([...flags, "agents", "list", "--json"])).out);
      return agents.map(({ id }: { id: string }) => id).slice(0, -6);
    };
    expect(await names()).toEqual(["own", "mine"]);
    expect(await names("--setting-sources", "user")).toEqual(["mine"]);
    expect(await names("--add-dir", "../other")).toEqual(["more", "own", "mine"]);
    expect(await names("--plugin-dir", "../plug")).toEqual(["own", "mine", "plug:tool"]);
    expect(await names("--settings", '{"permissions": {"deny": ["Task(own)"]}}')).toEqual(["mine"]);
  });
});

describe("retinue agents show", () => {
  it("names the deny rule that hides an agent [SCP-5]", async () => {
    const { code, out } = await createFixture().run([
      "agents",
      "show",
      "Explore",
      "--disallowedTools",
      "Task(Explore)",
    ]);
    expect(code).toBe(0);
    expect(out).toMatch(/^hidden by +the deny rule Task\(Explore\)$/m);
  });

  it("shows each field with its line, the defaults, the tools and the model [CLI-2]", async () => {
    const fixture = createFixture();
    fixture.write(
      "project/.claude/agents/sql.md",
      agent("sql", "tools: Read, Bash(git diff *)\nmodel: sonnet\n"),
    );
    fixture.write("home/.claude/agents/sql.md", agent("sql"));
    const { code, out } = await fixture.run(["agents", "show", "SQL"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^shadows +user, ~\/.claude\/agents\/sql.md$/m);
    expect(out).toMatch(/^tools +Read, Bash\(git diff \*\) \(.claude\/agents\/sql.md:4\)$/m);
    expect(out).toMatch(/^can use +Bash \[only git diff \*\], Read/m);
    expect(out).toMatch(/^model +sonnet = claude-sonnet-5 \(.claude\/agents\/sql.md:5\)$/m);
    expect(out).toMatch(/^maxTurns +50 \(default\)$/m);
    expect(out).toContain("  You review.");
  });

  it("takes whole tools away that deny rules take away", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/sql.md", agent("sql", "tools: Read, Bash\n"));
    const { out } = await fixture.run(["agents", "show", "sql", "--disallowedTools", "Bash"]);
    expect(out).toMatch(/^can use +Read/m);
  });

  it("shows twenty lines of the prompt, and all with --prompt", async () => {
    const fixture = createFixture();
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join("\n");
    fixture.write("project/.claude/agents/sql.md", agent("sql").replace("You review.", lines));
    const { out } = await fixture.run(["agents", "show", "sql"]);
    expect(out).toContain("… 10 more lines: --prompt shows all.");
    expect((await fixture.run(["agents", "show", "sql", "--prompt"])).out).toContain("line 30");
  });

  it("answers an unknown name with the nearest and the known ones [CLI-6]", async () => {
    const { code, err } = await createFixture().run(["agents", "show", "explroe"]);
    expect(code).toBe(1);
    expect(err).toContain('There is no agent "explroe".');
    expect(err).toContain('Did you mean "Explore"?');
    expect(err).toContain("general-purpose");
  });

  it("prints the same as JSON, with places and problems", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/sql.md", agent("sql", "tools: Read, Grpe\n"));
    const json: unknown = JSON.parse((await fixture.run(["agents", "show", "sql", "--json"])).out);
    expect(json).toMatchObject({
      version: 1,
      id: "sql",
      scope: "project",
      fields: { tools: ["Read", "Grpe"], prompt: "You review." },
      origins: { tools: { line: 4, column: 1 } },
      resolved: { tools: "Read" },
      diagnostics: [{ code: "unknown-tool", line: 4, column: 14 }],
    });
  });
});

describe("retinue agents check", () => {
  it("finds nothing wrong in good files [CLI-2]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/sql.md", agent("sql", "tools: Read\n"));
    expect(await fixture.run(["agents", "check", "--strict"])).toEqual({
      code: 0,
      out: "1 file checked: no problems.\n",
      err: "",
    });
  });

  it("exits with 1 on errors, with --strict on warnings, never on notes [CLI-2]", async () => {
    const fixture = createFixture();
    const file = "project/.claude/agents/sql.md";
    const codes = async () => [
      (await fixture.run(["agents", "check"])).code,
      (await fixture.run(["agents", "check", "--strict"])).code,
    ];
    fixture.write(file, agent("sql", "color: teal\n"));
    expect(await codes()).toEqual([0, 0]);
    fixture.write(file, agent("sql", "tools: Read, Grpe\n"));
    expect(await codes()).toEqual([0, 1]);
    fixture.write(file, agent("sql", "tools: Grpe\n"));
    expect(await codes()).toEqual([1, 1]);
  });

  it("shows the line with a caret under the place [CLI-2, DEF-7]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/sql.md", agent("sql", "tools: Read, Grpe\n"));
    expect(
      (await fixture.run(["agents", "check"])).out,
    ).toBe(`.claude/agents/sql.md:4:14: warning: \`Grpe\` is not a known tool; the entry has
    no effect. [unknown-tool]
     4 | tools: Read, Grpe
       |              ^^^^
    → Did you mean \`Grep\`?

1 file checked: 1 warning.
`);
  });

  it("checks settings, plugins and --agents as well", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", '{"permissions": {"deny": [1]}');
    const { code, out } = await fixture.run(["agents", "check", "--agents", '{"x": {"prompt": "Go."}}']);
    expect(code).toBe(1);
    expect(out).toMatch(/^\.claude\/settings\.json:1:\d+: error: /m);
    expect(out).toMatch(/^--agents:1:\d+: error: /m);
  });

  it("refuses a deny rule that matches nothing, with its place and the rule to write [PRM-8, CLI-6]", async () => {
    const fixture = createFixture();
    const settings = '{"permissions": {"deny": ["Bash(git:* push)"]}}';
    fixture.write("project/.claude/settings.json", settings);
    const { code, out } = await fixture.run(["agents", "check"]);
    expect(code).toBe(1);
    expect(out.replaceAll(/\s+/g, " ")).toContain(
      '.claude/settings.json:1:27: error: A rule under "deny" is not valid: "Bash(git:* push)" matches no command',
    );
    expect(out).toContain("Bash(git * push)");
  });

  it("shows broken JSON of --agents as a problem with its place [DEF-9]", async () => {
    const { code, out } = await createFixture().run(["agents", "check", "--agents", '{"a" {}}']);
    expect(code).toBe(1);
    expect(out).toMatch(/^ {5}1 \| \{"a" \{\}\}$/m);
  });

  it("takes files, folders, projects and plugins as paths", async () => {
    const fixture = createFixture();
    fixture.write("project/one.md", agent("one", "color: teal\n"));
    fixture.write("project/folder/two.md", agent("two", "color: teal\n"));
    fixture.write("project/inner/.claude/agents/three.md", agent("three", "color: teal\n"));
    fixture.write("project/inner/README.md", "# Notes");
    fixture.write("project/plug/.claude-plugin/plugin.json", "{}");
    fixture.write("project/plug/agents/four.md", agent("four", "permissionMode: plan\n"));
    const { out } = await fixture.run(["agents", "check", "one.md", "folder", "inner", "plug", "one.md"]);
    expect(out.match(/^\S+\.md(?=:\d+:\d+: )/gm)).toEqual([
      "folder/two.md",
      "inner/.claude/agents/three.md",
      "one.md",
      "plug/agents/four.md",
    ]);
    expect(out).toContain("ignored-in-plugin");
    expect(out).toContain("4 files checked: 1 warning, 3 notes.");
  });

  it.each([
    ["nowhere", /There is no file or folder "nowhere"/],
    ["data.json", /not a Markdown file/],
  ])("refuses the path %s with a sentence and exit code 2 [CLI-6]", async (path, message) => {
    const fixture = createFixture();
    fixture.write("project/data.json", "{}");
    const { code, out, err } = await fixture.run(["agents", "check", path]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(message);
  });

  it("prints only errors with --quiet, and nothing when there are none", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/a.md", agent("a", "tools: Read, Grpe\n"));
    expect((await fixture.run(["agents", "check", "--quiet"])).out).toBe("");
    fixture.write("project/.claude/agents/b.md", "---\nname: b\n---\nGo.\n");
    const { out } = await fixture.run(["agents", "check", "--quiet"]);
    expect(out).toContain("no-description");
    expect(out).not.toContain("Grpe");
  });

  it("prints JSON for programs [CLI-2]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/a.md", agent("a", "tools: Read, Grpe\n"));
    expect(JSON.parse((await fixture.run(["agents", "check", "--json"])).out)).toEqual({
      version: 1,
      files: [
        {
          file: join(fixture.cwd, ".claude/agents/a.md"),
          diagnostics: [
            {
              severity: "warning",
              code: "unknown-tool",
              message: "`Grpe` is not a known tool; the entry has no effect.",
              advice: "Did you mean `Grep`?",
              line: 4,
              column: 14,
              length: 4,
            },
          ],
        },
      ],
      summary: { files: 1, errors: 0, warnings: 1, notes: 0 },
    });
  });
});

describe("retinue agents new", () => {
  const flags = ["agents", "new", "--name", "sql", "--description", good];

  it("writes a file from flags that passes the strict check [CLI-2]", async () => {
    const fixture = createFixture();
    const made = await fixture.run([...flags, "--tools", "Read, Bash(git diff *)", "--model", "haiku"]);
    expect(made).toMatchObject({ code: 0, err: "" });
    expect(made.out).toContain("Written: .claude/agents/sql.md");
    const text = readFileSync(join(fixture.cwd, ".claude/agents/sql.md"), "utf8");
    expect(text).toContain("tools: Read, Bash(git diff *)\nmodel: haiku\n---\n");
    expect((await fixture.run(["agents", "check", "--strict"])).code).toBe(0);
  });

  it.each([
    "a: b # c",
    '"quoted" \\ back',
    "- dash",
    "日本語のレビュー: 変更",
    "line\nbreak {x} [y]",
  ])("keeps a description with YAML's own signs as it is: %j", async (odd) => {
    const fixture = createFixture();
    const description = `${good} ${odd}`;
    await fixture.run(["agents", "new", "--name", "odd", "--description", description]);
    const { fields } = JSON.parse((await fixture.run(["agents", "show", "odd", "--json"])).out);
    expect(fields.description).toBe(description.replace(/\s+/g, " "));
  });

  it("never overwrites without --force", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/sql.md", "mine");
    const { code, err } = await fixture.run(flags);
    expect(code).toBe(1);
    expect(err).toContain(".claude/agents/sql.md already exists and was not touched.");
    expect(readFileSync(join(fixture.cwd, ".claude/agents/sql.md"), "utf8")).toBe("mine");
    expect((await fixture.run([...flags, "--force"])).code).toBe(0);
    expect(readFileSync(join(fixture.cwd, ".claude/agents/sql.md"), "utf8")).toContain("name: sql");
  });

  it("writes to the user's folder with --scope user, and to the nearest project folder otherwise", async () => {
    const fixture = createFixture();
    await fixture.run([...flags, "--scope", "user"]);
    expect(existsSync(join(fixture.home, ".claude/agents/sql.md"))).toBe(true);
    mkdirSync(join(fixture.cwd, ".git"));
    fixture.write("project/.claude/agents/x.md", agent("x"));
    mkdirSync(join(fixture.cwd, "deep"));
    await fixture.run(flags, { cwd: join(fixture.cwd, "deep") });
    expect(existsSync(join(fixture.cwd, ".claude/agents/sql.md"))).toBe(true);
  });

  it.each([
    [["--name", "../evil"], /could lead out of a directory/],
    [["--name", "Bad Name"], /hard to type/],
    [["--tools", "Read, Grpe"], /`Grpe` is not a known tool/],
    [["--model", "opsu"], /Did you mean `opus`/],
    [["--scope", "world"], /Invalid --scope "world"\.\nExpected one of project, user\./],
  ])("refuses %j and writes nothing [CLI-6]", async (bad, message) => {
    const fixture = createFixture();
    const { code, err } = await fixture.run([...flags, ...bad]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
    expect(existsSync(join(fixture.cwd, ".claude"))).toBe(false);
  });

  it("takes the name as its argument, and needs nothing else [CLI-2]", async () => {
    const fixture = createFixture();
    const { code, out } = await fixture.run(["agents", "new", "sql"]);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("edit its description") });
    expect(readFileSync(join(fixture.cwd, ".claude/agents/sql.md"), "utf8")).toMatch(/^---\nname: sql\n/);
    expect((await fixture.run(["agents", "show", "sql"])).code).toBe(0);
    const described = await fixture.run(["agents", "new", "two", "--description", good]);
    expect(described.out).not.toContain("no description");
  });

  it("refuses two names that differ [CLI-6]", async () => {
    const { code, err } = await createFixture().run(["agents", "new", "sql", "--name", "other"]);
    expect(code).toBe(2);
    expect(err).toContain('Two names were given: "sql" and --name "other"');
  });

  it("needs a name where nobody can be asked", async () => {
    const { code, err } = await createFixture().run(["agents", "new"]);
    expect(code).toBe(2);
    expect(err).toContain("needs a name");
  });

  it("asks in a terminal, with advice on a weak description, until the answers can be used", async () => {
    const fixture = createFixture();
    const answers = ["", "Bad Name", "sql", "Helps with code", good, "Grpe", "Read", ""];
    const { code, out } = await fixture.run(["agents", "new"], {
      canAsk: true,
      ask: async () => answers.shift() ?? "too many questions",
    });
    expect(code).toBe(0);
    expect(out).toContain("Say when to use it");
    expect(readFileSync(join(fixture.cwd, ".claude/agents/sql.md"), "utf8")).toContain("tools: Read\n---");
    expect(answers).toEqual([]);
  });

  it("leaves nothing behind when the person leaves [CLI-6]", async () => {
    const fixture = createFixture();
    const { code } = await fixture.run(["agents", "new"], { canAsk: true });
    expect(code).toBe(130);
    expect(existsSync(join(fixture.cwd, ".claude"))).toBe(false);
  });
});

describe("retinue doctor", () => {
  it("says for each part whether it is well, and never shows a key [CLI-5]", async () => {
    const fixture = createFixture();
    const environment = {
      PATH: process.env["PATH"],
      ANTHROPIC_API_KEY: "sk-secret",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:1",
    };
    const { code, out } = await fixture.run(["doctor"], { environment });
    expect(code).toBe(0);
    for (const name of [
      "program",
      "folder",
      "settings",
      "managed",
      "trust",
      "definitions",
      "plugins",
      "keys",
      "models",
      "git",
      "sandbox",
      "isolation",
    ])
      expect(out).toMatch(new RegExp(`^(?:ok|note|warning) +${name} `, "m"));
    expect(out).toContain("ANTHROPIC_API_KEY");
    expect(out).not.toContain("sk-secret");
  });

  it("says without a key whether a model server on this machine would answer [CLI-5, MDL-4]", async () => {
    const fixture = createFixture();
    const server = await startFakeProvider({});
    onTestFinished(() => server[Symbol.asyncDispose]());
    const environment = {
      PATH: process.env["PATH"],
      OLLAMA_HOST: "127.0.0.1:1",
      LMSTUDIO_BASE_URL: `${server.url}/v1`,
    };
    const { checks } = JSON.parse((await fixture.run(["doctor", "--json"], { environment })).out);
    expect(checks).toContainEqual({
      name: "local models",
      state: "ok",
      text: `LM Studio at ${server.url}: lmstudio/scripted is used when no model is named.`,
    });
    const nowhere = { ...environment, LMSTUDIO_BASE_URL: "http://127.0.0.1:1" };
    expect((await fixture.run(["doctor"], { environment: nowhere })).out).toMatch(
      /^note +local models +Not running: Ollama at/m,
    );
    const off = { ...environment, RETINUE_LOCAL_MODELS: "0" };
    expect((await fixture.run(["doctor"], { environment: off })).out).toMatch(
      /^note +local models +Not checked/m,
    );
    const key = { ...environment, ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: "http://127.0.0.1:1" };
    expect((await fixture.run(["doctor"], { environment: key })).out).not.toContain("local models");
  });

  it("names every variable that cannot be read [CLI-5]", async () => {
    const { out } = await createFixture().run(["doctor"], {
      environment: {
        PATH: process.env["PATH"],
        RETINUE_LOCAL_MODELS: "0",
        CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH: "deep",
        ENABLE_TOOL_SEARCH: "auto:many",
      },
    });
    const words = out.replace(/\s+/g, " ");
    expect(words).toContain(
      "variables The environment variable CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH must be",
    );
    expect(words).toContain("variables The environment variable ENABLE_TOOL_SEARCH must be");
    expect(out).toMatch(/^ok +models +sonnet = /m);
  });

  it("tries the key, and compares the models that it can use [CLI-5]", async () => {
    const models = { list: ["claude-sonnet-5-20260101", "claude-opus-5"] };
    const server = createServer((request, response) => {
      const isKnown =
        request.headers.authorization === "Bearer good" && request.url?.startsWith("/v1/models?") === true;
      if (request.headers.authorization === "Bearer other") response.writeHead(404);
      else if (!isKnown) response.writeHead(401);
      response.end(
        JSON.stringify({ data: models.list.map((id) => ({ id, type: "model" })), has_more: false }),
      );
    });
    await new Promise<void>((listening) => void server.listen(0, "127.0.0.1", listening));
    onTestFinished(() => void server.close());
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fixture = createFixture();
    const check = async (access: Record<string, string>) => {
      const environment = { PATH: process.env["PATH"], ANTHROPIC_BASE_URL: `http://${host}/`, ...access };
      const { out, code } = await fixture.run(["doctor", "--json"], { environment });
      const checks = JSON.parse(out).checks as { name: string; state: string; text: string }[];
      return { code, of: (name: string) => checks.find((one) => one.name === name) };
    };
    const some = await check({ ANTHROPIC_API_KEY: "good" });
    expect(some.of("keys")).toMatchObject({
      state: "ok",
      text: `Set: ANTHROPIC_API_KEY. ${host} accepts the key.`,
    });
    expect(some.of("models")).toMatchObject({ state: "warning" });
    expect(some.of("models")?.text).toMatch(/does not list claude-haiku-[\d-]+\.$/);
    models.list.push("claude-haiku-5-5");
    expect((await check({ ANTHROPIC_API_KEY: "good" })).of("models")).toMatchObject({ state: "ok" });
    const refused = await check({ ANTHROPIC_API_KEY: "bad" });
    expect(refused.code).toBe(1);
    expect(refused.of("keys")).toMatchObject({
      state: "error",
      text: `Set: ANTHROPIC_API_KEY. ${host} refuses the key (status 401).`,
    });
    const other = await check({ ANTHROPIC_AUTH_TOKEN: "other" });
    expect(other).toMatchObject({ code: 0 });
    expect(other.of("keys")).toMatchObject({ state: "note" });
  });

  it("exits with 1 when a settings file or a definition is broken, and says where [CLI-5]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/settings.json", "{");
    fixture.write("project/.claude/agents/bad.md", "---\nname: bad\n---\n");
    const { code, out } = await fixture.run(["doctor", "--json"]);
    expect(code).toBe(1);
    const { checks, summary } = JSON.parse(out);
    expect(summary.errors).toBe(2);
    expect(checks).toContainEqual(expect.objectContaining({ name: "definitions", state: "error" }));
    expect(checks).toContainEqual(
      expect.objectContaining({
        state: "error",
        text: expect.stringContaining(".claude/settings.json:1:"),
      }),
    );
  });

  it("and the check name what is wrong with instruction files [CLI-5]", async () => {
    const fixture = createFixture();
    fixture.write("project/CLAUDE.md", "Follow @docs/gone.md and @docs/round.md.\n");
    fixture.write("project/docs/round.md", "See @../CLAUDE.md too.\n");
    const { code, out } = await fixture.run(["doctor", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out).checks).toContainEqual({
      name: "instructions",
      state: "warning",
      text: expect.stringMatching(
        /^2 instruction files read. CLAUDE.md:1:\d+: There is no file "docs\/gone.md"/,
      ),
      advice: expect.any(String),
    });
    const checked = await fixture.run(["agents", "check"]);
    expect(checked.code).toBe(0);
    expect(checked.out).toContain("missing-import");
    expect(checked.out).toContain("circular-import");
  });

  it("and the check name a saved workflow that is broken, with its line [CLI-5, WFL-1]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/workflows/bad.js", "const x = 1\nreturn x\n");
    const { code, out } = await fixture.run(["doctor", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out).checks).toContainEqual({
      name: "workflows",
      state: "warning",
      text: expect.stringMatching(/^1 saved workflow\. .claude\/workflows\/bad.js:1:1: The first statement/),
      advice: expect.any(String),
    });
    expect((await fixture.run(["agents", "check"])).out).toContain("bad.js:1:1");
  });

  it("shows how to trust a folder in which something waits for it [CLI-5, PRM-11]", async () => {
    const fixture = createFixture();
    fixture.write("project/.claude/agents/a.md", agent("a", "permissionMode: acceptEdits\n"));
    expect((await fixture.run(["doctor"])).out).toMatch(/^warning +trust +This folder is not trusted/m);
    expect((await fixture.run(["doctor", "--trust"])).out).toMatch(
      /^ok +trust +This folder is trusted: --trust/m,
    );
    fixture.write(
      "home/.claude.json",
      JSON.stringify({ projects: { [fixture.cwd]: { hasTrustDialogAccepted: true } } }),
    );
    expect((await fixture.run(["doctor"])).out).toMatch(/^ok +trust/m);
  });
});

describe("the command line itself", () => {
  it("shows help that fits a screen, with the ten most used options and the groups of the rest [CLI-6]", async () => {
    const fixture = createFixture();
    const { code, out } = await fixture.run(["--help"]);
    expect(code).toBe(0);
    expect((await fixture.run([])).out).toBe(out);
    const lines = out.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(23);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines.filter((line) => /^ {2}(-\w, )?--[a-zA-Z-]+( <[a-z]+>)? {2,}\w/.test(line))).toHaveLength(
      10,
    );
    const all = (await fixture.run(["--help", "all"])).out;
    for (const words of [
      ["-h", "all"],
      ["help", "all"],
      ["run", "--help"],
    ])
      expect((await fixture.run(words)).out).toBe(all);
    const groups = [...all.matchAll(/^([A-Z].*):$/gm)].map(([, name = ""]) => name.toLowerCase());
    const end = lines.slice(-2).join(" ");
    expect(groups.length).toBeGreaterThan(5);
    for (const group of groups) if (group !== "options") expect(end).toContain(group);
    expect(end).toContain("retinue --help all");
  });

  it.each([
    ["agents"],
    ["agents", "check"],
    ["agents", "new"],
    ["agents", "show"],
    ["plan"],
    ["tasks"],
    ["logs"],
    ["stop"],
    ["resume"],
    ["doctor"],
    ["skills"],
    ["skills", "check"],
  ])("has help for %s %s", async (...command) => {
    const { code, out } = await createFixture().run([...command, "--help"]);
    expect(code).toBe(0);
    expect(out).toContain(`Usage: retinue ${command.join(" ")}`);
    expect(out.split("\n").length).toBeLessThanOrEqual(24);
  });

  it("prints its version", async () => {
    expect(await createFixture().run(["--verbose", "--version"])).toEqual({
      code: 0,
      out: "9.9.9\n",
      err: "",
    });
  });

  it.each([
    [["agents", "chekc"], "There is no command `agents chekc`.\nDid you mean `retinue agents check`?"],
    [
      ["agnets"],
      'There is no command `agnets`.\nDid you mean `retinue agents`? As a prompt: `retinue -p "agnets"`.',
    ],
    [["agents", "--jsn"], "Unknown option '--jsn'.\nDid you mean --json?"],
    [["doctor", "now"], "Too many arguments for 'doctor'."],
    [["agents", "show"], "Missing required argument 'name'."],
    [["--add-dir", "nope", "agents"], '--add-dir names a folder that does not exist: "nope".'],
    [["--plugin-dir", "nope", "agents"], '--plugin-dir names a folder that does not exist: "nope".'],
    [["--settings", "nope.json", "agents"], "--settings cannot be used:"],
    [["--settings", "{", "agents"], "--settings cannot be used:"],
    [["--disallowedTools", "Task(", "agents"], "--disallowedTools contains a rule that is not valid"],
  ])("answers %j with a sentence, advice and exit code 2 [CLI-6]", async (arguments_, expected) => {
    const { code, out, err } = await createFixture().run(arguments_);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err.startsWith(`retinue: ${expected}`), err).toBe(true);
    expect(err).not.toMatch(/^\s+at /m);
  });

  it.each([
    [["--setting-sources", "users", "agents"], 'Invalid --setting-sources "users".'],
  ])("answers %j with a sentence, advice and exit code 1 [CLI-6, CLI-7]", async (arguments_, expected) => {
    const { code, out, err } = await createFixture().run(arguments_);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.startsWith(`retinue: ${expected}`), err).toBe(true);
  });

  it("shows where the link of a call that waited leads, and counts its uses [APR-2]", async () => {
    const fixture = createFixture();
    const id = "0123456789ab";
    const judged = {
      tool: "Write",
      input: { file_path: "cur/f.txt", content: "x" },
      directory: fixture.cwd,
      paths: [join(fixture.cwd, "cur/f.txt"), join(fixture.cwd, "v2/f.txt")],
    };
    const digest = digestOf(judged);
    const session = "0a1b2c3d-0000-4000-8000-000000000000";
    const place = { agent: "main", call: "c1", at: 1 };
    const shared = { version: 1, digest, at: 1, by: "ada" };
    const question = {
      ...shared,
      ...judged,
      id,
      session,
      reason: "no allow rule matches",
      suggestedRules: [],
    };
    const files = {
      [`q-${id}`]: { ...question, everyTime: false, places: [{ ...place, path: "main" }] },
      [`a-${id}`]: {
        ...shared,
        type: "allow",
        scope: "session",
        rules: [],
        question: id,
        agents: [],
        via: "cli",
      },
      [`u-${id}-1`]: { ...shared, ...place, grant: id, tool: "Write", run: "r", usd: 0 },
    };
    const folder = `.claude/projects/${fixture.cwd.replace(/[^A-Za-z0-9]/g, "-")}/${session}/approvals`;
    for (const [name, value] of Object.entries(files)) {
      fixture.write(`home/${folder}/${name}.json`, JSON.stringify(value));
      chmodSync(join(fixture.home, folder, `${name}.json`), 0o600);
    }
    const { out } = await fixture.run(["approvals", "show", id]);
    expect(out).toContain(`leads to  ${join(fixture.cwd, "v2/f.txt")}\n`);
    expect(out).not.toContain(`leads to  ${join(fixture.cwd, "cur/f.txt")}`);
    expect(out).toContain("allowed   this session, 1 use, by ada (cli)");
  });

  it("shows a stack trace only with --debug [CLI-6]", async () => {
    const fixture = createFixture();
    expect((await fixture.run(["agents", "show", "nobody"])).err).not.toMatch(/^\s+at /m);
    expect((await fixture.run(["--debug", "agents", "show", "nobody"])).err).toMatch(/^\s+at /m);
  });

  it("makes a sentence even of an error no one expected [CLI-6]", async () => {
    const environment = new Proxy<Record<string, string>>(
      {},
      {
        get() {
          throw new TypeError("x is not a function");
        },
      },
    );
    const { code, err } = await createFixture().run(["doctor"], { environment });
    expect(code).toBe(1);
    expect(err).toMatch(/^retinue: Unexpected error: x is not a function\nRun it again with --debug/);
  });
});

describe("help, completion and the man page", () => {
  it("describes every option of a run, and names every command, from what is parsed [CLI-6]", async () => {
    const fixture = createFixture();
    const { code, out } = await fixture.run(["run", "--help"]);
    expect(code).toBe(0);
    const manual = (await fixture.run(["help", "--man"])).out;
    const flags = [...manual.matchAll(/^\.B (\\-.*)$/gm)].map(([, text = ""]) => text.replaceAll("\\", ""));
    const own = flags.slice(0, flags.indexOf("--no-ask") + 1);
    expect(own.length).toBeGreaterThan(40);
    for (const flag of own) expect(out).toContain(`  ${flag}`);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(manual).toContain(".B retinue sessions delete <session...>");
  });

  it("shows the help of a command, and the nearest where there is none [CLI-6]", async () => {
    const fixture = createFixture();
    expect((await fixture.run(["help", "sessions", "name"])).out).toContain("Gives a session a title");
    expect(await fixture.run(["help", "sesions"])).toMatchObject({ code: 2 });
    expect((await fixture.run(["help", "sesions"])).err).toContain("Did you mean `sessions`?");
  });

  it("completes commands, options and values in bash; the scripts of the other shells name them all [CLI-6]", async () => {
    const fixture = createFixture();
    const { out: script } = await fixture.run(["completion", "bash"]);
    const asks = [
      "retinue sess",
      "retinue agents ch",
      "retinue sessions delete --y",
      "retinue --output-format j",
    ];
    const lines = asks.map(
      (line) =>
        `COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _retinue; echo "\${COMPREPLY[*]}"`,
    );
    const answers = execFileSync("bash", ["-c", [script, ...lines].join("\n")], { encoding: "utf8" });
    expect(answers).toBe("sessions\ncheck\n--yes\njson\n");
    for (const shell of ["zsh", "fish"]) {
      const { out } = await fixture.run(["completion", shell]);
      for (const word of ["sessions", "delete", "stream-json", "no-ask"]) expect(out).toContain(word);
    }
    expect(await fixture.run(["completion", "tcsh"])).toMatchObject({ code: 2 });
  });

  it("offers only values that a run takes", async () => {
    const fixture = createFixture();
    const { out } = await fixture.run(["completion", "fish"]);
    for (const option of ["output-format", "effort", "permission-mode"]) {
      const [, values = ""] = new RegExp(`-l ${option} -x -a '([^']+)'`).exec(out) ?? [];
      expect(values).not.toBe("");
      for (const value of values.split(" "))
        expect((await fixture.run(["-p", "x", "--model", "offline", `--${option}`, value])).code).not.toBe(2);
    }
  });
});
