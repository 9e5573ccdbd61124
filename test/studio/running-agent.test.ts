import type { SessionUpdate } from "@retinue/core/kernel/live/session-update.ts";
import { startStudio } from "@retinue/hosts/studio/start-studio.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createParser } from "eventsource-parser";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand } from "../scenarios/run-command.ts";

const token = "0123456789abcdef0123";
const id = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

test("the text of an agent in another process arrives while it is written, and the agent is stopped from the page [STU-1, STU-2]", async () => {
  await using provider = await startFakeProvider({
    script: [{ text: "Half of it, and then nothing more.", failure: "stall", after: 1 }],
  });
  const place = createPlace();
  const project = place.cwd.replace(/[^A-Za-z0-9]/g, "-");
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const running = runCommand(place, ["-p", "Go.", "--session-id", id, "--output-format", "json"], {
    environment,
  });
  const studio = await startStudio({
    scope: { projects: `${place.home}/.claude/projects` },
    host: "127.0.0.1",
    port: 0,
    token,
    acting: { user: "ada", program: { file: "", arguments: [] }, environment: {}, cwd: place.cwd },
    log: () => undefined,
  });
  onTestFinished(() => studio.close());
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const act = (body: object) =>
    fetch(`${studio.origin}/api/act`, {
      method: "POST",
      headers,
      body: JSON.stringify({ project, sessionId: id, agentId: "main", ...body }),
    });
  await expect
    .poll(
      async () =>
        (await fetch(`${studio.origin}/api/inspection?project=${project}&id=${id}`, { headers })).status,
    )
    .toBe(200);
  const seen = Promise.withResolvers<string>();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const stream = await fetch(`${studio.origin}/api/agent?project=${project}&id=${id}&agent=main`, {
    headers,
    signal: stop.signal,
  });
  const parser = createParser({
    onEvent({ data }) {
      const { live = [] }: SessionUpdate = JSON.parse(data);
      const text = live.map((piece) => piece.text ?? "").join("");
      if (text !== "") seen.resolve(text);
    },
  });
  void (async () => {
    for await (const chunk of stream.body ?? []) parser.feed(Buffer.from(chunk).toString("utf8"));
  })().catch(() => undefined);
  expect(await seen.promise).toContain("Half");
  expect((await act({ action: "message", text: "Faster." })).status).toBe(200);
  expect((await act({ action: "stop" })).status).toBe(200);
  const { out } = await running;
  expect(out).toContain("stopped");
  const inspection = await (
    await fetch(`${studio.origin}/api/inspection?project=${project}&id=${id}`, { headers })
  ).json();
  expect(inspection).toMatchObject({
    agents: [{ state: "stopped", reason: "stopped-by-user" }],
    acts: [
      { action: "message", state: "requested", by: "ada through studio" },
      { state: "done" },
      { action: "stop", state: "requested" },
      { state: "done" },
    ],
  });
});
