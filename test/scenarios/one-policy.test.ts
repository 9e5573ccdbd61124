import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import { decide } from "@retinue/gate/decide.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runInProcess } from "./run-command.ts";

type Call = readonly [tool: string, input: Readonly<Record<string, unknown>>];

const calls: readonly Call[] = [
  ["Read", { file_path: "src/a.ts" }],
  ["Read", { file_path: ".env" }],
  ["Read", { file_path: "/etc/hostname" }],
  ["Write", { file_path: "src/b.ts", content: "" }],
  ["Edit", { file_path: "/outside/b.ts", old_string: "a", new_string: "b" }],
  ["NotebookEdit", { notebook_path: "n.ipynb" }],
  ["Glob", { pattern: "../**/*.ts" }],
  ["Grep", { pattern: "x", path: "/etc" }],
  ["Bash", { command: "ls -l" }],
  ["Bash", { command: "git status && cat .env" }],
  ["Bash", { command: "npm test" }],
  ["Bash", { command: "npm publish > /outside/log 2>/dev/null" }],
  ["Bash", { command: 'eval "$X"' }],
  ["Bash", { command: "docker ps" }],
  ["WebFetch", { url: "https://example.com/a", prompt: "" }],
  ["Agent", { subagent_type: "Explore", prompt: "x", description: "x" }],
  ["Skill", { skill: "deploy" }],
  ["AskUserQuestion", { questions: [] }],
  ["TodoWrite", { todos: [] }],
];

const rule = fc.constantFrom(
  "Bash",
  "Bash(npm *)",
  "Bash(git status)",
  "Read",
  "Read(.env)",
  "View(//etc/**)",
  "Edit(src/**)",
  "Write(//outside/**)",
  "NotebookEditCell",
  "WebFetch(domain:example.com)",
  "Task(Explore)",
  "Skill(deploy)",
  "Glob",
);
const rules = fc.uniqueArray(rule, { maxLength: 3 });
const switches = fc.record(
  {
    blockReadsOutsideWorkingDirectories: fc.constant(true),
    blockReadsExemptPaths: fc.constant(["/etc/hostname"]),
    blockWritesOutsideWorkingDirectories: fc.constant(true),
    denyInsteadOfPrompting: fc.constant(true),
    defaultMode: fc.constantFrom("acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"),
    additionalDirectories: fc.constant(["/outside"]),
  },
  { requiredKeys: [] },
);
const sandbox = fc.constantFrom(
  undefined,
  { enabled: true, autoAllowBashIfSandboxed: true, failIfUnavailable: true },
  { enabled: true, autoAllowBashIfSandboxed: true, failIfUnavailable: true, excludedCommands: ["docker *"] },
  { enabled: true },
);
const written: fc.Arbitrary<Written> = fc.record({
  allow: rules,
  ask: rules,
  deny: rules,
  switches,
  sandbox,
  trusted: fc.boolean(),
  mode: fc.constantFrom<PermissionMode | undefined>(undefined, "default", "acceptEdits", "plan", "delegate"),
});

interface Written {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  readonly switches: object;
  readonly sandbox: object | undefined;
  readonly trusted: boolean;
  readonly mode: PermissionMode | undefined;
}

function writeSettings(
  { workspace, home }: SampleRuntime,
  { allow, ask, deny, switches: more, sandbox: box }: Written,
): void {
  const save = (folder: string, value: unknown) => {
    mkdirSync(join(folder, ".claude"), { recursive: true });
    writeFileSync(join(folder, ".claude", "settings.json"), JSON.stringify(value));
  };
  save(home, { permissions: { allow, ...more }, sandbox: box });
  save(workspace.project, { permissions: { ask, deny } });
}

async function explain({ workspace, home }: SampleRuntime, options: readonly string[], [tool, input]: Call) {
  const words = ["permissions", "test", "--json", "--tool", tool, "--input", JSON.stringify(input)];
  const place = { cwd: workspace.project, home };
  const { code, out, err } = await runInProcess(place, [...words, ...options]);
  if (code !== 0) throw new Error(`${out}${err}`);
  const { decision, allowedBy, reason } = JSON.parse(out);
  return { decision, allowedBy, reason };
}

/** A reason without the file that a rule is in, which people see in a shorter form. */
const withoutPlaces = (reason: string): string => reason.replace(/ in \S+ (denies|asks|allows)/, " $1");

async function compare(sample: SampleRuntime, given: Written): Promise<void> {
  writeSettings(sample, given);
  const { trusted, mode } = given;
  const options = [...(trusted ? ["--trust"] : []), ...(mode === undefined ? [] : ["--mode", mode])];
  const { runtime } = sample.restart(["Hi."], { trusted, settingSources: ["user", "project", "local"] });
  await using session = await runtime.open({
    planOnly: true,
    permissionMode: mode,
  });
  // Which tools the session has is no question of its rules; `permissions test` answers for any tool.
  const { toolScopes: _tools, ...policy } = session.plan.policy;
  const { directory } = session.plan;
  for (const call of calls) {
    const [tool, input] = call;
    const effect = toolFacts.get(tool)?.effect ?? "";
    const decided = decide(await gatherCallFacts({ tool, effect, input }, { policy, directory }), policy);
    const explained = await explain(sample, options, call);
    expect({ call, ...explained, reason: withoutPlaces(explained.reason) }).toEqual({
      call,
      decision: decided.type,
      allowedBy: decided.allowedBy,
      reason: withoutPlaces(decided.reason),
    });
  }
}

describe("`permissions test` explains what a run decides [PRM-1]", () => {
  test("over generated settings, options and calls", { timeout: 60_000 }, async () => {
    await using sample = await createSampleRuntime(["Hi."]);
    await fc.assert(
      fc.asyncProperty(written, (given) => compare(sample, given)),
      { numRuns: 8, seed: 13 },
    );
  });

  test("where the sandbox allows", async () => {
    await using sample = await createSampleRuntime(["Hi."]);
    const box = { enabled: true, autoAllowBashIfSandboxed: true, failIfUnavailable: true };
    const empty = { allow: [], ask: [], deny: [], switches: {}, trusted: true, mode: undefined };
    await compare(sample, { ...empty, sandbox: { ...box, excludedCommands: ["docker *"] } });
    const explained = await explain(sample, ["--trust"], ["Bash", { command: "npm test" }]);
    expect(explained).toMatchObject({ decision: "allow", allowedBy: "sandbox" });
  });
});
