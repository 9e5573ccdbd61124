import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { ScriptedCall } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand, runInProcess } from "./run-command.ts";

const isAda = ({ system }: ModelRequest): boolean => system.join("\n").includes('You are "ada", a teammate');
const call = (name: string, input: object): ScriptedCall => ({ name, input });

test("retinue teams lists, shows, writes to, stops and removes a team that another process leads [TEA-2, TEA-9, CLI-1]", async () => {
  const place = createPlace();
  const working = Promise.withResolvers<void>();
  const provider = await startFakeProvider({
    script: [
      {
        match: (request: ModelRequest) =>
          JSON.stringify(request.messages.at(-1)).includes("has ended; a message"),
        text: "Ada is gone.",
        times: "any",
      },
      {
        match: (request: ModelRequest) => !isAda(request),
        calls: [
          call("TeamCreate", { team_name: "squad", description: "Finds things." }),
          call("TaskCreate", { subject: "look around", description: "d" }),
          call("Agent", { description: "work", prompt: "TASK", name: "ada" }),
        ],
      },
      { match: (request: ModelRequest) => !isAda(request), text: "Waiting.", times: "any" },
      { match: isAda, calls: [call("TaskUpdate", { taskId: "1", status: "in_progress" })] },
      {
        match: isAda,
        respond() {
          working.resolve();
          return { text: "Never", failure: "stall", after: 1 };
        },
      },
    ],
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS: "1",
  };
  // The member has a process of its own, so that three take part.
  const settings = ["--settings", JSON.stringify({ teammateMode: "process" })];
  const running = runCommand(place, ["-p", "go", ...settings], { environment });
  await working.promise;
  const teams = (...words: readonly string[]) => runInProcess(place, ["teams", ...words]);
  // A file that names no session as its lead costs only its own team.
  mkdirSync(join(place.home, ".claude/teams/broken"), { recursive: true });
  writeFileSync(join(place.home, ".claude/teams/broken/config.json"), '{"leadSessionId":"x","members":[]}');
  const list = await teams();
  rmSync(join(place.home, ".claude/teams/broken"), { recursive: true });
  const show = await teams("show", "squad");
  const board = await teams("board", "squad");
  const sent = await teams("send", "squad", "ada", "Hurry", "up.");
  const clean = await teams("clean");
  expect(list.out).toMatch(/squad\s+running\s+1 working\s+0\/1/);
  expect(list.err).toContain("expected leadSessionId, the id of a session");
  expect(show.out).toMatch(/Finds things.*ada\s+working, general-purpose/s);
  expect(board.out).toBe("#1 [in_progress] look around (ada)\n");
  expect(sent).toMatchObject({ code: 0, out: "Sent to ada.\n" });
  expect(clean.out).toBe("kept  squad (a running process leads it)\n");
  const messages = await teams("messages", "squad", "ada");
  const unknown = await teams("show", "other");
  const nobody = await teams("send", "squad", "bob", "Hi");
  expect(messages.out).toMatch(/user → ada {2}\(unread\)\n {2}Hurry up\./);
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('There is no team "other"') });
  expect(nobody.err).toContain("Its members are team-lead, ada");
  expect(await runCommand(place, ["teams", "stop", "squad"])).toMatchObject({
    code: 0,
    out: "ada was stopped.\n",
  });
  expect(await running).toMatchObject({ code: 0, out: "Ada is gone.\n" });
  const inspected = await runInProcess(place, ["inspect"]);
  expect(inspected.out).toMatch(/TEAM squad\n.*ada: ended.*#1 look around: pending/s);
  expect(inspected.out).toMatch(/MAIL AND BOARD\n.*team-lead TaskCreate.*system → team-lead: ada has ended/s);
  expect(await teams("clean", "squad")).toMatchObject({ code: 0, out: "removed  squad\n" });
  expect(existsSync(join(place.home, ".claude/teams/squad"))).toBe(false);
});
