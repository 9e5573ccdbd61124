import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, ScriptedStep, Step } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";
import { call, connectProcess, createMcpStage } from "./mcp-stage.ts";

const last = (request: ModelRequest): string => JSON.stringify(request.messages.at(-1));
const use = (name: string, input: object): ScriptedCall => ({ name, input });
const send = (message: string): ScriptedCall => use("SendMessage", { to: "team-lead", message });
const on = (text: string, step: ScriptedStep): Step => ({
  match: (request: ModelRequest) => last(request).includes(text),
  ...step,
});

test("an MCP client leads a team: named agents stay, write, take more work, share a board and shut down [TEA-1, TEA-3, MCP-3]", async () => {
  const stage = await createMcpStage([
    on("Shutdown request", {
      respond: (request) => ({
        calls: [
          use("SendMessage", {
            to: "team-lead",
            type: "shutdown_response",
            request_id: /shutdown-\d+@ada/.exec(last(request))?.[0],
            approve: true,
          }),
        ],
      }),
    }),
    on("More.", { calls: [use("TaskUpdate", { taskId: "1", status: "completed" }), send("TWO")] }),
    { calls: [use("TaskUpdate", { taskId: "1", status: "in_progress" }), send("ONE")] },
    { text: "Idle.", times: "any" },
  ]);
  stage.environment["CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"] = "1";
  const client = await connectProcess(stage);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["read_messages", "message_team", "create_task", "list_tasks"]),
  );
  const received: string[] = [];
  const until = async (text: string): Promise<void> => {
    while (!received.join("\n").includes(text)) received.push((await call(client, "read_messages", {})).text);
  };
  expect((await call(client, "create_task", { subject: "count", description: "d" })).text).toContain(
    "Task 1",
  );
  const started = await call(client, "spawn_agent", { prompt: "Do task 1.", name: "ada" });
  expect(started.text).toContain("The teammate works now");
  await until("ada is idle and available");
  const sent = await call(client, "send_message", {
    agent_id: String(started.data["agentId"]),
    message: "More.",
  });
  expect(sent.data).toMatchObject({ delivery: "queued" });
  await until("TWO");
  expect((await call(client, "list_tasks", {})).text).toBe("#1 [completed] count (ada)");
  expect((await call(client, "delete_team", {})).text).toContain("Members are still active: ada");
  await call(client, "message_team", { to: "ada", type: "shutdown_request" });
  await until("ada has shut down");
  expect((await call(client, "delete_team", {})).text).toContain("was deleted");
  for (const word of ["ONE", "TWO"])
    expect(received.join("\n").match(new RegExp(`\\n${word}\\n`, "g"))).toHaveLength(1);
  const teams = join(stage.home, ".claude/teams");
  expect(existsSync(teams) ? readdirSync(teams) : []).toEqual([]);
});
