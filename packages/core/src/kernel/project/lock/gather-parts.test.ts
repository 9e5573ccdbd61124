import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readLock, writeLock } from "@retinue/config/lock/lock-file.ts";
import { dump } from "js-yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareLock, type LockDifference, matters } from "./compare-lock.ts";
import { folderOf, gatherAllParts, gatherParts } from "./gather-parts.ts";

type Json = Record<string, unknown>;

/** A project as its author thinks of it; how it is written is another matter. */
interface Project {
  agents: Record<string, { fields: Json; prompt: string }>;
  skills: Record<string, { fields: Json; body: string; files: Record<string, string> }>;
  settings: Json & { permissions: Json; hooks: Json; env: Json };
  servers: Record<string, Json>;
  workflow: { step: string; options: string; cap: number };
  opencode: Record<string, Json>;
  scripts: Record<string, string>;
  codex: string;
}

const command = (text: string) => ({ type: "command", command: text });

function base(): Project {
  return {
    agents: {
      reviewer: {
        fields: {
          name: "reviewer",
          description: "Reviews changes. Use after edits.",
          tools: ["Read", "Grep", "Bash(git diff *)"],
          permissionMode: "plan",
          maxTurns: 20,
          isolation: "worktree",
          limits: { usd: 1 },
          hooks: { PreToolUse: [{ matcher: "Bash", hooks: [command("scripts/guard.sh")] }] },
        },
        prompt: "Review the change.\n\nReport what is wrong.",
      },
      writer: {
        fields: {
          name: "writer",
          description: "Writes documentation.",
          disallowedTools: ["Bash", "mcp__github__delete_repo"],
          mcpServers: [{ own: { command: "node", args: ["scripts/server.mjs"] } }],
        },
        prompt: "Write.",
      },
      Explore: {
        fields: { name: "Explore", description: "Looks around.", tools: ["Read"] },
        prompt: "Look.",
      },
    },
    skills: {
      pdf: {
        fields: {
          name: "pdf",
          description: "Reads PDF files.",
          "allowed-tools": ["Bash(pdftotext *)"],
          "disallowed-tools": ["WebFetch"],
        },
        body: "Use scripts/read.py.",
        files: { "scripts/read.py": "print(1)\n" },
      },
    },
    settings: {
      permissions: {
        allow: ["Bash(npm test)"],
        deny: ["Read(./.env)", "Bash(curl *)"],
        ask: ["Bash(git push *)"],
      },
      hooks: {
        PreToolUse: [{ matcher: "Write", hooks: [command("$CLAUDE_PROJECT_DIR/scripts/check.sh")] }],
        Stop: [{ hooks: [command("echo done")] }],
      },
      env: { CI: "1" },
      deniedMcpServers: [{ serverName: "evil" }],
    },
    servers: {
      github: { command: "npx", args: ["-y", "gh-mcp"], env: { A: "1" } },
      docs: { type: "http", url: "https://docs.example/mcp" },
    },
    workflow: { step: "'look'", options: "{ agentType: 'reviewer' }", cap: 3 },
    opencode: {
      helper: { description: "Helps.", mode: "subagent", permission: { edit: "deny", bash: "deny" } },
    },
    scripts: { "guard.sh": "exit 0\n", "check.sh": "exit 0\n", "server.mjs": "1\n" },
    codex: "shell_tool = false",
  };
}

/** Deterministic numbers from 0 up to a limit. */
function dice(seed: number): (limit: number) => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return (limit) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) >>> 0;
    return (state >>> 8) % limit;
  };
}

/** The same project in one of many ways to write it. */
function render(project: Project, seed: number): Record<string, string> {
  const roll = dice(seed);
  const shuffled = (value: Json): Json => {
    const entries = Object.entries(value);
    return Object.fromEntries(roll(2) === 0 || seed === 0 ? entries : entries.reverse());
  };
  const yaml = (fields: Json): string => {
    const given = Object.entries(seed === 0 ? fields : shuffled(fields)).map(([key, value]) => {
      const isList = /tools$/i.test(key) && Array.isArray(value) && seed !== 0 && roll(2) === 0;
      const text = dump(
        { [key]: isList ? value.join(", ") : value },
        {
          forceQuotes: seed !== 0 && roll(2) === 0,
          flowLevel: seed !== 0 && roll(2) === 0 ? 1 : -1,
          lineWidth: roll(2) === 0 ? 30 : -1,
        },
      );
      return seed !== 0 && roll(2) === 0 ? `# a comment: ${roll(99)}\n${text}` : text;
    });
    return given.join("");
  };
  const fenced = (fields: Json, body: string): string => {
    const blank = seed === 0 ? "" : "\n".repeat(roll(3));
    const text = `---\n${yaml(fields)}---\n${blank}${body}\n${blank}`;
    const spaced = seed !== 0 && roll(3) === 0 ? text.replace(/([a-z.])$/gm, "$1  ") : text;
    return seed !== 0 && roll(3) === 0 ? spaced.replaceAll("\n", "\r\n") : spaced;
  };
  const json = (value: Json): string =>
    `${JSON.stringify(seed === 0 ? value : shuffled(value), undefined, seed === 0 ? 2 : roll(5))}\n`;
  const comment = (mark: string): string =>
    seed === 0 || roll(2) === 0 ? "" : `${mark} a comment ${roll(99)}\n`;
  const files: Record<string, string> = {
    ".claude/settings.json": json(project.settings),
    ".mcp.json": json({ mcpServers: seed === 0 ? project.servers : shuffled(project.servers) }),
    ".claude/workflows/w.js": `${comment("//")}export const meta = { name: 'w', description: 'd', phases: [{ title: 'Look', maxAgents: ${project.workflow.cap} }] }\n${comment("//")}const found =${seed === 0 ? " " : "\n  "}await agent(${seed === 0 ? project.workflow.step : project.workflow.step.replaceAll("'", '"')}, ${project.workflow.options})${seed === 0 ? "" : ";"}\n${comment("//")}return found\n`,
    "opencode.json": json({ agent: project.opencode }),
    ".codex/agents/coder.toml": `${comment("#")}name = "coder"\ndescription = "d"\n${comment("#")}developer_instructions = ${seed === 0 ? '"Code."' : "'Code.'"}\n[features]\n${project.codex}\n`,
  };
  for (const [name, { fields, prompt }] of Object.entries(project.agents))
    files[`.claude/agents/${name}.md`] = fenced(fields, prompt);
  for (const [name, { fields, body, files: brought }] of Object.entries(project.skills)) {
    files[`.claude/skills/${name}/SKILL.md`] = fenced(fields, body);
    for (const [file, text] of Object.entries(brought)) files[`.claude/skills/${name}/${file}`] = text;
  }
  for (const [name, text] of Object.entries(project.scripts)) files[`scripts/${name}`] = text;
  return files;
}

const fieldsOf = (project: Project, name: string): Json => project.agents[name]?.fields ?? {};
const skillOf = (project: Project) => project.skills["pdf"] as Project["skills"][string];
const set = (name: string, key: string, value: unknown) => (project: Project) => {
  fieldsOf(project, name)[key] = value;
};
const drop = (name: string, key: string) => (project: Project) => {
  delete fieldsOf(project, name)[key];
};
const permit = (list: string, value: unknown) => (project: Project) => {
  project.settings.permissions[list] = value;
};

/** One thing more that the project may do, and the part in which that must be reported. */
const wideners: readonly (readonly [part: string, widen: (project: Project) => void])[] = [
  ["reviewer", set("reviewer", "tools", ["Read", "Grep", "Write", "Bash(git diff *)"])],
  ["reviewer", set("reviewer", "tools", ["Read", "Grep", "Bash"])],
  ["reviewer", set("reviewer", "tools", ["Read", "Grep", "Bash(git diff *)", "Bash(git push *)"])],
  ["reviewer", set("reviewer", "tools", ["Read", "Grep", "Bash(git *)"])],
  ["reviewer", set("reviewer", "tools", ["Read", "Grep", "Bash(git diff *)", "mcp__github"])],
  ["reviewer", drop("reviewer", "tools")],
  ["reviewer", drop("reviewer", "permissionMode")],
  ["reviewer", set("reviewer", "permissionMode", "acceptEdits")],
  ["reviewer", drop("reviewer", "hooks")],
  ["reviewer", set("reviewer", "hooks", { PreToolUse: [{ matcher: "Bash", hooks: [command("true")] }] })],
  [
    "reviewer",
    set("reviewer", "hooks", {
      ...(base().agents["reviewer"]?.fields["hooks"] as Json),
      Stop: [{ hooks: [command("curl evil")] }],
    }),
  ],
  ["reviewer", set("reviewer", "maxTurns", 200)],
  ["reviewer", drop("reviewer", "maxTurns")],
  ["reviewer", set("reviewer", "limits", { usd: 50 })],
  ["reviewer", drop("reviewer", "limits")],
  ["reviewer", drop("reviewer", "isolation")],
  ["reviewer", set("reviewer", "env", { API_HOST: "evil.example" })],
  ["reviewer", set("reviewer", "verify", "npm run evil")],
  ["reviewer", set("reviewer", "memory", "user")],
  ["reviewer", set("reviewer", "mcpServers", ["github"])],
  ["writer", drop("writer", "disallowedTools")],
  ["writer", set("writer", "disallowedTools", ["mcp__github__delete_repo"])],
  ["writer", set("writer", "disallowedTools", ["Bash"])],
  ["writer", set("writer", "disallowedTools", ["Bash(rm *)", "mcp__github__delete_repo"])],
  ["writer", set("writer", "permissionMode", "bypassPermissions")],
  [
    "writer",
    set("writer", "mcpServers", [{ own: { command: "node", args: ["scripts/server.mjs", "--all"] } }]),
  ],
  ["writer", set("writer", "mcpServers", [{ own: { command: "sh" } }])],
  [
    "fresh",
    (project) => {
      project.agents["fresh"] = { fields: { name: "fresh", description: "d" }, prompt: "p" };
    },
  ],
  [
    "Explore",
    (project) => {
      delete project.agents["Explore"];
    },
  ],
  [
    "writer",
    (project) => {
      project.scripts["server.mjs"] = "2\n";
    },
  ],
  [
    "reviewer",
    (project) => {
      project.scripts["guard.sh"] = "true\n";
    },
  ],
  [
    "PreToolUse",
    (project) => {
      project.scripts["check.sh"] = "true\n";
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).fields["allowed-tools"] = ["Bash(pdftotext *)", "Bash(rm *)"];
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).fields["allowed-tools"] = ["Bash"];
    },
  ],
  [
    "pdf",
    (project) => {
      delete skillOf(project).fields["disallowed-tools"];
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).fields["hooks"] = { Stop: [{ hooks: [command("evil")] }] };
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).body = "Use it.\n\n!`curl evil`";
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).files["scripts/read.py"] = "print(2)\n";
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).files["scripts/more.py"] = "print(3)\n";
    },
  ],
  [
    "pdf",
    (project) => {
      skillOf(project).fields["context"] = "fork";
    },
  ],
  ["settings", permit("allow", ["Bash(npm test)", "Bash(npm *)"])],
  ["settings", permit("deny", ["Read(./.env)"])],
  ["settings", permit("ask", [])],
  ["settings", permit("additionalDirectories", ["/etc"])],
  ["settings", permit("defaultMode", "acceptEdits")],
  [
    "settings",
    (project) => {
      project.settings.env["API"] = "x";
    },
  ],
  [
    "settings",
    (project) => {
      project.settings["deniedMcpServers"] = [];
    },
  ],
  [
    "settings",
    (project) => {
      project.settings["enableAllProjectMcpServers"] = true;
    },
  ],
  [
    "settings",
    (project) => {
      project.settings["apiKeyHelper"] = "evil";
    },
  ],
  [
    "PreToolUse",
    (project) => {
      delete project.settings.hooks["PreToolUse"];
    },
  ],
  [
    "PreToolUse",
    (project) => {
      project.settings.hooks["PreToolUse"] = [
        { matcher: "Nothing", hooks: [command("$CLAUDE_PROJECT_DIR/scripts/check.sh")] },
      ];
    },
  ],
  [
    "SessionStart",
    (project) => {
      project.settings.hooks["SessionStart"] = [{ hooks: [command("evil")] }];
    },
  ],
  [
    "Stop",
    (project) => {
      project.settings.hooks["Stop"] = [{ hooks: [command("echo done"), command("evil")] }];
    },
  ],
  [
    "evil",
    (project) => {
      project.servers["evil"] = { command: "evil" };
    },
  ],
  [
    "github",
    (project) => {
      project.servers["github"] = { command: "npx", args: ["-y", "other"], env: { A: "1" } };
    },
  ],
  [
    "github",
    (project) => {
      project.servers["github"] = { command: "npx", args: ["-y", "gh-mcp"], env: { A: "2" } };
    },
  ],
  [
    "docs",
    (project) => {
      project.servers["docs"] = { type: "http", url: "https://evil.example/mcp" };
    },
  ],
  [
    "w",
    (project) => {
      project.workflow.options = "{ agentType: 'writer' }";
    },
  ],
  [
    "w",
    (project) => {
      project.workflow.options = "{ agentType: args.type }";
    },
  ],
  [
    "w",
    (project) => {
      project.workflow.options = "args";
    },
  ],
  [
    "w",
    (project) => {
      project.workflow.cap = 30;
    },
  ],
  [
    "helper",
    (project) => {
      project.opencode["helper"] = { ...project.opencode["helper"], permission: { edit: "deny" } };
    },
  ],
  [
    "helper",
    (project) => {
      delete project.opencode["helper"]?.["permission"];
    },
  ],
  [
    "coder",
    (project) => {
      project.codex = "shell_tool = true";
    },
  ],
];

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "lock-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function write(files: Record<string, string>): string {
  count += 1;
  const folder = join(root, `project-${count}`);
  for (const [file, text] of Object.entries({ ".git/HEAD": "", ...files })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

const placeOf = (cwd: string) => ({ cwd, home: join(root, "home"), env: {}, platform: process.platform });

/** The differences that a check of the project would report, with the lock written to its file and read again. */
async function differencesFrom(before: string, after: string): Promise<readonly LockDifference[]> {
  const locked = readLock(writeLock((await gatherParts(placeOf(before))).entries), "retinue.lock");
  expect(locked.diagnostics).toEqual([]);
  const { entries, others } = await gatherParts(placeOf(after));
  return compareLock({ before: locked.entries ?? [], after: entries, stillThere: others });
}

describe("a lock of a project", () => {
  it("has agents of every format, skills, hooks, servers, workflows and settings [PRT-4]", async () => {
    const { entries } = await gatherParts(placeOf(write(render(base(), 0))));
    expect(entries.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([
      "agent Explore",
      "agent coder",
      "agent helper",
      "agent reviewer",
      "agent writer",
      "hook PreToolUse",
      "hook Stop",
      "mcp-server docs",
      "mcp-server github",
      "setting settings",
      "skill pdf",
      "workflow w",
    ]);
  });

  it.each(
    Array.from({ length: 200 }, (_, index) => [index]),
  )("project %i: what may do more is reported in its part, however it is written [PRT-4]", async (index) => {
    const project = base();
    const [part, widen] = wideners[index % wideners.length] ?? ["", () => undefined];
    widen(project);
    const style = Math.floor(index / wideners.length) === 0 ? 0 : index;
    const found = await differencesFrom(write(render(base(), 0)), write(render(project, style)));
    const open = found.filter(matters);
    expect(open.filter(({ widenings }) => widenings.length > 0).map(({ name }) => name)).toContain(part);
    // Only scripts are in several parts.
    expect(new Set(open.map(({ name }) => name)).size).toBe(1);
  });

  it.each(
    Array.from({ length: 200 }, (_, index) => [index + 1]),
  )("project %i: comments and formatting never alarm [PRT-4]", async (style) => {
    const found = await differencesFrom(write(render(base(), 0)), write(render(base(), style)));
    expect(found.filter(matters)).toEqual([]);
  });

  it("a prompt that changed is shown as such, with the same rights [PRT-4]", async () => {
    const project = base();
    const [reviewer, pdf] = [project.agents["reviewer"], skillOf(project)];
    if (reviewer !== undefined) reviewer.prompt = "Approve everything.";
    pdf.body = "Use scripts/read.py and be quick.";
    const found = await differencesFrom(write(render(base(), 0)), write(render(project, 0)));
    expect(found).toMatchObject(
      ["reviewer", "pdf"].map((name) => ({
        name,
        status: "changed",
        widenings: [],
        changes: ["its prompt is different", "what it may do is the same"],
      })),
    );
  });

  it("what may do less is no alarm about rights, and a moved file is no new one [PRT-4]", async () => {
    const project = base();
    set("reviewer", "tools", ["Read"])(project);
    const files = render(project, 0);
    const { ".claude/agents/writer.md": writer = "", ...others } = files;
    const found = await differencesFrom(
      write(render(base(), 0)),
      write({ ...others, ".claude/agents/docs/writer.md": writer }),
    );
    expect(found.map(({ name, status, widenings }) => [name, status, widenings])).toEqual([
      ["reviewer", "narrowed", []],
      ["writer", "moved", []],
    ]);
  });

  it("folders below the project are looked through, and each counts for work in it [PRT-4]", async () => {
    const agent = "---\nname: near\ndescription: d\n---\np\n";
    const folder = write({
      ...render(base(), 0),
      "packages/api/.claude/agents/near.md": agent,
      "packages/web/x.ts": "",
    });
    const all = await gatherAllParts(placeOf(folder));
    expect(all.entries.map(({ file }) => file)).toContain("packages/api/.claude/agents/near.md");
    const [api, web] = await Promise.all(
      ["packages/api", "packages/web"].map(
        async (below) => (await gatherParts(placeOf(join(folder, below)))).entries.length,
      ),
    );
    expect([api, web]).toEqual([all.entries.length, all.entries.length - 1]);
    expect(folderOf("packages/api/.claude/agents/near.md")).toBe("packages/api");
    expect(folderOf(".mcp.json")).toBe("");
    expect(folderOf("packages/api/opencode.json")).toBe("packages/api");
  });
});
