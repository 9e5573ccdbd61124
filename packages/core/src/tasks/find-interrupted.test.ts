import { appendFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { findInterrupted } from "./find-interrupted.ts";
import { findTasks } from "./find-tasks.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const timestamp = "2026-01-01T00:00:00.000Z";
const textOf = (lines: readonly object[]) =>
  lines.map((line) => `${JSON.stringify({ sessionId, timestamp, ...line })}\n`).join("");
const said = (uuid: string, content: unknown, more: object = {}) => ({
  type: "user",
  uuid,
  parentUuid: null,
  message: { role: "user", content },
  ...more,
});
const plan = { type: "retinue-plan", plan: { task: { agentType: "Explore", description: "look" } } };
const ending = (reason: string) => ({ type: "system", uuid: "e", runEnding: { status: "stopped", reason } });

function createFolder(): string {
  const root = mkdtempSync(join(tmpdir(), "retinue-found-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, sessionId, "subagents"), { recursive: true });
  return root;
}

function writeChild(folder: string, id: string, lines: readonly object[]): string {
  const file = join(folder, sessionId, "subagents", `agent-${id}.jsonl`);
  const mark = { isSidechain: true, agentId: id };
  writeFileSync(file, textOf([{ ...plan, ...mark }, ...lines.map((line) => ({ ...line, ...mark }))]));
  return file;
}

describe("[TRN-4] what a killed process leaves is found", () => {
  test("also where the last line of a session is longer than the part that is usually read", async () => {
    const folder = createFolder();
    const image = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "A".repeat(2e6) },
    };
    writeFileSync(join(folder, `${sessionId}.jsonl`), textOf([said("u1", "Hi."), plan, said("u2", [image])]));
    expect((await findInterrupted(folder)).sessions).toMatchObject([{ id: sessionId }]);
  });

  test("also a session whose process was ended by a signal and could say so; one that was stopped otherwise is not", async () => {
    const folder = createFolder();
    const file = join(folder, `${sessionId}.jsonl`);
    writeFileSync(file, textOf([said("u1", "Hi."), plan, ending("interrupted")]));
    expect((await findInterrupted(folder)).sessions).toMatchObject([{ id: sessionId }]);
    writeFileSync(file, textOf([said("u1", "Hi."), plan, ending("stopped")]));
    expect((await findInterrupted(folder)).sessions).toEqual([]);
  });

  test("children that ended by themselves are left out, those settled as interrupted and those that owe a stop are not", async () => {
    const folder = createFolder();
    const long = said("c1", "x".repeat(200_000));
    writeChild(folder, "ended", [long, ending("end_turn")]);
    writeChild(folder, "settled", [long, ending("interrupted")]);
    writeChild(folder, "cut", [long]);
    const gone = JSON.stringify({ ...thisProcess(), started: "before" });
    const reported = { type: "retinue-told", event: "SubagentStart" };
    writeFileSync(`${writeChild(folder, "owing", [reported, long, ending("end_turn")])}.lock`, gone);
    const ids = (tasks: readonly { readonly id: string }[]) => tasks.map(({ id }) => id).sort();
    expect(ids((await findInterrupted(folder)).agents)).toEqual(["cut", "settled"]);
    const asked: string[] = [];
    const found = await findTasks(folder, {
      isSettled: ({ id, lastSignAt }) => {
        asked.push(`${id} ${lastSignAt}`);
        return true;
      },
    });
    expect(asked).toEqual([`ended ${Date.parse(timestamp)}`]);
    expect(ids(found)).toEqual(["cut", "owing", "settled"]);
    expect(ids(await findTasks(folder, { isSettled: () => false }))).toHaveLength(4);
  });

  test("a child on a machine that cannot be seen runs as long as it gives signs of life, and says where", async () => {
    const folder = createFolder();
    const file = writeChild(folder, "away", [said("c1", "Look.")]);
    const owner = { pid: 7, machine: "elsewhere pid:[1]", started: "another-boot/1", expiresAfterMs: 20_000 };
    writeFileSync(`${file}.lock`, JSON.stringify({ ...owner, token: "x" }));
    expect(await findTasks(folder)).toMatchObject([{ id: "away", state: "running", runsOn: "elsewhere" }]);
    const then = new Date(Date.now() - 30_000);
    utimesSync(`${file}.lock`, then, then);
    expect(await findTasks(folder)).toMatchObject([{ id: "away", state: "interrupted" }]);
    expect((await findInterrupted(folder)).agents).toMatchObject([{ id: "away" }]);
  });

  test("what is damaged in a child's transcript is counted", async () => {
    const folder = createFolder();
    const file = writeChild(folder, "torn", [said("c1", "Look."), said("c3", "More.", { parentUuid: "c2" })]);
    appendFileSync(file, '{"half');
    expect(await findTasks(folder)).toMatchObject([{ damage: { broken: 0, missing: 0, torn: true } }]);
    appendFileSync(file, "\n");
    expect(await findTasks(folder)).toMatchObject([{ damage: { broken: 1, missing: 0, torn: false } }]);
  });
});
