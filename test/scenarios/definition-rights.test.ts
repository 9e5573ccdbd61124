import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentInput } from "@retinue/config/agents/define-agent.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";

interface Attempt {
  readonly agent: string | AgentInput;
  readonly commands: readonly string[];
  readonly mode?: PermissionMode;
  /** `PROJECT` and `HOME` in them are the folders of the sample. */
  readonly permissions?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
  readonly isolation?: "worktree";
  readonly calls?: readonly { readonly name: string; readonly input: Record<string, unknown> }[];
}

/** Starts an agent that tries every command, and says which of them were refused and what the model read. */
async function attempt({ agent, commands, mode, permissions = {}, isolation, calls = [] }: Attempt) {
  const tried = [...commands.map((command) => ({ name: "Bash", input: { command } })), ...calls];
  await using sample = await createSampleRuntime([{ calls: tried }, "Done."], {
    trusted: true,
    agents: typeof agent === "string" ? [] : [agent],
  });
  const { project } = sample.workspace;
  mkdirSync(join(project, "src"));
  for (const name of ["a.txt", "b.txt", "src/a.ts"]) writeFileSync(join(project, name), `text of ${name}\n`);
  if (isolation !== undefined) commitAll(project);
  const placed = JSON.stringify({ permissions })
    .replaceAll("PROJECT", project)
    .replaceAll("HOME", sample.home);
  mkdirSync(join(sample.home, ".claude"), { recursive: true });
  writeFileSync(join(sample.home, ".claude", "settings.json"), placed);
  const session = await sample.runtime.open(
    mode === undefined ? {} : { permissionMode: mode, skipPermissions: mode === "bypassPermissions" },
  );
  const before = listFiles(project);
  const handle = session.spawn(
    typeof agent === "string" ? agent : agent.name,
    "Work.",
    isolation === undefined ? {} : { isolation },
  );
  const result = await handle.result;
  await session[Symbol.asyncDispose]();
  const refused = result.denials.map(({ call }) => String((call.input as { command?: unknown }).command));
  return {
    ran: commands.filter((command) => !refused.includes(command)),
    changed: listFiles(project) !== before,
    seen: JSON.stringify(sample.requests[1]?.messages),
    denials: result.denials.length,
  };
}

function listFiles(project: string): string {
  return readdirSync(project, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("/.git"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path}: ${readFileSync(path, "utf8")}`)
    .sort()
    .join("\n");
}

function commitAll(directory: string): void {
  const identity = [
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  for (const words of [
    ["init", "-q"],
    ["add", "-A"],
    ["commit", "-qm", "first"],
  ])
    execFileSync("git", [...identity, ...words], { cwd: directory });
}

const changes = [
  "echo x > new.txt",
  "touch new",
  "rm src/a.ts",
  "mkdir d",
  "cp a.txt new",
  "sed -i s/t/z/ a.txt",
];
const reads = ["cat a.txt", "ls src | head -2", "grep -rn text src 2>/dev/null"];

describe("agents that promise to change nothing", () => {
  test.each<[string, PermissionMode, readonly string[]]>([
    ["Explore", "acceptEdits", []],
    ["Plan", "acceptEdits", []],
    ["Explore", "default", ["Bash", "Edit"]],
    ["Plan", "bypassPermissions", []],
  ])("%s in mode %s with the rules %j runs only commands that read [BLT-2, BLT-3]", async (agent, mode, allow) => {
    const result = await attempt({ agent, mode, commands: [...changes, ...reads], permissions: { allow } });
    expect(result).toMatchObject({ ran: reads, changed: false });
  });
});

describe("what a definition takes from its editing tools", () => {
  const agent = { name: "worker", description: "Works.", prompt: "Work." };

  test.each<[string, AgentInput]>([
    ["disallowedTools without them", { ...agent, disallowedTools: ["Write", "Edit"] }],
    ["disallowedTools by an old name", { ...agent, disallowedTools: ["MultiEdit", "write"] }],
    ["tools without them", { ...agent, tools: ["Bash", "Read"] }],
  ])("%s: acceptEdits lets no command edit [TLS-2]", async (_title, definition) => {
    const result = await attempt({
      agent: definition,
      mode: "acceptEdits",
      commands: [...changes, ...reads],
    });
    expect(result).toMatchObject({ ran: reads, changed: false });
  });

  test("a denial counts for what commands write also where a rule allows every command [TLS-2]", async () => {
    const result = await attempt({
      agent: { ...agent, disallowedTools: ["Write", "Edit"] },
      commands: ["echo x > new.txt", "cp a.txt new", "cat a.txt 2>/dev/null"],
      permissions: { allow: ["Bash", "Edit"] },
    });
    expect(result).toMatchObject({ ran: ["cat a.txt 2>/dev/null"], changed: false });
  });

  test("a limit to some paths is one for commands too [TLS-3]", async () => {
    const commands = [
      "echo x > src/new.txt",
      "touch src/other.ts",
      "echo x > new.txt",
      "touch new",
      "cp src/a.ts new",
    ];
    const tools = ["Write(src/**)", "Read", "Bash"];
    const byMode = await attempt({ agent: { ...agent, tools }, mode: "acceptEdits", commands });
    expect(byMode.ran).toEqual(commands.slice(0, 2));
    const permissions = { allow: ["Edit", "Bash(echo:*)"] };
    const redirections = commands.filter((command) => command.startsWith("echo"));
    const byRule = await attempt({ agent: { ...agent, tools }, commands: redirections, permissions });
    expect(byRule.ran).toEqual(["echo x > src/new.txt"]);
  });

  test("with its editing tools an agent's commands edit as before [TLS-2]", async () => {
    const commands = ["echo x > new.txt", "rm src/a.ts"];
    const result = await attempt({ agent: "general-purpose", mode: "acceptEdits", commands });
    expect(result).toMatchObject({ ran: commands, denials: 0 });
  });
});

describe("rules with full paths, in a worktree of the repository", () => {
  const isolation = "worktree";

  test.each([
    "Read(/PROJECT/a.txt)",
    "Read(//**/project/a.txt)",
  ])("deny %s keeps the copy from being read, searched and shown by git [PRM-4]", async (rule) => {
    const { ran, seen } = await attempt({
      agent: "general-purpose",
      isolation,
      permissions: { deny: [rule] },
      commands: ["cat a.txt", "grep -r text .", "git show HEAD:a.txt", "cat b.txt"],
      calls: [
        { name: "Read", input: { file_path: "a.txt" } },
        { name: "Grep", input: { pattern: "text of", output_mode: "content" } },
      ],
    });
    expect(ran).toEqual(["grep -r text .", "cat b.txt"]);
    expect(seen).toContain("text of b.txt");
    expect(seen).not.toContain("text of a.txt");
  });

  test("deny with ~/ and with a folder keeps the copies from being changed [PRM-4]", async () => {
    const { ran } = await attempt({
      agent: "general-purpose",
      isolation,
      mode: "acceptEdits",
      permissions: { deny: ["Edit(~/../project/src/**)", "Edit(/PROJECT/b.txt)"] },
      commands: ["echo x > src/a.ts", "rm b.txt", "echo x > a.txt"],
    });
    expect(ran).toEqual(["echo x > a.txt"]);
  });
});
