import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ModelRequest } from "../../src/model/model.ts";
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import { createSampleRuntime } from "../../src/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "../../src/testing/script.ts";
import { createPlace, type Place, runCommand } from "./run-command.ts";

const isAda = ({ system }: ModelRequest): boolean => system.join("\n").includes('You are "ada", a teammate');
const isLead = (request: ModelRequest): boolean => !isAda(request);
const last = (request: ModelRequest): string => JSON.stringify(request.messages.at(-1));
const call = (name: string, input: object): ScriptedCall => ({ name, input });
const startAda = call("Agent", { description: "work", prompt: "TASK", name: "ada" });
const settings = ["--settings", JSON.stringify({ teams: true, teammateMode: "process" })];

async function provide(script: readonly Step[]) {
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
}

function adaOf({ home }: Pick<Place, "home">) {
  const teams = join(home, ".claude/teams");
  const [name = ""] = readdirSync(teams);
  const config = JSON.parse(readFileSync(join(teams, name, "config.json"), "utf8"));
  return config.members.find((member: { name: string }) => member.name === "ada");
}

function inboxOf({ home }: Pick<Place, "home">): string {
  const teams = join(home, ".claude/teams");
  const file = join(teams, readdirSync(teams)[0] ?? "", "inboxes/ada.json");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("a teammate in a process of its own works, wakes on mail and is gone with its lead [TEA-8]", async () => {
  const place = createPlace();
  let pid = 0;
  const environment = await provide([
    {
      match: (request: ModelRequest) => isLead(request) && last(request).includes("ONE"),
      calls: [call("SendMessage", { to: "ada", message: "More." })],
    },
    {
      match: (request: ModelRequest) => isLead(request) && JSON.stringify(request.messages).includes("TWO"),
      text: "Got both.",
      times: "any",
    },
    { match: isLead, calls: [startAda] },
    { match: isLead, text: "Waiting.", times: "any" },
    {
      match: isAda,
      respond() {
        pid = adaOf(place).pid;
        return { calls: [call("SendMessage", { to: "team-lead", message: "ONE" })] };
      },
    },
    {
      match: (request: ModelRequest) => isAda(request) && last(request).includes("More."),
      calls: [call("SendMessage", { to: "team-lead", message: "TWO" })],
    },
    { match: isAda, text: "Done.", times: "any" },
  ]);
  expect(await runCommand(place, ["-p", "go", ...settings], { environment })).toMatchObject({
    code: 0,
    out: "Got both.\n",
  });
  expect(pid).toBeGreaterThan(0);
  await until(() => !isRunning(pid));
});

test("a teammate whose process dies is noticed, its task is free again, and the lead learns why [TEA-8, TEA-9]", async () => {
  const place = createPlace();
  const environment = await provide([
    {
      match: (request: ModelRequest) =>
        isLead(request) && JSON.stringify(request.messages).includes("Its process ended (SIGKILL)"),
      text: "Ada died.",
      times: "any",
    },
    { match: isLead, calls: [call("TaskCreate", { subject: "s", description: "d" }), startAda] },
    { match: isLead, text: "Waiting.", times: "any" },
    { match: isAda, calls: [call("TaskUpdate", { taskId: "1", status: "in_progress" })] },
    {
      match: isAda,
      respond() {
        process.kill(adaOf(place).pid, "SIGKILL");
        return { text: "Never", failure: "stall", after: 1 };
      },
    },
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
});

test("kill -9 of the lead leaves no process of a teammate behind [TEA-8]", async () => {
  const place = createPlace();
  let pid = 0;
  let kill = (): void => undefined;
  const environment = await provide([
    { match: isLead, calls: [startAda] },
    { match: isLead, text: "Waiting.", times: "any" },
    {
      match: isAda,
      respond() {
        pid = adaOf(place).pid;
        kill();
        return { text: "Never", failure: "stall", after: 1 };
      },
    },
  ]);
  await runCommand(place, ["-p", "go", "--output-format", "stream-json", "--verbose", ...settings], {
    environment,
    watch(_out, child) {
      kill = () => child.kill("SIGKILL");
    },
  });
  expect(pid).toBeGreaterThan(0);
  await until(() => !isRunning(pid));
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
          await until(() => inboxOf(place).includes("from the pane"));
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
