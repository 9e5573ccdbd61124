import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAppendLog } from "@retinue/base/storage/append-log.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { forkSession } from "./fork-session.ts";
import { loadSession } from "./session-choices.ts";

const from = "00000000-0000-4000-8000-00000000000a";
const to = "00000000-0000-4000-8000-00000000000b";

let root: string;
let count: number;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "fork-"));
  count = 0;
});
afterEach(() => rm(root, { recursive: true, force: true }));

const ids = {
  uuid: () => {
    count += 1;
    return `11111111-0000-4000-8000-${String(count).padStart(12, "0")}`;
  },
};
const put = (...lines: object[]) =>
  writeFile(join(root, `${from}.jsonl`), `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"torn`);
const conversation = [
  { type: "custom-title", customTitle: "Work", sessionId: from },
  { parentUuid: null, type: "user", message: { role: "user", content: "Hi" }, uuid: "1", sessionId: from },
  {
    parentUuid: "1",
    type: "assistant",
    message: { id: "m", content: [{ type: "tool_use", id: "t", name: "Read", input: {} }] },
    uuid: "2",
    sessionId: from,
  },
  {
    parentUuid: "2",
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "ok" }] },
    uuid: "3",
    sourceToolAssistantUUID: "2",
    sessionId: from,
  },
  {
    parentUuid: null,
    type: "user",
    message: { content: "Child" },
    uuid: "9",
    isSidechain: true,
    sessionId: from,
  },
];

describe("[TRN-3] a fork continues in a copy", () => {
  it("new ids with the same chain, each line naming its source, and a title at the end", async () => {
    await put(...conversation);
    const forked = await forkSession({ transcripts: root, from, to, ids });
    expect(forked).toMatchObject({ sessionId: to, file: join(root, `${to}.jsonl`) });
    const { values, torn } = await readLines(forked.file);
    const [one, two, three] = [1, 2, 3].map((n) => `11111111-0000-4000-8000-00000000000${n}`);
    expect(values).toMatchObject([
      { uuid: one, parentUuid: null, sessionId: to, forkedFrom: { sessionId: from, messageUuid: "1" } },
      { uuid: two, parentUuid: one, sessionId: to, forkedFrom: { sessionId: from, messageUuid: "2" } },
      { uuid: three, parentUuid: two, sourceToolAssistantUUID: two, forkedFrom: { messageUuid: "3" } },
      { type: "custom-title", customTitle: "Work (fork)", sessionId: to },
    ]);
    expect(torn).toBe(false);
    expect(Object.keys(values[0] ?? {}).slice(0, 3)).toEqual(["parentUuid", "type", "message"]);
  });

  it("the copy holds the same conversation, and the original is as it was", async () => {
    await put(...conversation);
    const before = await readFile(join(root, `${from}.jsonl`), "utf8");
    const { file } = await forkSession({ transcripts: root, from, ids, title: "Mine" });
    expect((await loadSession(file)).messages).toEqual(
      (await loadSession(join(root, `${from}.jsonl`))).messages,
    );
    expect(await readFile(join(root, `${from}.jsonl`), "utf8")).toBe(before);
    expect((await stat(file)).mode & 0o077).toBe(0);
  });

  it("messages that a compaction preserved are found under their new ids", async () => {
    await put(
      ...conversation.slice(1, 2),
      {
        type: "system",
        subtype: "compact_boundary",
        uuid: "5",
        parentUuid: null,
        logicalParentUuid: "1",
        compactMetadata: { trigger: "auto", preservedMessages: { anchorUuid: "6", uuids: ["1"] } },
      },
      { type: "user", uuid: "6", parentUuid: "5", message: { content: "Summary" }, isCompactSummary: true },
    );
    const { file } = await forkSession({ transcripts: root, from, to, ids });
    const [one, , three] = [1, 2, 3].map((n) => `11111111-0000-4000-8000-00000000000${n}`);
    expect((await readLines(file)).values[1]).toMatchObject({
      logicalParentUuid: one,
      compactMetadata: { trigger: "auto", preservedMessages: { anchorUuid: three, uuids: [one] } },
    });
  });

  it("a session in use can be forked; the files of its children are not copied", async () => {
    await put(...conversation);
    await mkdir(join(root, from, "subagents"), { recursive: true });
    using _log = openAppendLog(join(root, `${from}.jsonl`));
    await forkSession({ transcripts: root, from, to, ids });
    expect((await readdir(root)).sort()).toEqual([
      from,
      `${from}.jsonl`,
      `${from}.jsonl.lock`,
      `${to}.jsonl`,
    ]);
  });

  it("nothing is written over, and nothing is left behind when it fails", async () => {
    await put(...conversation);
    await writeFile(join(root, `${to}.jsonl`), "mine");
    await expect(forkSession({ transcripts: root, from, to, ids })).rejects.toMatchObject({
      code: "session-exists",
    });
    expect(await readFile(join(root, `${to}.jsonl`), "utf8")).toBe("mine");
    expect(await readdir(root)).toHaveLength(2);
  });

  it("[TRN-7] what is not an id is refused; a session that is not there or holds nothing is an error", async () => {
    const fork = (source: string, target?: string) =>
      forkSession({ transcripts: root, from: source, ids, to: target });
    await expect(fork("../x")).rejects.toMatchObject({ code: "bad-session-id" });
    await expect(fork(from, "../x")).rejects.toMatchObject({ code: "bad-session-id" });
    await expect(fork(from)).rejects.toMatchObject({ code: "file-missing" });
    await put({ type: "custom-title", customTitle: "x" });
    await expect(fork(from)).rejects.toMatchObject({ code: "empty-session" });
  });
});
