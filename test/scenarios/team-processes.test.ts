import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, ScriptedStep, Step } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { answerTeam } from "../torture/team-script.ts";
import { type TeamVictim, torturedTeam } from "../torture/tortured-team.ts";
import { countedServer } from "./counted-server.ts";
import { createPlace, type Place, runCommand } from "./run-command.ts";

const isAda = ({ system }: ModelRequest): boolean => system.join("\n").includes('You are "ada", a teammate');
const isLead = (request: ModelRequest): boolean => !isAda(request);
const last = (request: ModelRequest): string => JSON.stringify(request.messages.at(-1));
const call = (name: string, input: object): ScriptedCall => ({ name, input });
const startInput = { description: "work", prompt: "TASK", name: "ada" };
const startAda = call("Agent", startInput);
const settings = ["--settings", JSON.stringify({ teams: true, teammateMode: "process" })];

async function provide(script: readonly Step[]) {
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
}

function teamFile({ home }: Pick<Place, "home">, file: string): string {
  const teams = join(home, ".claude/teams");
  const path = join(teams, readdirSync(teams)[0] ?? "", file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** The id of the first question that waits. */
async function openQuestion({ home }: Pick<Place, "home">): Promise<string> {
  const projects = join(home, ".claude/projects");
  for (let id: string | undefined; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const names = existsSync(projects) ? readdirSync(projects, { recursive: true, encoding: "utf8" }) : [];
    id = names.flatMap((name) => /q-(\w+)\.json$/.exec(name)?.[1] ?? []).at(0);
    if (id !== undefined) return id;
  }
}

/** Lets those that wait know that something has happened. */
function createSignal() {
  let next = Promise.withResolvers<void>();
  return {
    fire(): void {
      next.resolve();
      next = Promise.withResolvers();
    },
    wait: (signal: AbortSignal): Promise<void> =>
      Promise.race([
        next.promise,
        new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
      ]),
  };
}

function adaOf(place: Pick<Place, "home">) {
  const config = JSON.parse(teamFile(place, "config.json"));
  return config.members.find((member: { name: string }) => member.name === "ada");
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("a teammate in a process of its own works and wakes on mail; when it dies its task is free again, and the lead learns why [TEA-8, TEA-9]", async () => {
  const place = createPlace();
  const pids = new Set<number>();
  const sent = (text: string) => call("SendMessage", { to: "team-lead", message: text });
  const environment = await provide([
    {
      match: (request: ModelRequest) =>
        isLead(request) && JSON.stringify(request.messages).includes("Its process ended (SIGKILL)"),
      text: "Ada died.",
      times: "any",
    },
    {
      match: (request: ModelRequest) => isLead(request) && last(request).includes("ONE"),
      calls: [call("SendMessage", { to: "ada", message: "More." })],
    },
    { match: isLead, calls: [call("TaskCreate", { subject: "s", description: "d" }), startAda] },
    { match: isLead, text: "Waiting.", times: "any" },
    { match: isAda, calls: [sent("ONE")] },
    {
      match: (request: ModelRequest) => isAda(request) && last(request).includes("More."),
      calls: [call("TaskUpdate", { taskId: "1", status: "in_progress" })],
    },
    {
      match: (request: ModelRequest) => isAda(request) && last(request).includes("#1 [in_progress]"),
      respond() {
        pids.add(adaOf(place).pid);
        process.kill(adaOf(place).pid, "SIGKILL");
        return { text: "Never", failure: "stall", after: 1 };
      },
    },
    { match: isAda, text: "Done.", times: "any" },
  ]);
  expect(await runCommand(place, ["-p", "go", ...settings], { environment })).toMatchObject({
    code: 0,
    out: "Ada died.\n",
  });
  const [list = ""] = readdirSync(join(place.home, ".claude/tasks"));
  expect(JSON.parse(readFileSync(join(place.home, ".claude/tasks", list, "1.json"), "utf8"))).toMatchObject({
    status: "pending",
  });
  expect(adaOf(place)).toMatchObject({ state: "ended" });
  expect(pids.size).toBe(1);
});

test("members and lead are killed, the lead is continued: tasks and messages are done once, and no process is left [TEA-4, TEA-5, TEA-8]", async () => {
  const size = { tasks: 4, members: 2, width: 2 };
  const kills: TeamVictim[] = [0, "lead"];
  let claims = 0;
  const nextClaim = createSignal();
  const provider = await startFakeProvider({
    keepsRequests: false,
    respond(request) {
      const answer = answerTeam(request, String(request.messages.length), size);
      // The next member to be killed holds a task, or is about to.
      if (answer.calls?.some(({ id }) => id?.startsWith("call-work-") === true)) {
        claims += 1;
        nextClaim.fire();
      }
      return answer;
    },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const done = await torturedTeam({
    provider,
    size,
    async nextKill(signal) {
      const seen = claims;
      const next = kills[0];
      while (next !== undefined && claims === seen && !signal.aborted) await nextClaim.wait(signal);
      return next ?? "nothing";
    },
    onKill: () => void kills.shift(),
  });
  expect(kills).toEqual([]);
  expect(done.completed).toBe(size.tasks);
});

test("what the lead was started with reaches a teammate in a process: settings, hooks, agents, MCP servers, folders [TEA-7, TEA-8]", async () => {
  const place = createPlace();
  const server = countedServer(place.cwd);
  const beside = join(place.home, "beside");
  mkdirSync(beside);
  writeFileSync(join(beside, "note.txt"), "from beside");
  const hook = { hooks: [{ type: "command", command: `cat >> '${join(place.cwd, "seen.txt")}'` }] };
  const environment = await provide([
    {
      match: isLead,
      calls: [call("Agent", { ...startInput, subagent_type: "helper" })],
    },
    { match: isLead, text: "Waiting.", times: "any" },
    {
      match: isAda,
      calls: [
        call("mcp__counted__echo", { message: "through the server" }),
        call("Read", { file_path: join(beside, "note.txt") }),
        call("Bash", { command: "touch denied" }),
      ],
    },
    { match: isAda, respond: (request) => ({ text: `SAW ${last(request)}` }) },
  ]);
  const words = [
    ...[
      "--settings",
      JSON.stringify({ teams: true, teammateMode: "process", hooks: { PreToolUse: [hook] } }),
    ],
    ...["--agents", JSON.stringify({ helper: { description: "Helps.", prompt: "You are a HELPER." } })],
    ...["--mcp-config", JSON.stringify({ mcpServers: { counted: server.config } }), "--strict-mcp-config"],
    ...[
      "--add-dir",
      beside,
      "--allowedTools",
      "mcp__counted,Read,Bash",
      "--disallowedTools",
      "Bash(touch:*)",
    ],
  ];
  expect(await runCommand(place, ["-p", "go", ...words], { environment })).toMatchObject({ code: 0 });
  const inbox = teamFile(place, "inboxes/team-lead.json");
  expect(inbox).toContain("through the server");
  expect(inbox).toContain("from beside");
  expect(inbox).toMatch(/touch.*was not allowed|was not allowed.*touch/s);
  const seen = readFileSync(join(place.cwd, "seen.txt"), "utf8");
  expect(seen).toContain('"tool_name":"mcp__counted__echo"');
  await server.gone();
});

test("plans, hooks and shutdown work with a teammate in a process as they do with one of the lead's [TEA-3, TEA-6, TEA-8]", async () => {
  const place = createPlace();
  const answer = (approve: boolean, message: string) => ({
    respond: (request: ModelRequest) => ({
      calls: [
        call("SendMessage", {
          to: "ada",
          type: "plan_approval_response",
          request_id: /plan-[0-9a-f]{8}@ada/.exec(last(request))?.[0],
          approve,
          message,
        }),
      ],
    }),
  });
  const plan = (text: string) => call("ExitPlanMode", { plan: text });
  const complete = call("TaskUpdate", { taskId: "1", status: "completed" });
  const on = (who: (request: ModelRequest) => boolean, text: string, step: ScriptedStep): Step => ({
    match: (request: ModelRequest) => who(request) && last(request).includes(text),
    ...step,
  });
  const environment = await provide([
    on(isLead, "PLAN ONE", answer(false, "Too vague.")),
    on(isLead, "PLAN TWO", answer(true, "Good.")),
    on(isLead, "REPORT", { calls: [call("SendMessage", { to: "ada", type: "shutdown_request" })] }),
    on(isLead, "has shut down", { calls: [call("TeamDelete", {})] }),
    on(isLead, "was deleted", { text: "Over." }),
    {
      match: isLead,
      calls: [
        call("TaskCreate", { subject: "s", description: "d" }),
        call("Agent", { ...startInput, mode: "plan" }),
      ],
    },
    { match: isLead, text: "Waiting.", times: "any" },
    on(isAda, "is rejected: Too vague", { calls: [plan("PLAN TWO")] }),
    on(isAda, "is approved: Good", {
      calls: [call("Write", { file_path: "out.txt", content: "x" }), complete],
    }),
    on(isAda, "not changed: NOT-YET", { calls: [complete] }),
    on(isAda, "MORE-WORK", { calls: [call("SendMessage", { to: "team-lead", message: "REPORT" })] }),
    on(isAda, "Shutdown request", {
      respond: (request) => ({
        calls: [
          call("SendMessage", {
            to: "team-lead",
            type: "shutdown_response",
            request_id: /shutdown-\d+@ada/.exec(last(request))?.[0],
            approve: true,
          }),
        ],
      }),
    }),
    { match: isAda, calls: [call("Write", { file_path: "early.txt", content: "x" }), plan("PLAN ONE")] },
    { match: isAda, text: "Done.", times: "any" },
  ]);
  const hook = (command: string) => [{ hooks: [{ type: "command", command }] }];
  const once = (file: string, word: string) =>
    `test -e ${file} || { touch ${file}; echo ${word} >&2; exit 2; }`;
  const hooks = {
    TaskCompleted: hook(once("c1", "NOT-YET")),
    // Not while it waits for the answer to its plan.
    TeammateIdle: hook(`test ! -e out.txt || ${once("i1", "MORE-WORK")}`),
  };
  const words = ["--settings", JSON.stringify({ teams: true, teammateMode: "process", hooks })];
  const ended = await runCommand(place, ["-p", "go", ...words, "--permission-mode", "acceptEdits"], {
    environment,
  });
  expect(ended).toMatchObject({ code: 0, out: "Over.\n" });
  expect(existsSync(join(place.cwd, "early.txt"))).toBe(false);
  expect(existsSync(join(place.cwd, "out.txt"))).toBe(true);
  expect(readdirSync(join(place.home, ".claude/teams"))).toEqual([]);
});

test("the budget of the tree holds for a teammate in a process too [TEA-8, LIM-3]", async () => {
  const place = createPlace();
  const usage = { inputTokens: 9_000, outputTokens: 10 };
  const environment = await provide([
    { match: isLead, calls: [startAda], usage },
    { match: isLead, text: "Waiting.", times: "any", usage },
    { match: isAda, calls: [call("TaskList", {})], times: 50, usage },
  ]);
  const tree = { limits: { tree: { tokens: 100_000 } }, teams: true, teammateMode: "process" };
  const ended = await runCommand(place, ["-p", "go", "--settings", JSON.stringify(tree)], { environment });
  expect(ended.code).not.toBe(null);
  expect(teamFile(place, "inboxes/team-lead.json")).toMatch(
    /"partial.*Token limit reached: \d+ of 100000 tokens of the whole tree left/s,
  );
});

test("a call of a teammate in a process waits in the inbox of approvals, and continues when it is allowed [TEA-8, APR-1]", async () => {
  const place = createPlace();
  const environment = await provide([
    { match: isLead, calls: [startAda] },
    { match: isLead, text: "Waiting.", times: "any" },
    { match: isAda, calls: [call("Bash", { command: "touch made" })] },
    { match: isAda, text: "Made.", times: "any" },
  ]);
  const ended = runCommand(place, ["-p", "go", ...settings, "--approvals", "wait"], { environment });
  const id = await openQuestion(place);
  expect(existsSync(join(place.cwd, "made"))).toBe(false);
  expect(await runCommand(place, ["approve", id])).toMatchObject({ code: 0 });
  expect(await ended).toMatchObject({ code: 0 });
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
});

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

test.runIf(hasTmux)(
  "in tmux each teammate has a pane that shows it and takes messages for it [TEA-8]",
  async () => {
    const place = createPlace();
    const socket = join(place.home, "tmux");
    const tmux = (...words: readonly string[]): string =>
      spawnSync("tmux", ["-f", "/dev/null", "-S", socket, ...words], { encoding: "utf8" }).stdout;
    onTestFinished(() => void tmux("kill-server"));
    tmux("new-session", "-d", "-x", "200", "-y", "50", "sleep 60");
    const typed = Promise.withResolvers<void>();
    const environment = await provide([
      {
        match: (request: ModelRequest) =>
          isLead(request) && JSON.stringify(request.messages).includes("HEARD"),
        text: "It heard.",
        times: "any",
      },
      { match: isLead, calls: [startAda] },
      { match: isLead, text: "Waiting.", times: "any" },
      { match: isAda, text: "I look around.", calls: [call("TaskList", {})] },
      {
        match: (request: ModelRequest) =>
          isAda(request) && JSON.stringify(request.messages).includes("from the pane"),
        calls: [call("SendMessage", { to: "team-lead", message: "HEARD" })],
      },
      {
        match: isAda,
        async respond() {
          await until(() =>
            tmux("capture-pane", "-p", "-t", adaOf(place).tmuxPaneId).includes("I look around."),
          );
          tmux("send-keys", "-t", adaOf(place).tmuxPaneId, "from the pane", "Enter");
          await until(() => teamFile(place, "inboxes/ada.json").includes("from the pane"));
          typed.resolve();
          return "Seen.";
        },
      },
      { match: isAda, text: "Done.", times: "any" },
    ]);
    const panes = ["--settings", JSON.stringify({ teams: true, teammateMode: "auto" })];
    const ended = runCommand(place, ["-p", "go", ...panes], {
      environment: { ...environment, TMUX: `${socket},1,0` },
    });
    expect(await ended).toMatchObject({ code: 0, out: "It heard.\n" });
  },
);

test("what cannot run in another process is refused with the reason [TEA-8]", async () => {
  await using sample = await createSampleRuntime(
    [
      { match: isLead, calls: [startAda] },
      { match: isLead, text: "Refused." },
    ],
    {
      teams: true,
      settings: '{"teammateMode": "process"}',
    },
  );
  const result = await sample.runtime.run("Begin.").result;
  expect(result.text).toBe("Refused.");
  expect(last(sample.requests[1] as ModelRequest)).toMatch(/needs functions of this program.*in-process/);
  expect(existsSync(join(sample.home, ".claude/teams"))).toBe(true);
});
