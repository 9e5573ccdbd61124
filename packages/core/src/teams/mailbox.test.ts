import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openMailbox } from "./mailbox.ts";
import { openTeamStore } from "./team-store.ts";

function place() {
  const root = mkdtempSync(join(tmpdir(), "retinue-mailbox-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const store = openTeamStore({ teams: join(root, "teams"), tasks: join(root, "tasks") }, "squad");
  const open = (delivered: readonly string[] = []) => {
    const mailbox = openMailbox({ store, name: "ada", delivered: new Set(delivered) });
    onTestFinished(() => mailbox[Symbol.asyncDispose]());
    return mailbox;
  };
  const read = () => store.inbox("ada").mail.map(({ text, read: isRead }) => [text, isRead]);
  return { store, open, read };
}

describe("a reader that dies", () => {
  test("before the journal has its mail gets it again, in order [TEA-5]", async () => {
    const { store, open, read } = place();
    await store.send("ada", { from: "bob", body: "one" });
    const before = open();
    expect(before.take()?.mail).toHaveLength(1);
    await store.send("ada", { from: "bob", body: "two" });
    // Nothing was recorded, so nothing counts as read.
    await before.settled();
    expect(read()).toEqual([
      ["one", false],
      ["two", false],
    ]);
    expect(open().take()?.content).toMatchObject([
      { text: expect.stringContaining("one") },
      { text: expect.stringContaining("two") },
    ]);
  });

  test("between the journal and the mark as read does not get its mail again, and the mark is made up for [TEA-5]", async () => {
    const { store, open, read } = place();
    await store.send("ada", { from: "bob", body: "one" });
    // Delivered according to the transcript; the inbox has no trace of it.
    const keys = store.inbox("ada").mail.map(({ key }) => key);
    expect(read()).toEqual([["one", false]]);
    const after = open(keys);
    expect(after.take()).toBeUndefined();
    await after.settled();
    expect(read()).toEqual([["one", true]]);
  });

  test("mail that comes in that window is delivered alone [TEA-5]", async () => {
    const { store, open } = place();
    await store.send("ada", { from: "bob", body: "one" });
    const keys = store.inbox("ada").mail.map(({ key }) => key);
    await store.send("ada", { from: "bob", body: "two" });
    expect(open(keys).take()?.content).toMatchObject([{ text: expect.stringContaining("two") }]);
  });
});

test("mail is marked as read behind the change that shows its reader at work [TEA-5]", async () => {
  const { store, open, read } = place();
  await store.send("ada", { from: "bob", body: "one" });
  const mailbox = open();
  const change = Promise.withResolvers<void>();
  const keys = mailbox.take()?.mail ?? [];
  mailbox.markAfter(change.promise.then(() => expect(read()).toEqual([["one", false]])));
  mailbox.recorded(keys);
  const settled = mailbox.settled();
  change.resolve();
  await settled;
  expect(read()).toEqual([["one", true]]);
});
