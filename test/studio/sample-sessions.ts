import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SessionFiles, sessionFiles } from "@retinue/core/journal/session-files.ts";
import { openInboxFiles } from "@retinue/core/kernel/approvals/inbox-files.ts";
import { mergeJournalFile, openMergeJournal } from "@retinue/core/kernel/merge/merge-journal.ts";
import type { MergeStep } from "@retinue/core/protocol/merge-step.ts";
import {
  foldWorkflow,
  type WorkflowChange,
  type WorkflowRunState,
  type WorkflowStep,
} from "@retinue/core/protocol/workflow-state.ts";
import { openTeamStore, type TeamPlaces } from "@retinue/core/teams/team-store.ts";
import { openJournal, type WorkflowJournal } from "@retinue/core/workflows/workflow-journal.ts";
import { type ApprovalQuestion, digestOf } from "@retinue/gate/grants/approval-record.ts";
import { type Studio, type StudioOptions, startStudio } from "@retinue/hosts/studio/start-studio.ts";
import { createParser } from "eventsource-parser";
import { type Browser, chromium } from "playwright-core";

/** Sessions on disk, a studio that serves them, and a browser: for tests, screenshots and figures. */

const browserFile = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (file) => existsSync(file),
);

/** Why tests in a browser are skipped; undefined where there is one. */
export const missingBrowser = browserFile === undefined ? "no Chromium or Chrome in /usr/bin" : undefined;

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: browserFile ?? "", args: flags });
}

export const shopToken = "0123456789abcdef0123";
export const project = "-work-shop";
export const small = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

export const line = (value: object): string => `${JSON.stringify(value)}\n`;
/** When the sessions that are written now have begun. */
export const clock = { start: Date.UTC(2026, 9, 1, 10) };
export const stamp = (second: number): string => new Date(clock.start + second * 1000).toISOString();
export const prompt = (uuid: string, text: string, second = 0): string =>
  line({ type: "user", uuid, timestamp: stamp(second), message: { role: "user", content: text } });
export const answer = (uuid: string, content: readonly object[], second = 1): string =>
  line({
    type: "assistant",
    uuid,
    timestamp: stamp(second),
    costUSD: 0.25,
    durationMs: 900,
    message: { id: uuid, model: "claude-sonnet-5", content, usage: { input_tokens: 100, output_tokens: 10 } },
  });
export const said = (uuid: string, text: string, second = 1): string =>
  answer(uuid, [{ type: "text", text }], second);
export const ending = (uuid: string, runEnding: object, second = 2): string =>
  line({
    type: "system",
    subtype: "turn_duration",
    uuid,
    timestamp: stamp(second),
    durationMs: 2000,
    runEnding,
  });
export const result = (uuid: string, callId: string, toolCall: object, second = 2): string =>
  line({
    type: "user",
    uuid,
    timestamp: stamp(second),
    toolCall,
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: callId, content: "ok" }] },
  });

export interface Shop extends AsyncDisposable {
  readonly root: string;
  readonly transcripts: string;
  readonly teams: TeamPlaces;
  readonly studio: Studio;
  /** For another studio of the same folder. */
  options(port: number): StudioOptions;
  files(id: string): SessionFiles;
}

/** A folder with one small session and a studio for it. */
export async function openShop(): Promise<Shop> {
  const root = mkdtempSync(join(tmpdir(), "retinue-studio-page-"));
  const projects = join(root, "projects");
  const transcripts = join(projects, project);
  const teams = { teams: join(root, "teams"), tasks: join(root, "tasks") };
  mkdirSync(transcripts, { recursive: true });
  const files = (id: string): SessionFiles => sessionFiles(transcripts, id);
  writeSmall(files(small));
  writeQuestion(files(small));
  await writeTeam(teams);
  const options = (port: number): StudioOptions => ({
    scope: { projects },
    teams,
    host: "127.0.0.1",
    port,
    token: shopToken,
    acting: {
      user: "ada",
      program: { file: process.execPath, arguments: ["-e", "0"] },
      environment: {},
      cwd: root,
    },
    log: () => undefined,
  });
  const studio = await startStudio(options(0));
  return {
    root,
    options,
    transcripts,
    teams,
    studio,
    files,
    async [Symbol.asyncDispose]() {
      await studio.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Reads events of the studio until one satisfies. */
export async function followStudio<T>(
  { studio }: Pick<Shop, "studio">,
  path: string,
  isEnough: (update: T) => boolean,
): Promise<T> {
  const stop = new AbortController();
  const response = await fetch(`${studio.origin}${path}`, {
    headers: { authorization: `Bearer ${shopToken}` },
    signal: stop.signal,
  });
  const found: T[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      const update: T = JSON.parse(data);
      if (isEnough(update)) found.push(update);
    },
  });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      const [first] = found;
      if (first !== undefined) return first;
    }
  } finally {
    stop.abort();
  }
  throw new Error(`${path} ended with ${response.status} before it sent what was waited for.`);
}

const edit = {
  file_path: "/shop/shelf.ts",
  old_string: "const shelves = 3;",
  new_string: "const shelves = 4;",
};

const receipt = {
  status: "failed-check",
  tree: { kind: "git", digest: "5f1c0de5f1c0de5f1c0de5f1c0de5f1c0de5f1c0" },
  checks: [
    { kind: "command", run: "npm test", passed: true, exitCode: 0, durationMs: 900, output: "" },
    { kind: "command", run: "npm run lint", passed: false, exitCode: 3, durationMs: 80, output: "dusty" },
  ],
  notes: ["The last test run is older than the last edit."],
};

function writeSmall(files: SessionFiles): void {
  mkdirSync(files.subagents, { recursive: true });
  const plan = {
    model: { value: "claude-sonnet-5", from: "the call" },
    policy: { mode: "plan", allow: [] },
    modeFrom: "settings",
  };
  writeFileSync(
    files.transcript,
    prompt("u1", "Count the shelves.") +
      line({ type: "retinue-plan", timestamp: stamp(0), plan }) +
      answer("a1", [
        { type: "tool_use", id: "t1", name: "Edit", input: edit },
        { type: "tool_use", id: "t2", name: "Bash", input: { command: "ls shelves" } },
      ]) +
      result("u2", "t1", { durationMs: 0, denied: "a rule denies it" }) +
      result("u3", "t2", {
        durationMs: 20,
        decidedMs: 1,
        allowed: { by: "rule", reason: "the rule Bash(ls:*) in .claude/settings.json allows it" },
      }) +
      said("a2", "There are four shelves.", 3) +
      ending("e1", { status: "completed", reason: "end_turn", receipt }, 4),
  );
  const failed = files.agent("afailed");
  writeFileSync(failed.meta, line({ agentType: "Explore", description: "Measure the shelves" }));
  writeFileSync(
    failed.transcript,
    prompt("f1", "Measure.") +
      said("f2", "I try.") +
      ending("f3", { status: "failed", reason: "error", error: "The ruler broke." }),
  );
}

/** A call of the small session that waits for a person. */
export function writeQuestion(
  { approvals }: SessionFiles,
  {
    id = "0123456789ab",
    tool = "Bash",
    input = { command: "rm -r old-shelves" },
    directory = "/shop",
    ...more
  }: Partial<
    Pick<
      ApprovalQuestion,
      | "id"
      | "tool"
      | "input"
      | "directory"
      | "session"
      | "places"
      | "at"
      | "suggestedRules"
      | "quote"
      | "everyTime"
    >
  > = {},
): void {
  const call = { tool, input, directory, paths: [] };
  openInboxFiles(approvals).putQuestion({
    ...call,
    version: 1,
    id,
    session: small,
    digest: digestOf(call),
    reason: "no allow rule matches",
    suggestedRules: ["Bash(rm -r old-shelves)"],
    everyTime: false,
    places: [{ agent: "afailed", path: "main > Measure the shelves", call: "c1", at: 1 }],
    at: Date.UTC(2026, 9, 1, 10),
    ...more,
  });
}

async function writeTeam(places: TeamPlaces): Promise<void> {
  const store = openTeamStore(places, "shop");
  const member = (name: string, more: object) => ({
    agentId: `${name}@shop`,
    name,
    joinedAt: 0,
    tmuxPaneId: "",
    cwd: "/shop",
    subscriptions: [],
    ...more,
  });
  await store.update(() => ({
    name: "shop",
    description: "",
    createdAt: 0,
    leadAgentId: "team-lead@shop",
    leadSessionId: small,
    members: [
      member("team-lead", {}),
      member("measurer", { taskId: "afailed", agentType: "Explore", state: "idle" }),
    ],
  }));
  await store.board.create({ subject: "Measure every shelf", description: "", owner: "measurer" });
  await store.send("measurer", { from: "team-lead", body: "Begin at the door." });
}

export const runId = "wf_1a2b3c4d-5e6";

/** A run of a workflow in the session `id`, saved as its process does; the journal is open until it is closed. */
export async function writeRun(
  transcripts: string,
  id: string,
  { startedAt = clock.start, status = "running" }: { startedAt?: number; status?: "running" | "failed" } = {},
): Promise<{ readonly journal: WorkflowJournal; change(change: WorkflowChange): void }> {
  const journal = await openJournal(runId, { transcripts, sessionId: id });
  const agent = (digits: string): string => `${runId}-a${digits.padStart(16, "0")}`;
  let state: WorkflowRunState = {
    runId,
    taskId: "w1a2b3c4d",
    sessionId: id,
    name: "repaint",
    description: "Repaints every shelf, wall by wall",
    script: "await agent('…')",
    scriptPath: "/shop/.claude/workflows/repaint.js",
    defaultModel: "claude-sonnet-5",
    status: "running",
    startedAt,
    phases: [],
    steps: [],
    logs: [],
    failures: [],
  };
  const change = (change: WorkflowChange): void => {
    state = foldWorkflow(state, change);
    journal.save(state);
  };
  const step = (index: number, more: Omit<Partial<WorkflowStep>, "index">): void =>
    change({ type: "step", step: { index, queuedAt: startedAt, lastSignAt: startedAt + 9000, ...more } });
  const at = { startedAt: startedAt + 1000, endedAt: startedAt + 9000 };
  const spent = { tokens: 4200, toolUses: 6, costUsd: 0.12 };
  change({ type: "phase", phase: { index: 1, title: "Measure", stepsBefore: 0 } });
  step(1, {
    label: "walls",
    phase: "Measure",
    prompt: "Measure every wall.",
    state: "done",
    taken: true,
    agentId: agent("1"),
    result: "Eleven walls.",
  });
  step(2, {
    label: "shelves",
    phase: "Measure",
    prompt: "Measure the shelves.",
    state: "done",
    why: "asked to run again",
    agentId: agent("2"),
    result: "Four shelves.",
    ...at,
    ...spent,
  });
  change({ type: "phase", phase: { index: 2, title: "Paint", stepsBefore: 2 } });
  step(3, {
    label: "door",
    phase: "Paint",
    prompt: "Paint by the door.",
    state: "running",
    agentId: agent("3"),
    startedAt: at.startedAt,
    tokens: 900,
  });
  step(4, {
    label: "window",
    phase: "Paint",
    prompt: "Paint by the window.",
    state: "failed",
    agentId: agent("4"),
    error: "The paint is out.",
    ...at,
    ...spent,
  });
  step(5, { label: "ceiling", phase: "Paint", prompt: "Paint the ceiling.", state: "waiting" });
  change({ type: "log", text: "The walls are measured." });
  if (status === "failed")
    change({ type: "ended", status, at: at.endedAt, error: "No paint is left.", errorLine: 12 });
  return { journal, change };
}

/** The first steps of a merge of four agents, as its process writes them. */
export const mergeSteps: readonly MergeStep[] = [
  {
    type: "started",
    sessionId: small,
    into: `retinue/integration-${small.slice(0, 8)}`,
    from: "0".repeat(40),
    checks: ["npm test"],
    children: ["Change the parser", "Add a test", "Rename the option", "Drop Node 18"].map(
      (description, at) => ({
        agent: `am${at}`,
        agentType: "fixer",
        description,
        branch: `retinue/am${at}`,
      }),
    ),
  },
  { type: "taken", agent: "am0", tip: "a".repeat(40), base: "0".repeat(40), files: ["src/parser.ts"] },
  { type: "checking", agent: "am0", tip: "a".repeat(40), commit: "1".repeat(40) },
  {
    type: "checked",
    agent: "am0",
    tip: "a".repeat(40),
    commit: "1".repeat(40),
    status: "verified",
    checks: [{ kind: "command", run: "npm test", passed: true, exitCode: 0, durationMs: 8100, output: "" }],
  },
  { type: "advanced", agent: "am0", tip: "a".repeat(40), from: "0".repeat(40), to: "1".repeat(40) },
  {
    type: "taken",
    agent: "am1",
    tip: "b".repeat(40),
    base: "0".repeat(40),
    files: ["test/a.ts", "test/b.ts"],
  },
  { type: "resolving", agent: "am1", tip: "b".repeat(40), onto: "1".repeat(40), resolver: "merge-resolver" },
];

/** Of the last of the four a check fails, and then the merge ends. */
export const lastMergeSteps: readonly MergeStep[] = [
  { type: "taken", agent: "am3", tip: "d".repeat(40), base: "0".repeat(40), files: ["package.json"] },
  {
    type: "checked",
    agent: "am3",
    tip: "d".repeat(40),
    commit: "2".repeat(40),
    status: "failed-check",
    checks: [
      {
        kind: "command",
        run: "npm test",
        passed: false,
        exitCode: 1,
        durationMs: 7200,
        output: "1 test failed: engines",
      },
    ],
  },
  {
    type: "left",
    agent: "am3",
    because: "failed-check",
    reason: "`npm test` failed with exit code 1",
    commands: ["retinue merge --discard am3"],
  },
  { type: "ended", status: "partial" },
];

/** Writes steps of a merge; the process has the journal as long as it is not disposed of. */
export async function writeMerge(transcripts: string, id: string, steps: readonly MergeStep[]) {
  const journal = openMergeJournal(mergeJournalFile(transcripts, id), "os");
  const write = async (more: readonly MergeStep[]): Promise<void> => {
    for (const step of more) await journal.write({ ...step, at: clock.start + 30_000 });
  };
  await write(steps);
  return { write, [Symbol.dispose]: () => journal[Symbol.dispose]() };
}
