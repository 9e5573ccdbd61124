import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { lintDefinition } from "@retinue/config/agents/lint-definition.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import { afterAll, describe, expect, test } from "vitest";
import { projectRoot } from "./project-files.ts";
import { type Ended, runPrograms } from "./run-programs.ts";

const folder = join(projectRoot, "examples");

/** What each program must print among its lines. */
const expected: Readonly<Record<string, { readonly status?: number; readonly lines: readonly string[] }>> = {
  "01-parse.ts": {
    lines: [
      "changelog-writer [ 'Read', 'Edit(CHANGELOG.md)', 'Bash(git log *)' ] 12",
      "changelog-writer.md:3:34 warning: `description`: an unquoted value may not hold `: `; it was read as plain text.",
      "changelog-writer.md:5:1 warning: `max_turns` is not a field of an agent; it was read as `maxTurns`.",
    ],
  },
  "02-discover.ts": {
    lines: [
      "code-reviewer               project  opus",
      "house-rules:audit:licences  plugin   inherit",
      "general-purpose             builtin  inherit",
      "statusline-setup is hidden by the deny rule Task(statusline-setup)",
      "found code-reviewer",
      "unknown; nearest: code-reviewer",
      "0 problems",
    ],
  },
  "03-define.ts": {
    lines: [
      "code-reviewer: Read, Grep; shadows project",
      "triage: Read, Grep, mcp__tracker__*; shadows no one",
      "code-reviewer is from: project",
      'invalid-definition: The agent "../escape" is not usable: The name "../escape" cannot be used: it could lead out of a directory. Use lower-case letters, digits and hyphens.',
    ],
  },
  "04-check.ts": {
    status: 1,
    lines: [
      "broken-limit.md:4          error    unreadable-restriction",
      "unquoted-colon.md:3        warning  yaml-repaired",
      "5 errors, 20 other problems",
    ],
  },
  "05-run.ts": {
    lines: [
      "calls Glob",
      "refused Bash",
      "completed There are five agents. I was not allowed to remove them.",
      "3 turns, 2 calls, 1 refused",
    ],
  },
  "06-own-tool.ts": {
    lines: [
      "There are apples again. 57",
      "I may not order gold. order was not allowed: we do not trade in gold. Do without it, or say in your answer what you would have needed.",
    ],
  },
  "07-typed-output.ts": {
    lines: ["change [ 'src/cart.ts:12' ]", "after 2 tries"],
  },
  "08-anthropic-loop.ts": {
    lines: [
      "offers Agent, TaskOutput, TaskStop",
      "hears There are five agents.",
      "hears The settings are in .claude/settings.json.",
      "says Five agents, one settings file.",
    ],
  },
  "09-ai-sdk-loop.ts": {
    lines: ["hears There are five.", "says Five agents work here."],
  },
  "10-mcp-server.ts": {
    lines: ["shop connected", "mcp__shop__price gave apples: 3", "Apples are 3."],
  },
  "11-budget.ts": {
    lines: [
      "src completed 1",
      "docs completed 1",
      "test The agent was not started: Budget limit reached: 0.00 of 2.00 US dollars of the whole tree left.",
    ],
  },
  "12-team.ts": {
    lines: ["Balances are sums of bookings, and one test covers them.", "ada idle true", "bob idle true"],
  },
  "13-stream.ts": {
    lines: [
      "I send someone.",
      "The book has three chapters.",
      "general-purpose ended: There are three chapters.",
      "main ended: The book has three chapters.",
    ],
  },
  "14-parallel-children.ts": { lines: ["Lisbon 9, Oslo 7, Turin 8 best: Lisbon"] },
  "15-hooks.ts": {
    lines: [
      "ran Read package.json",
      "I read one of the two. Read was refused by a hook: Secrets stay unread.",
    ],
  },
  "16-approvals.ts": {
    lines: [
      "ada is asked about pay",
      "ada: It is paid.",
      "bob is asked about pay",
      "bob: I was not allowed to pay.",
    ],
  },
  "17-background.ts": {
    lines: [
      "The search has begun.",
      "general-purpose running",
      "completed Found 3 letters.",
      "It found 3 letters.",
    ],
  },
  "18-resume-after-crash.ts": {
    lines: ["the first process ended with SIGKILL", "Both steps are done. after 1 more call"],
  },
  "19-own-model.ts": { lines: ["hello the world"] },
  "20-ai-sdk-model.ts": { lines: ["It snows in Oslo. 1 call"] },
  "21-web-server.ts": {
    lines: ["10 have tea, 10 sessions ordered", "10 have none; without a login: 401"],
  },
  "22-test.ts": { lines: ["tested"] },
  "23-store.ts": { lines: ["The report is written.", "It has two pages."] },
  "24-abort.ts": {
    lines: ['stopped "Once upon a time there w" true', "aborted The run was stopped."],
  },
};

describe("the example programs use the package as its users do", () => {
  test("each has an expectation, and imports nothing of the source", () => {
    const programs = readdirSync(folder).filter((name) => name.endsWith(".ts"));
    expect(programs).toEqual(Object.keys(expected));
    const texts = programs.map((name) => readFileSync(join(folder, name), "utf8"));
    expect(texts.filter((text) => !/from "retinue[/"]/.test(text) || text.includes("../src"))).toEqual([]);
  });

  let ended: Promise<readonly Ended[]> | undefined;
  // An empty one, so that no personal settings count.
  const home = mkdtempSync(join(tmpdir(), "examples-home-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const runAll = () =>
    runPrograms(
      Object.keys(expected).map((name) => ({ file: join(folder, name), cwd: projectRoot, home })),
      { ...process.env, RETINUE_LOCAL_MODELS: "0" },
    );

  test.each(Object.entries(expected))("%s prints what it should", async (program, { status = 0, lines }) => {
    ended ??= runAll();
    const result = (await ended)[Object.keys(expected).indexOf(program)];
    const printed = `${result?.stdout}${result?.stderr}`.trimEnd().split("\n");
    expect(printed).toEqual(expect.arrayContaining([...lines]));
    expect(result?.status).toBe(status);
  });
});

describe("the example agents", () => {
  const problemsOf = (file: string) => {
    const text = readFileSync(file, "utf8");
    const { definition, diagnostics } = parseAgentDefinition(text, { file });
    return [...diagnostics, ...(definition === undefined ? [] : lintDefinition(definition, { text }))];
  };
  const filesIn = (place: string) =>
    readdirSync(join(folder, place), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, place, name));

  test.each([
    "workspace/.claude/agents",
    "plugin/agents",
  ])("of %s have neither errors nor warnings", (place) => {
    const files = filesIn(place);
    expect(files).not.toEqual([]);
    const bad = files.flatMap(problemsOf).filter(({ severity }) => severity !== "note");
    expect(bad).toEqual([]);
  });

  test("of awkward have at least one problem each, and together many kinds", () => {
    const found = filesIn("awkward").map((file) => ({ file: basename(file), diagnostics: problemsOf(file) }));
    expect(found.filter(({ diagnostics }) => diagnostics.length === 0)).toEqual([]);
    expect(
      new Set(found.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code))).size,
    ).toBeGreaterThan(15);
  });
});
