import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findLatestSession, findSession, findSessions } from "./find-sessions.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "find-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const user = (content: unknown, fields: object = {}) => ({
  type: "user",
  uuid: "u",
  parentUuid: null,
  cwd: "/w",
  gitBranch: "main",
  message: { role: "user", content },
  ...fields,
});
const assistant = (id: string) => ({ type: "assistant", uuid: id, message: { id, content: [] } });

/** Session n is n minutes old. */
async function session(n: number, ...lines: (object | string)[]): Promise<void> {
  const file = join(root, `${idOf(n)}.jsonl`);
  await writeFile(
    file,
    lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""),
  );
  await utimes(file, 1_700_000_000 - n * 60, 1_700_000_000 - n * 60);
}

describe("[TRN-3] the sessions of a project are found", () => {
  it("newest first, with what a list shows", async () => {
    await session(2, user("Second"));
    await session(1, user("First"), assistant("a"), assistant("a"), assistant("b"));
    expect(await findSessions(root)).toMatchObject([
      { id: idOf(1), title: "First", messageCount: 3, isEstimate: false, cwd: "/w", gitBranch: "main" },
      { id: idOf(2), title: "Second", messageCount: 1, modified: 1_699_999_880_000 },
    ]);
    expect(await findSessions(root, { limit: 1 })).toHaveLength(1);
  });

  it("a title given by a person beats one made by a model, which beats the first prompt; the last of a kind counts", async () => {
    const prompt = user("Prompt");
    const ai = { type: "ai-title", aiTitle: "Made" };
    await session(1, prompt);
    await session(2, prompt, ai);
    await session(
      3,
      { type: "custom-title", customTitle: "Old" },
      prompt,
      { type: "custom-title", customTitle: "Given" },
      ai,
    );
    expect((await findSessions(root)).map(({ title }) => title)).toEqual(["Prompt", "Made", "Given"]);
  });

  it("the first prompt is the first that a person wrote, on one line and without control characters", async () => {
    await session(
      1,
      user("Reminder", { isMeta: true }),
      user("Child", { isSidechain: true }),
      user("<command-name>/clear</command-name>"),
      user([{ type: "tool_result", tool_use_id: "t", content: "x" }]),
      user([{ type: "text", text: "Fix\n\u001b[31mthis" }]),
    );
    expect(await findSessions(root)).toMatchObject([{ title: "Fix [31mthis", messageCount: 3 }]);
  });

  it("what is no session is passed over", async () => {
    await session(1, { type: "summary", summary: "x", leafUuid: "y" });
    await session(2, user("Child", { isSidechain: true }));
    await session(3, "not json");
    await writeFile(join(root, "agent-1a2b3c4.jsonl"), JSON.stringify(user("Old child")));
    await writeFile(join(root, "notes.jsonl"), JSON.stringify(user("Notes")));
    await mkdir(join(root, `${idOf(4)}.jsonl`));
    await symlink(join(root, "nowhere"), join(root, `${idOf(5)}.jsonl`));
    expect(await findSessions(root)).toEqual([]);
    expect(await findLatestSession(root)).toBeUndefined();
    expect(await findSessions(join(root, "missing"))).toEqual([]);
  });

  it("of a long file only the ends are read, which is enough for the title and a rough count", async () => {
    const pad = "x".repeat(2000);
    const lines = Array.from({ length: 500 }, (_, n) => user(`${n} ${pad}`));
    await session(1, user("Begin"), ...lines, { type: "custom-title", customTitle: "End" });
    const [found] = await findSessions(root);
    expect(found).toMatchObject({ title: "End", isEstimate: true });
    expect(found?.messageCount).toBeGreaterThan(400);
    expect(found?.messageCount).toBeLessThan(600);
  });

  it("a first prompt longer than the usual reading is found in a file longer than the long reading", async () => {
    await session(1, user(`Long ${"words ".repeat(100_000)}`), user("x".repeat(900_000)), assistant("a"));
    expect(await findSessions(root)).toMatchObject([{ title: expect.stringMatching(/^Long words /) }]);
  });

  it("a first prompt longer than the usual reading is still found", async () => {
    await session(
      1,
      user(`Long ${"x".repeat(300_000)}`),
      user("Next"),
      ...Array(50).fill(user("y".repeat(4000))),
    );
    expect((await findLatestSession(root))?.title).toMatch(/^Long x+…$/);
  });
});

describe("[TRN-3] one session is found by its id or its title", () => {
  beforeEach(async () => {
    await session(1, user("Fix the build"));
    await session(2, user("x"), { type: "custom-title", customTitle: "Release" });
    await session(3, user("Fix the build"));
  });

  it.each([
    [idOf(2), idOf(2)],
    [idOf(2).toUpperCase(), idOf(2)],
    ["release", idOf(2)],
    [" Release ", idOf(2)],
  ])("%j", async (wanted, id) => {
    expect(await findSession(root, wanted)).toMatchObject({ type: "found", session: { id } });
  });

  it("a title that two sessions have is not guessed at", async () => {
    const found = await findSession(root, "fix the build");
    expect(found).toMatchObject({ type: "ambiguous", sessions: [{ id: idOf(1) }, { id: idOf(3) }] });
  });

  it("the beginning of an id and a part of a title are enough where they mean one session", async () => {
    expect(await findSession(root, "RELEA")).toMatchObject({ type: "found", session: { id: idOf(2) } });
    expect(await findSession(root, idOf(2))).toMatchObject({ type: "found", session: { id: idOf(2) } });
    expect(await findSession(root, idOf(2).slice(0, -1))).toMatchObject({ type: "ambiguous" });
    expect(await findSession(root, "the build")).toMatchObject({ type: "ambiguous" });
    expect(await findSession(root, "000")).toMatchObject({ type: "missing" });
  });

  it("what is not there is missing, with the nearest title; a path is only a title", async () => {
    expect(await findSession(root, idOf(9))).toEqual({ type: "missing" });
    expect(await findSession(root, "relaese")).toEqual({ type: "missing", nearest: "Release" });
    expect(await findSession(root, `../${idOf(2)}`)).toMatchObject({ type: "missing" });
  });
});
