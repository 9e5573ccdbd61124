import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseJson } from "@retinue/base/foundation/json-record.ts";
import { type SchemaName, schemaNames } from "@retinue/base/foundation/json-schema.ts";
import { agentVocabulary } from "@retinue/config/agents/agent-vocabulary.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import { readSessionAgents } from "@retinue/config/agents/read-definition-object.ts";
import { readFrontmatter } from "@retinue/config/agents/read-frontmatter.ts";
import { readHooks, readHooksFile } from "@retinue/config/hooks/read-hooks.ts";
import { readMcpServers } from "@retinue/config/mcp/mcp-server-config.ts";
import { switchReaders } from "@retinue/config/settings/permission-settings.ts";
import { plainReaders } from "@retinue/config/settings/plain-settings.ts";
import type { ValueReader } from "@retinue/config/settings/read-environment.ts";
import { readSettings } from "@retinue/config/settings/settings.ts";
import { readSkillFields } from "@retinue/config/skills/skill-fields.ts";
import { skillVocabulary } from "@retinue/config/skills/skill-keys.ts";
import { readWorkflowScript } from "@retinue/config/workflows/read-workflow-script.ts";
import { readEvalFile } from "@retinue/hosts/commands/eval/read-eval-file.ts";
import { schemaText } from "@retinue/hosts/commands/schema.ts";
import { Ajv } from "ajv";
import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { runInProcess } from "./scenarios/run-command.ts";

// Its exports are not found by an import statement.
const { getLanguageService, TextDocument }: typeof import("vscode-json-languageservice") = createRequire(
  import.meta.url,
)("vscode-json-languageservice");

const ajv = new Ajv({
  strict: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allowUnionTypes: true,
});
const validators = new Map(schemaNames.map((name) => [name, ajv.compile(JSON.parse(schemaText(name)))]));

function accepts(name: SchemaName, value: unknown): boolean {
  return validators.get(name)?.(value) === true;
}

function complaints(name: SchemaName, value: unknown): string {
  const validate = validators.get(name);
  return validate?.(value) === true ? "" : ajv.errorsText(validate?.errors);
}

interface Reading {
  readonly value: unknown;
  readonly isTaken: boolean;
}

const isQuiet = (issues: readonly { readonly severity: string }[]): boolean =>
  issues.every(({ severity }) => severity === "note");

/** The value that a schema would be applied to, and whether the reader takes it without a warning. */
const readings: Readonly<Record<string, (text: string, file: string) => Reading | undefined>> = {
  agent: (text, file) => {
    const { type, fields } = readFrontmatter(text, agentVocabulary);
    if (type !== "read") return undefined;
    const value = Object.fromEntries([...fields].map(([key, field]) => [key, field.value]));
    const { definition, diagnostics } = parseAgentDefinition(text, { file });
    return { value, isTaken: definition !== undefined && isQuiet(diagnostics) };
  },
  skill: (text) => {
    const frontmatter = readFrontmatter(text, skillVocabulary);
    if (frontmatter.type !== "read") return undefined;
    const value = Object.fromEntries([...frontmatter.fields].map(([key, field]) => [key, field.value]));
    return { value, isTaken: isQuiet([...frontmatter.diagnostics, ...readSkillFields(frontmatter).issues]) };
  },
  settings: (text) => {
    const value = parseJson(text);
    if (value === undefined) return undefined;
    return { value, isTaken: isQuiet(readSettings(value, { scope: "managed" }).issues) };
  },
  hooks: (text) => {
    const value = parseJson(text);
    if (value === undefined) return undefined;
    return { value, isTaken: isQuiet(readHooksFile(value).issues) };
  },
  mcp: (text) => {
    const value = parseJson(text);
    if (value === undefined) return undefined;
    return { value, isTaken: isQuiet(readMcpServers(value).issues) };
  },
};

describe("schemas", () => {
  test("in the package are those of the source [PUB-1]", () => {
    expect(readdirSync("schemas").sort()).toEqual(schemaNames.map((name) => `${name}.json`).sort());
    for (const name of schemaNames)
      expect(readFileSync(`schemas/${name}.json`, "utf8"), "Run `npm run schemas`.").toBe(schemaText(name));
  });

  test("take every file of the corpus that its reader takes without a warning [PUB-1]", () => {
    const manifest = "test/fixtures/corpus/manifest.json";
    const { files } = JSON.parse(readFileSync(manifest, "utf8"));
    const taken = new Map<string, number>();
    const refused: string[] = [];
    for (const { file, kind } of files as readonly { file: string; kind: string }[]) {
      const reading = readings[kind]?.(readFileSync(join(dirname(manifest), file), "utf8"), file);
      if (reading?.isTaken !== true) continue;
      taken.set(kind, (taken.get(kind) ?? 0) + 1);
      const complaint = complaints(kind as SchemaName, reading.value);
      if (complaint !== "") refused.push(`${file}: ${complaint}`);
    }
    expect(refused).toEqual([]);
    expect([...taken.keys()].sort()).toEqual(["agent", "hooks", "mcp", "settings", "skill"]);
    expect(taken.get("agent")).toBeGreaterThan(25);
  });

  const values = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(
      "true",
      "false",
      "disable",
      "5m",
      "sync",
      "inbox",
      "12",
      " 7 ",
      "1.5",
      "",
      " ",
      0,
      1,
      -1,
      0.5,
      true,
    ),
    fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }),
    fc.array(fc.record({ serverName: fc.string() }), { maxLength: 2 }),
  );

  test.each(
    Object.entries<ValueReader<unknown>>({ ...plainReaders, ...switchReaders }),
  )("take and refuse for the setting %s what its reader takes and refuses [PUB-1]", (_key, {
    read,
    schema,
  }) => {
    const validate = ajv.compile(schema);
    fc.assert(
      fc.property(values, (value) => {
        const isTaken = read(value) !== undefined;
        // The limits of numbers are not looked at in texts.
        if (!isTaken && typeof value === "string" && /^[\s\d.+-]+$/.test(value)) return;
        expect([value, validate(value)]).toEqual([value, isTaken]);
      }),
      { numRuns: 150 },
    );
  });

  test("take the hooks and servers that their readers take, and no others, whatever they are made of [PUB-1]", () => {
    const word = fc.constantFrom<unknown>("x", "", null, 5, true, ["a"], { a: "b" });
    const handler = fc.record(
      {
        type: fc.constantFrom<unknown>("command", "http", "prompt", "agent", "mcp_tool", "other", null),
        command: word,
        url: word,
        prompt: word,
        server: word,
        tool: word,
        timeout: fc.constantFrom<unknown>(5, "5", 0, -1, null, "soon"),
        shell: fc.constantFrom<unknown>("bash", "zsh", null),
        args: word,
        headers: word,
      },
      { requiredKeys: [] },
    );
    const event = fc.constantFrom("Stop", "SessionStart", "Notification");
    const group = fc.oneof(
      handler,
      fc.record({ hooks: fc.oneof(fc.array(handler, { maxLength: 2 }), handler) }),
    );
    const validate = ajv.compile({ ...JSON.parse(schemaText("hooks")), $id: "urn:schema:hooks" });
    fc.assert(
      fc.property(fc.dictionary(event, fc.oneof(group, fc.array(group, { maxLength: 2 }))), (hooks) => {
        const isTaken = isQuiet(readHooks(hooks).issues);
        expect([hooks, validate({ hooks })]).toEqual([hooks, isTaken]);
      }),
      { numRuns: 2000 },
    );
    const server = fc.record(
      {
        type: fc.constantFrom<unknown>(
          "stdio",
          "HTTP",
          "sse",
          "streamable-http",
          "ws",
          "sdk",
          "other",
          null,
          "",
          5,
        ),
        command: fc.constantFrom<unknown>("node", "", null, 5, ["node", "x"], []),
        args: fc.constantFrom<unknown>([], ["a", 1, true], "a", null, 5, [null]),
        env: fc.constantFrom<unknown>({ A: "b", C: 1 }, null, "A=b", { A: null }),
        url: fc.constantFrom<unknown>("https://a.example", "ftp://a.example", "$" + "{URL}", 5),
        serverUrl: fc.constantFrom<unknown>("https://b.example", null, 5),
        transport: fc.constantFrom<unknown>("stdio", "remote", "websocket", null),
        timeout: fc.constantFrom<unknown>(5, "5", 0, null),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(server, (config) => {
        const value = { mcpServers: { it: config } };
        expect([config, accepts("mcp", value)]).toEqual([config, isQuiet(readMcpServers(value).issues)]);
      }),
      { numRuns: 2000 },
    );
  });

  test.each<[SchemaName, unknown]>([
    ["settings", { permissions: { deny: 5 } }],
    ["settings", { permissions: { denied: ["Bash"] } }],
    ["settings", { hooks: { PreTool: [] } }],
    ["settings", { hooks: { PreToolUse: [{ hooks: [{ type: "command" }] }] } }],
    ["settings", { sandbox: { filesystem: { denyRead: 5 } } }],
    ["settings", { env: { A: {} } }],
    ["settings", { limits: { agent: { second: 5 } } }],
    ["settings", { limits: { tree: { silenceSeconds: 5 } } }],
    ["settings", { limits: { agnt: {} } }],
    ["settings", { limits: { model: { firstTokenSeconds: "5", betweenTokensSeconds: 0 } } }],
    ["settings", { limits: { unknownPrice: "maybe" } }],
    ["agent", { name: "a" }],
    ["agent", { name: "a", description: "b", tools: { Read: true } }],
    ["agent", { name: "a", description: "b", maxTurns: 0 }],
    ["agent", { name: "a", description: "b", memory: "team" }],
    ["agent", { name: "a", description: "b", limits: { seconds: 0 } }],
    ["agents", { a: { description: "b", prompt: 5 } }],
    ["agents", { a: "b" }],
    ["skill", { hooks: "guard.sh" }],
    ["skill", { "allowed-tools": { Read: true } }],
    ["mcp", { mcpServers: { a: {} } }],
    ["mcp", { mcpServers: [] }],
    ["workflow", { name: "a" }],
    ["workflow", { name: " ", description: "b" }],
    ["eval", { tasks: [] }],
    ["eval", { tasks: [{ prompt: "a" }] }],
    ["eval", { tasks: [{ prompt: "a", check: "true" }], repetition: 2 }],
  ])("%s refuses %j, as its reader does [PUB-1]", (name, value) => {
    expect(accepts(name, value)).toBe(false);
    expect(isTakenByReader(name, value)).toBe(false);
  });

  test.each<[SchemaName, unknown]>([
    [
      "settings",
      { permissions: { allow: "Bash(git *)", defaultMode: "accept-edits" }, sandbox: true, other: 1 },
    ],
    [
      "settings",
      { hooks: { PreToolUse: { matcher: "Bash", command: "guard", timeout: "5" } }, env: { CI: 1 } },
    ],
    [
      "agent",
      { name: "a", description: "b", tools: ["Read", ["Grep"], { "Bash(git log": "*)" }], skills: "x, y" },
    ],
    [
      "agent",
      {
        name: "a",
        description: "b",
        background: "Yes",
        isolation: false,
        effort: 3,
        mcpServers: ["x", { y: null }],
      },
    ],
    [
      "settings",
      { limits: { model: { firstTokenSeconds: 5 }, tree: { usd: 5 }, agents: 3, overflow: "queue" } },
    ],
    ["agents", { a: { description: "b", prompt: "c", limits: { usd: 0.5 } } }],
    ["skill", { name: "a", "argument-hint": ["file"], context: "Fork", shell: "pwsh", other: 1 }],
    ["mcp", { a: { command: "node", args: ["x", 1] }, b: { type: "SSE", serverUrl: "https://b.example" } }],
    ["workflow", { name: "a", description: "b", phases: [{ title: "c", maxAgents: 2 }] }],
    ["eval", { tasks: [{ prompt: "a", judge: "Is it good?" }], permissionMode: "plan", budgetUsd: 0.5 }],
  ])("%s takes %j, with an address of its schema or without [PUB-1]", (name, value) => {
    for (const whole of [
      value,
      { $schema: `https://unpkg.com/retinue/schemas/${name}.json`, ...(value as object) },
    ]) {
      expect(complaints(name, whole)).toBe("");
      expect(isTakenByReader(name, whole)).toBe(true);
    }
  });
});

function isTakenByReader(name: SchemaName, value: unknown): boolean {
  switch (name) {
    case "agents":
      return isQuiet(readSessionAgents(value, () => undefined).diagnostics);
    case "eval":
      try {
        return readEvalFile(JSON.stringify(value), "eval.json") !== undefined;
      } catch {
        return false;
      }
    case "workflow":
      return readWorkflowScript(`export const meta = ${JSON.stringify(value)};\nreturn 1;`).type === "script";
    case "agent":
    case "skill": {
      const { issues } = readFields(name, value as Readonly<Record<string, unknown>>);
      return isQuiet(issues);
    }
    case "settings": {
      const { issues } = readSettings(value, { scope: "user" });
      return isQuiet(issues);
    }
    default:
      return readings[name]?.(JSON.stringify(value), "file")?.isTaken === true;
  }
}

/** JSON is YAML, so that a value can be written as the frontmatter of a file. */
function readFields(name: "agent" | "skill", value: Readonly<Record<string, unknown>>) {
  const lines = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${JSON.stringify(each)}`);
  const text = `---\n${lines.join("\n")}\n---\nText`;
  if (name === "agent") return { issues: parseAgentDefinition(text).diagnostics };
  return readSkillFields(readFrontmatter(text, skillVocabulary));
}

test("the command prints a schema as the package has it, and names the one that was meant [PUB-1, CLI-6]", async () => {
  const root = mkdtempSync(join(tmpdir(), "retinue-schema-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const run = (...words: readonly string[]) => runInProcess({ cwd: root, home: root }, words);
  expect(await run("schema", "mcp")).toMatchObject({
    code: 0,
    out: readFileSync("schemas/mcp.json", "utf8"),
  });
  const { code, err } = await run("schema", "setings");
  expect([code, err]).toEqual([2, expect.stringContaining("Did you mean settings?")]);
});

describe("in an editor", () => {
  const service = getLanguageService({ schemaRequestService: async (uri) => schemaText(nameOf(uri)) });
  const nameOf = (uri: string): SchemaName => {
    const found = schemaNames.find((name) => uri.endsWith(`/${name}.json`));
    if (found === undefined) throw new Error(`no schema at ${uri}`);
    return found;
  };
  /** The document with `|` where the cursor is. */
  const at = (name: SchemaName, body: string) => {
    const written = `{ "$schema": "https://unpkg.com/retinue/schemas/${name}.json", ${body} }`;
    const document = TextDocument.create("file:///it.json", "json", 1, written.replace("|", ""));
    return {
      document,
      parsed: service.parseJSONDocument(document),
      position: document.positionAt(written.indexOf("|")),
    };
  };
  const complete = async (name: SchemaName, body: string): Promise<readonly string[]> => {
    const { document, parsed, position } = at(name, body);
    return (await service.doComplete(document, position, parsed))?.items.map(({ label }) => label) ?? [];
  };

  test.each<[SchemaName, string, readonly string[]]>([
    ["settings", '"|"', ["permissions", "hooks", "model", "sandbox"]],
    ["settings", '"permissions": { "|" }', ["allow", "deny", "defaultMode"]],
    ["settings", '"permissions": { "defaultMode": | }', ['"plan"', '"acceptEdits"']],
    ["settings", '"hooks": { "|" }', ["PreToolUse", "Stop"]],
    ["settings", '"hooks": { "Stop": [{ "hooks": [{ "type": | }] }] }', ['"command"', '"http"']],
    ["settings", '"env": { "|" }', ["ANTHROPIC_MODEL", "BASH_DEFAULT_TIMEOUT_MS"]],
    ["mcp", '"mcpServers": { "a": { "|" } }', ["command", "args", "url"]],
    ["agents", '"a": { "|" }', ["description", "prompt", "tools", "permissionMode"]],
    ["eval", '"tasks": [{ "|" }]', ["prompt", "check", "judge"]],
  ])("%s: %s offers %j [PUB-1]", async (name, body, expected) => {
    expect(await complete(name, body)).toEqual(expect.arrayContaining([...expected]));
  });

  test("a key is explained, and a wrong value marked [PUB-1]", async () => {
    const { document, parsed, position } = at("settings", '"durab|ility": "ssd"');
    const hover = await service.doHover(document, position, parsed);
    expect(JSON.stringify(hover?.contents)).toContain("survive a power cut");
    const [problem, ...others] = await service.doValidation(document, parsed);
    expect(problem?.message).toContain('"sync"');
    expect(others).toEqual([]);
  });
});
