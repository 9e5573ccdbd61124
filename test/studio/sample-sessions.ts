import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SessionFiles, sessionFiles } from "@retinue/core/journal/session-files.ts";
import { openInboxFiles } from "@retinue/core/kernel/approvals/inbox-files.ts";
import { openTeamStore, type TeamPlaces } from "@retinue/core/teams/team-store.ts";
import { type ApprovalQuestion, digestOf } from "@retinue/gate/grants/approval-record.ts";
import { type Studio, startStudio } from "@retinue/hosts/studio/start-studio.ts";
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
  const studio = await startStudio({
    scope: { projects },
    teams,
    host: "127.0.0.1",
    port: 0,
    token: "0123456789abcdef0123",
    acting: {
      user: "ada",
      program: { file: process.execPath, arguments: ["-e", "0"] },
      environment: {},
      cwd: root,
    },
    log: () => undefined,
  });
  return {
    root,
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
      "id" | "tool" | "input" | "directory" | "session" | "places" | "at" | "suggestedRules"
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
