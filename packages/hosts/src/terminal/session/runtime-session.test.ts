import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import type { HostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { expect, onTestFinished, test } from "vitest";
import type { CliHost } from "../../shared/cli-host.ts";
import { RuntimeSession } from "./runtime-session.ts";

test("a terminal that loses the race for a conversation is asked what to do, like one that came later [CLI-1]", async () => {
  const home = mkdtempSync(join(tmpdir(), "retinue-race-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const host = { cwd: home, home, environment: {}, platform: process.platform };
  const { transcripts } = createPaths(host);
  const { transcript } = sessionFiles(transcripts, randomUUID());
  mkdirSync(transcripts, { recursive: true });
  const message = { role: "user", content: "the first prompt" };
  writeFileSync(transcript, `${JSON.stringify({ type: "user", uuid: randomUUID(), message })}\n`);

  const opened: SessionOptions[] = [];
  const runtime: Pick<HostedRuntime, "openHosted"> = {
    async openHosted(options: SessionOptions): Promise<never> {
      opened.push(options);
      // Another process takes the file after the look at it and before it is opened here.
      takeOwnerLock(transcript);
      throw new RetinueError("file-in-use", "The file is being written by another process.");
    },
  };
  const session = new RuntimeSession({
    // Only what finds the files is used of them.
    context: { host: host as unknown as CliHost, session: {} },
    createRuntime: async () => runtime as HostedRuntime,
    session: { continue: true },
  });
  const asked: string[] = [];
  session.subscribe((event) => {
    if (event.type !== "question-asked" || event.question.kind !== "form") return;
    const [field] = event.question.fields;
    asked.push(field?.question ?? "");
    session.answer(event.question.id, {
      type: "fields",
      answers: { [field?.question ?? ""]: "fork" },
    });
  });
  await expect(session.open()).rejects.toThrow("being written");
  expect(asked).toEqual(["Another terminal has this conversation open. What do you want to do here?"]);
  expect(opened.map(({ forkSession = false }) => forkSession)).toEqual([false, true]);
});
