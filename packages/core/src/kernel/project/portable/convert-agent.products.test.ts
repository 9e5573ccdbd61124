import { agentFormats } from "@retinue/config/formats/agent-formats.ts";
import { type FormatId, formatIds } from "@retinue/config/formats/format-facts.ts";
import type { PortableAgent } from "@retinue/config/formats/portable-agent.ts";
import fc from "fast-check";
import { load } from "js-yaml";
import { parse as parseToml } from "smol-toml";
import { describe, expect, test } from "vitest";
import { convertAgent } from "./convert-agent.ts";

/**
 * What each product makes of a file, written a second time and without our readers, so that a mistake in one of them is no
 * mistake in the measure too. Where products are not clear, the widest reading counts.
 */
type Fields = Readonly<Record<string, unknown>>;
type Level = 0 | 1 | 2;
const kinds = [
  "read",
  "create",
  "change",
  "shell",
  "find",
  "search",
  "fetch",
  "websearch",
  "subagent",
  "mcp",
] as const;
type Kind = (typeof kinds)[number];
type Levels = Record<Kind, Level>;

const levels = (of: (kind: Kind) => Level): Levels =>
  Object.fromEntries(kinds.map((kind) => [kind, of(kind)])) as Levels;
const everything = levels(() => 2);
const isText = (value: unknown): value is string => typeof value === "string";
const textsOf = (value: unknown): readonly string[] | undefined => {
  if (isText(value)) return splitList(value);
  return Array.isArray(value) ? value.filter(isText) : undefined;
};

/** At commas outside of parentheses. */
function splitList(text: string): readonly string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function fenced(text: string): Fields {
  const [, yaml = ""] = /^---\n([\s\S]*?)\n---(?:\n|$)/.exec(text) ?? [];
  return (load(yaml) ?? {}) as Fields;
}

/** A list of words that is the whole list. */
function listed(
  words: readonly string[] | undefined,
  table: Readonly<Record<string, readonly Kind[]>>,
  server: (word: string) => Level,
): Levels {
  if (words === undefined || words.includes("*")) return { ...everything };
  const found = levels(() => 0);
  for (const word of words) {
    for (const kind of Object.hasOwn(table, word) ? (table[word] ?? []) : []) found[kind] = 2;
    found.mcp = Math.max(found.mcp, server(word)) as Level;
  }
  return found;
}

/** A word with the star is every server. */
const serverLevel =
  (start: string) =>
  (word: string): Level => {
    if (word === `${start}*`) return 2;
    return word.startsWith(start) ? 1 : 0;
  };

const ownKinds: Readonly<Record<string, Kind>> = {
  read: "read",
  write: "create",
  edit: "change",
  multiedit: "change",
  bash: "shell",
  glob: "find",
  ls: "find",
  grep: "search",
  webfetch: "fetch",
  websearch: "websearch",
  agent: "subagent",
  task: "subagent",
};

/** Our own lists: names in any case, parentheses for some calls. */
function own(fields: Fields): Levels {
  const given = textsOf(fields["tools"]);
  const denied = textsOf(fields["disallowedTools"]) ?? [];
  const found = levels(() => (given === undefined || given.includes("*") ? 2 : 0));
  const each = (entries: readonly string[], take: (kind: Kind, isWhole: boolean) => void): void => {
    for (const entry of entries) {
      const [, name = "", call] = /^([^(]+?)(?:\((.*)\))?$/.exec(entry) ?? [];
      const isWhole = call === undefined || call === "*" || call === "";
      const kind = name.startsWith("mcp__") ? "mcp" : ownKinds[name.toLowerCase()];
      if (kind !== undefined) take(kind, isWhole && (kind !== "mcp" || name === "mcp__*"));
    }
  };
  if (given !== undefined)
    each(given, (kind, isWhole) => (found[kind] = Math.max(found[kind], isWhole ? 2 : 1) as Level));
  each(denied, (kind, isWhole) => (found[kind] = isWhole ? 0 : (Math.min(found[kind], 1) as Level)));
  return found;
}

const matchesKey = (pattern: string, key: string): boolean =>
  pattern === key || (pattern.endsWith("*") && key.startsWith(pattern.slice(0, -1)));

/** The last rule that matches wins, and what no rule matches is allowed. */
function opencode(permission: unknown): Levels {
  const rules = (
    isText(permission) ? [["*", permission] as const] : Object.entries((permission ?? {}) as Fields)
  ).flatMap(([key, said]) =>
    isText(said)
      ? [{ key, pattern: "*", said }]
      : Object.entries(said as Fields).map(([pattern, word]) => ({ key, pattern, said: String(word) })),
  );
  const level = (key: string): Level => {
    let base = true;
    let parts: boolean[] = [];
    for (const rule of rules) {
      if (!matchesKey(rule.key, key)) continue;
      if (rule.pattern === "*") {
        base = rule.said !== "deny";
        parts = [];
      } else parts.push(rule.said !== "deny");
    }
    if (base) return parts.includes(false) ? 1 : 2;
    return parts.includes(true) ? 1 : 0;
  };
  const keys: Readonly<Record<Exclude<Kind, "mcp">, string>> = {
    read: "read",
    create: "edit",
    change: "edit",
    shell: "bash",
    find: "glob",
    search: "grep",
    fetch: "webfetch",
    websearch: "websearch",
    subagent: "task",
  };
  const servers = [
    "zzz_other",
    ...rules.flatMap(({ key }) => (/[_*]/.test(key) && key !== "*" ? [key.replace("*", "_x")] : [])),
  ];
  const found = servers.filter((name) => name.includes("_")).map(level);
  const isPart = found.some((each) => each !== found[0]);
  const mcp: Level = isPart ? 1 : (found[0] ?? 0);
  return levels((kind) => (kind === "mcp" ? mcp : level(keys[kind])));
}

const kiroWords = {
  read: ["read"],
  fs_read: ["read"],
  write: ["create", "change"],
  fs_write: ["create", "change"],
  shell: ["shell"],
  execute_bash: ["shell"],
  glob: ["find"],
  grep: ["search"],
  web_fetch: ["fetch"],
  web_search: ["websearch"],
  use_subagent: ["subagent"],
  subagent: ["subagent"],
} as const;

function kiro(fields: Fields): Levels {
  const found = listed(textsOf(fields["tools"]) ?? [], kiroWords, (word) => (word.startsWith("@") ? 1 : 0));
  const settings = (fields["toolsSettings"] ?? {}) as Record<string, Fields | undefined>;
  const narrow = (kind: Kind, section: string, allowed: string, denied: string): void => {
    const some = settings[section]?.[allowed];
    if (Array.isArray(some)) found[kind] = Math.min(found[kind], some.length === 0 ? 0 : 1) as Level;
    const not = settings[section]?.[denied];
    if (Array.isArray(not) && not.length > 0) found[kind] = Math.min(found[kind], 1) as Level;
  };
  narrow("shell", "shell", "allowedCommands", "deniedCommands");
  narrow("create", "write", "allowedPaths", "deniedPaths");
  narrow("change", "write", "allowedPaths", "deniedPaths");
  narrow("read", "read", "allowedPaths", "deniedPaths");
  narrow("subagent", "subagent", "availableAgents", "deniedAgents");
  return found;
}

const products: Readonly<Record<FormatId, (text: string) => Levels>> = {
  claude: (text) => own(fenced(text)),
  agents: (text) => own(fenced(text)),
  opencode: (text) => opencode(fenced(text)["permission"]),
  "opencode-json"(text) {
    const { agent } = JSON.parse(text) as { agent: Record<string, Fields> };
    return opencode(Object.values(agent)[0]?.["permission"]);
  },
  codex(text) {
    const { features } = parseToml(text) as { features?: Fields };
    const noShell = features?.["shell_tool"] === false;
    return levels((kind) => (noShell && ["shell", "read", "find", "search"].includes(kind) ? 0 : 2));
  },
  copilot(text) {
    const { tools, agents } = fenced(text);
    const found = listed(
      textsOf(tools),
      {
        read: ["read"],
        edit: ["create", "change"],
        execute: ["shell"],
        Bash: ["shell"],
        Write: ["create", "change"],
        WebFetch: ["fetch", "websearch"],
        search: ["find", "search"],
        web: ["fetch", "websearch"],
        agent: ["subagent"],
      },
      (word) => (/^[^/]+\/./.test(word) ? 1 : 0),
    );
    if (Array.isArray(agents))
      found.subagent = Math.min(found.subagent, agents.length === 0 ? 0 : 1) as Level;
    return found;
  },
  gemini: (text) =>
    listed(
      textsOf(fenced(text)["tools"]),
      {
        read_file: ["read"],
        read_many_files: ["read"],
        write_file: ["create"],
        replace: ["change"],
        run_shell_command: ["shell"],
        glob: ["find"],
        list_directory: ["find"],
        grep_search: ["search"],
        web_fetch: ["fetch"],
        google_web_search: ["websearch"],
        invoke_agent: ["subagent"],
      },
      serverLevel("mcp_"),
    ),
  qwen(text) {
    const { tools, disallowedTools } = fenced(text);
    const table = {
      read_file: ["read"],
      write_file: ["create"],
      edit: ["change"],
      run_shell_command: ["shell"],
      glob: ["find"],
      list_directory: ["find"],
      grep_search: ["search"],
      web_fetch: ["fetch"],
      WebFetch: ["fetch"],
      web_search: ["websearch"],
      agent: ["subagent"],
    } as const;
    const server = serverLevel("mcp__");
    const found = listed(textsOf(tools), table, server);
    const gone = listed(textsOf(disallowedTools) ?? [], table, server);
    return levels((kind) => (gone[kind] === 2 ? 0 : (Math.min(found[kind], 2 - gone[kind]) as Level)));
  },
  cursor(text) {
    const isReadOnly = fenced(text)["readonly"] === true;
    return levels((kind) => (isReadOnly && ["create", "change", "shell"].includes(kind) ? 0 : 2));
  },
  factory(text) {
    const { tools, mcpServers } = fenced(text);
    const found = listed(
      textsOf(tools),
      {
        Read: ["read"],
        LS: ["find"],
        Glob: ["find"],
        Grep: ["search"],
        Create: ["create"],
        Edit: ["change"],
        ApplyPatch: ["create", "change"],
        Execute: ["shell"],
        FetchUrl: ["fetch"],
        WebSearch: ["websearch"],
      },
      (word) => (word.startsWith("mcp__") ? 1 : 0),
    );
    if (Array.isArray(mcpServers) && mcpServers.length === 0) found.mcp = 0;
    return { ...found, subagent: 0 };
  },
  kiro: (text) => kiro(JSON.parse(text) as Fields),
  "kiro-md": (text) => kiro(fenced(text)),
  cline: (text) =>
    listed(
      textsOf(fenced(text)["tools"]),
      {
        read_file: ["read"],
        write_to_file: ["create"],
        replace_in_file: ["change"],
        apply_patch: ["create", "change"],
        execute_command: ["shell"],
        list_files: ["find"],
        search_files: ["search"],
        web_fetch: ["fetch"],
        use_subagents: ["subagent"],
      },
      (word) => (word === "use_mcp_tool" || word === "access_mcp_resource" ? 2 : 0),
    ),
  goose: () => everything,
  pi: (text) =>
    listed(
      textsOf(fenced(text)["tools"]) ?? ["read", "write", "edit", "bash", "grep", "find", "ls"],
      {
        read: ["read"],
        write: ["create"],
        edit: ["change"],
        bash: ["shell"],
        grep: ["search"],
        find: ["find"],
        ls: ["find"],
        subagent: ["subagent"],
      },
      (word) => (word.startsWith("mcp:") ? 1 : 0),
    ),
};

const entry = fc.oneof(
  fc.constantFrom(..."Read Write Edit Bash Glob Grep WebFetch WebSearch Agent LS Task TodoWrite".split(" ")),
  fc.constantFrom("read", "BASH", "bash", "webfetch", "Frobnicate", "MultiEdit"),
  fc.constantFrom(
    "Bash(*)",
    "Bash(git diff *)",
    "Bash(git:*)",
    "Bash(rm -rf *)",
    "Bash(1)",
    'Bash(echo "a, b")',
    "Edit(src/**)",
    "Write(src/**)",
    "Write(docs/**)",
    "Read(**/.env)",
    "Agent(a, b)",
    "Agent(a)",
    "Task(finder)",
    "WebFetch(domain:a.example)",
  ),
  fc.constantFrom(
    "mcp__*",
    "mcp__github",
    "mcp__github__*",
    "mcp__github__create_issue",
    "mcp__my_server__do_it",
    "mcp__a__b_c",
  ),
);
const list = fc.uniqueArray(entry, { maxLength: 7 });
const modes = ["plan", "default", "acceptEdits", "bypassPermissions"] as const;
const source = fc.record(
  {
    tools: fc.oneof(list, fc.constant(["*"])),
    disallowedTools: list,
    permissionMode: fc.constantFrom(...modes),
    model: fc.constantFrom("sonnet", "inherit", "gpt-5"),
    skills: fc.constant(["pdf"]),
    color: fc.constant("red"),
  },
  { requiredKeys: [] },
);

function read(fields: Fields) {
  const lines = Object.entries({ name: "helper", description: "Helps.", ...fields }).map(
    ([key, value]) => `${key}: ${JSON.stringify(value)}`,
  );
  const text = `---\n${lines.join("\n")}\n---\n\nHelp.\n`;
  return agentFormats.claude.read(text, { file: "/p/.claude/agents/helper.md", relative: "helper.md" })
    .agents[0];
}

describe("read as the product reads it, and not as we do", () => {
  test.each(formatIds)("an agent in %s gets nothing in silence [PRT-3]", (to) => {
    fc.assert(
      fc.property(source, (fields) => {
        const agent = read(fields);
        // A denial of something that names no tool keeps the file from loading.
        if (agent === undefined) return;
        const { text, widenings, losses } = convertAgent(agent, to, {});
        const [before, after] = [own(fields), products[to](text)];
        const wider = kinds.filter((kind) => after[kind] > before[kind]);
        if (wider.length > 0) {
          expect({ wider, text, found: widenings.length > 0 }).toEqual({ wider, text, found: true });
          expect(losses.map(({ code }) => code)).toContain("rights-widened");
        }
      }),
      { numRuns: 150 },
    );
  });

  test("a mode that the product does not have is a wider one [PRT-3]", () => {
    fc.assert(
      fc.property(source, fc.constantFrom(...formatIds), (fields, to) => {
        const agent = read(fields);
        if (agent === undefined) return;
        const { text, widenings } = convertAgent(agent, to, {});
        const words: Readonly<Record<string, number>> = {
          plan: 0,
          default: 1,
          "auto-edit": 2,
          acceptEdits: 2,
          yolo: 3,
          bypassPermissions: 3,
        };
        const rank = (mode: unknown): number => words[String(mode)] ?? 1;
        const isOwn = to === "claude" || to === "agents";
        const key = isOwn ? "permissionMode" : "approvalMode";
        const written = isOwn || to === "qwen" ? fenced(text)[key] : undefined;
        const after = products[to](text);
        const acts = (["create", "change", "shell"] as const).some((kind) => after[kind] > 0);
        if (acts && rank(written) > rank(fields.permissionMode)) expect(widenings).not.toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

const opencodeKeys = [
  "*",
  "read",
  "edit",
  "bash",
  "glob",
  "grep",
  "webfetch",
  "websearch",
  "task",
  "list",
  "github_*",
  "github_create",
  "git*",
  "web*",
];
const opencodeActions = fc.constantFrom("allow", "ask", "deny");
const permission = fc.oneof(
  opencodeActions,
  fc
    .uniqueArray(
      fc.tuple(
        fc.constantFrom(...opencodeKeys),
        fc.oneof(
          opencodeActions,
          fc
            .uniqueArray(fc.tuple(fc.constantFrom("*", "git *", "rm *", "1", "src/**"), opencodeActions), {
              selector: ([pattern]) => pattern,
              maxLength: 3,
            })
            .map((entries) => Object.fromEntries(entries)),
        ),
      ),
      { selector: ([key]) => key, maxLength: 5 },
    )
    .map((entries) => Object.fromEntries(entries)),
);
const wordsOf = (...words: readonly string[]) =>
  fc.uniqueArray(fc.constantFrom(...words, "teleport", "Bash", "Write", "WebFetch"), { maxLength: 6 });
const optional = (fields: Record<string, fc.Arbitrary<unknown>>) => fc.record(fields, { requiredKeys: [] });

/** Files of other products as people write them, by what limits an agent there. */
const foreign: Readonly<Partial<Record<FormatId, fc.Arbitrary<Fields>>>> = {
  opencode: optional({ permission }),
  copilot: optional({
    tools: wordsOf("read", "edit", "execute", "search", "web", "agent", "*", "github/*", "github/create"),
    agents: wordsOf("a", "b"),
  }),
  gemini: optional({
    tools: wordsOf(
      "read_file",
      "write_file",
      "replace",
      "run_shell_command",
      "glob",
      "grep_search",
      "web_fetch",
      "invoke_agent",
      "mcp_*",
      "mcp_github_create",
      "*",
    ),
  }),
  qwen: optional({
    tools: wordsOf(
      "read_file",
      "write_file",
      "edit",
      "run_shell_command",
      "glob",
      "web_fetch",
      "agent",
      "mcp__github",
      "*",
    ),
    disallowedTools: wordsOf("read_file", "edit", "run_shell_command", "mcp__github__create", "mcp__*"),
    approvalMode: fc.constantFrom("default", "plan", "auto-edit", "yolo"),
  }),
  cursor: optional({ readonly: fc.boolean() }),
  factory: optional({
    tools: wordsOf("Read", "Create", "Edit", "Execute", "Glob", "FetchUrl", "mcp__github__create"),
    mcpServers: fc.constantFrom([], ["github"]),
  }),
  kiro: optional({
    tools: wordsOf(
      "read",
      "write",
      "shell",
      "glob",
      "grep",
      "web_fetch",
      "use_subagent",
      "@github",
      "@github/create",
      "*",
    ),
    toolsSettings: optional({
      shell: optional({
        allowedCommands: wordsOf("git .*", "npm test", "(a|b)"),
        deniedCommands: wordsOf("rm .*", "[x]"),
      }),
      write: optional({ allowedPaths: wordsOf("src/**"), deniedPaths: wordsOf(".env") }),
      subagent: optional({ availableAgents: wordsOf("a") }),
    }),
  }),
  cline: optional({
    tools: wordsOf(
      "read_file",
      "write_to_file",
      "replace_in_file",
      "execute_command",
      "list_files",
      "web_fetch",
      "use_mcp_tool",
    ),
  }),
  pi: optional({
    tools: wordsOf(
      "read",
      "write",
      "edit",
      "bash",
      "grep",
      "ls",
      "subagent",
      "mcp:github",
      "mcp:github/create",
    ),
  }),
};

const formatsRead = Object.keys(foreign) as readonly FormatId[];
const pairs = formatsRead.flatMap((from) => formatIds.map((to) => [from, to] as const));

describe("files of other products", () => {
  test.each(pairs)("an agent of %s in %s gets nothing in silence [PRT-1, PRT-3]", (from, to) => {
    fc.assert(
      fc.property(foreign[from] ?? fc.constant({}), (limits) => {
        const fields = { name: "helper", description: "Helps.", ...limits };
        const text =
          from === "kiro"
            ? JSON.stringify({ ...fields, prompt: "Help." })
            : `---\n${Object.entries(fields)
                .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
                .join("\n")}\n---\n\nHelp.\n`;
        const relative = agentFormats[from].fileName({ id: "helper" } as PortableAgent);
        const [agent] = agentFormats[from].read(text, { file: `/p/${relative}`, relative }).agents;
        if (agent === undefined) return;
        const made = convertAgent(agent, to, {});
        // Where products differ without a list, the widest holds for what is written, and not for what was meant.
        const before = from === "cline" && !("tools" in limits) ? everything : products[from](text);
        const after = products[to](made.text);
        const wider = kinds.filter((kind) => after[kind] > before[kind]);
        if (wider.length > 0)
          expect({ wider, text, made: made.text, found: made.widenings.length > 0 }).toEqual({
            wider,
            text,
            made: made.text,
            found: true,
          });
      }),
      { numRuns: 60 },
    );
  });
});
