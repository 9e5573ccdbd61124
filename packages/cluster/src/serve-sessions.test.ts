import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { expect, onTestFinished, test } from "vitest";
import { openFileStore } from "./files/open-file-store.ts";
import { serveSessions } from "./serve-sessions.ts";
import { waitForEnd } from "./start-agent.ts";
import { startSession } from "./start-session.ts";

test.each([
  ["without folders takes the rules and the mode of a plan as they are", false],
  ["that is kept to folders takes nothing wider", true],
])("a worker %s, unless it says what it accepts [CLU-2]", async (_title, isKept) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-serve-")));
  const directory = join(root, "project");
  mkdirSync(directory);
  const store = await openFileStore(join(root, "store"));
  const model = createScriptedModel([
    { calls: [{ name: "Bash", input: { command: "touch by-rule" } }] },
    { calls: [{ name: "Write", input: { file_path: "by-mode.txt", content: "text" } }] },
    "Done.",
  ]);
  const worker = await serveSessions(store, {
    slots: 1,
    runtime: { home: join(root, "home"), env: { PATH: process.env["PATH"] }, model },
    workspaces: join(root, "workspaces"),
    folders: isKept ? [root] : undefined,
  });
  onTestFinished(async () => {
    await worker.drain(0);
    await store.close();
    rmSync(root, { recursive: true, force: true });
  });
  const id = await startSession(store, {
    prompt: "Work.",
    workspace: { type: "pinned", directory, machine: hostname() },
    options: { permissionMode: "acceptEdits", allowedTools: ["Bash(touch by-rule)"] },
    approvals: "refuse",
  });
  const ending = await waitForEnd(store, id, { timeoutMs: 20_000 });
  expect(ending).toMatchObject({ status: "completed", result: { text: "Done." } });
  const written = ["by-rule", "by-mode.txt"].map((name) => existsSync(join(directory, name)));
  expect(written).toEqual([!isKept, !isKept]);
});
