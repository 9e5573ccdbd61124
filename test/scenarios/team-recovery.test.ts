import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, runCommand } from "./run-command.ts";

const isAda = ({ system }: ModelRequest): boolean => system.join("\n").includes('You are "ada", a teammate');
const last = (request: ModelRequest): string => JSON.stringify(request.messages.at(-1));
const call = (name: string, input: object): ScriptedCall => ({ name, input });
const startAda = call("Agent", { description: "work", prompt: "TASK", name: "ada" });

async function provide(script: readonly Step[], settings: Record<string, string> = {}) {
  const provider = await startFakeProvider({ script });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS: "1",
    ...settings,
  };
}

function mainLines({ home, cwd }: Place): string {
  const folder = join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
  const name = readdirSync(folder).find((file) => file.endsWith(".jsonl")) ?? "";
  return readFileSync(join(folder, name), "utf8");
}

test("after kill -9 of the lead, --continue finds team, board, mail and members and goes on [TEA-1, TEA-5]", async () => {
  const place = createPlace();
  const killed = Promise.withResolvers<void>();
  let kill = (): void => undefined;
  const first = await provide([
    {
      match: (request: ModelRequest) => !isAda(request),
      calls: [call("TaskCreate", { subject: "only", description: "d" }), startAda],
    },
    {
      match: (request: ModelRequest) => !isAda(request) && last(request).includes("ONE"),
      text: "Got one.",
      times: "any",
    },
    { match: (request: ModelRequest) => !isAda(request), text: "Waiting.", times: "any" },
    {
      match: isAda,
      calls: [
        call("TaskUpdate", { taskId: "1", status: "in_progress" }),
        call("SendMessage", { to: "team-lead", message: "ONE" }),
      ],
    },
    {
      match: isAda,
      async respond() {
        // The lead has the message in its transcript by now, or will find it in its inbox.
        setTimeout(() => kill(), 150);
        await killed.promise;
        return "Never.";
      },
    },
  ]);
  const ended = await runCommand(place, ["-p", "go", "--output-format", "stream-json", "--verbose"], {
    environment: first,
    watch: (_out, child) => {
      kill = () => {
        child.kill("SIGKILL");
        killed.resolve();
      };
    },
  });
  expect(ended.code).toBe(null);
  const second = await provide([
    {
      match: (request: ModelRequest) => !isAda(request) && JSON.stringify(request.messages).includes("TWO"),
      text: "Got two.",
      times: "any",
    },
    { match: (request: ModelRequest) => !isAda(request), text: "Still waiting.", times: "any" },
    {
      match: isAda,
      calls: [
        call("TaskUpdate", { taskId: "1", status: "completed" }),
        call("SendMessage", { to: "team-lead", message: "TWO" }),
      ],
    },
    { match: isAda, text: "Done.", times: "any" },
  ]);
  const again = await runCommand(place, ["-p", "Go on.", "--continue"], { environment: second });
  expect(again).toMatchObject({ code: 0, out: "Got two.\n" });
  const text = mainLines(place);
  for (const word of ["ONE", "TWO"])
    expect(text.match(new RegExp(`<teammate-message teammate_id=..ada..>.n${word}`, "g"))).toHaveLength(1);
  const tasks = join(place.home, ".claude/tasks");
  const [list = ""] = readdirSync(tasks);
  expect(JSON.parse(readFileSync(join(tasks, list, "1.json"), "utf8"))).toMatchObject({
    status: "completed",
    owner: "ada",
  });
});

test("what an idle member held when its lead was killed is free again [TEA-1, TEA-2]", async () => {
  const place = createPlace();
  const first = await provide([
    {
      match: (request: ModelRequest) => !isAda(request) && last(request).includes("still holds task 1"),
      respond() {
        kill();
        return "Never.";
      },
    },
    {
      match: (request: ModelRequest) => !isAda(request),
      calls: [call("TaskCreate", { subject: "only", description: "d" }), startAda],
    },
    { match: (request: ModelRequest) => !isAda(request), text: "Waiting.", times: "any" },
    { match: isAda, calls: [call("TaskUpdate", { taskId: "1", status: "in_progress" })] },
    { match: isAda, text: "I pause." },
  ]);
  let kill = (): void => undefined;
  const ended = await runCommand(place, ["-p", "go"], {
    environment: first,
    started: (child) => {
      kill = () => void child.kill("SIGKILL");
    },
  });
  expect(ended.code).toBe(null);
  const second = await provide([{ text: "Seen.", times: "any" }]);
  await runCommand(place, ["-p", "Go on.", "--continue"], { environment: second });
  const tasks = join(place.home, ".claude/tasks");
  const [list = ""] = readdirSync(tasks);
  const task: unknown = JSON.parse(readFileSync(join(tasks, list, "1.json"), "utf8"));
  expect(task).toMatchObject({ status: "pending" });
  expect(task).not.toHaveProperty("owner");
  expect(mainLines(place)).toContain("Its tasks are free again: 1.");
});

test("-p waits for members that work, up to a limit, and says who was still working [TEA-1, BGR-5]", async () => {
  const place = createPlace();
  const environment = await provide(
    [
      { match: (request: ModelRequest) => !isAda(request), calls: [startAda] },
      { match: (request: ModelRequest) => !isAda(request), text: "I am done.", times: "any" },
      { match: isAda, text: "Never", failure: "stall", after: 1 },
    ],
    { CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS: "200" },
  );
  const ended = await runCommand(place, ["-p", "go"], { environment });
  expect(ended).toMatchObject({ code: 0, out: "I am done.\n" });
  expect(ended.err).toContain("teammates were still working: ada");
});
