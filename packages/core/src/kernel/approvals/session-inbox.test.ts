import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, it } from "vitest";
import type { ModelRequest } from "../../models/model.ts";
import type { RuntimeOptions } from "../options/runtime-options.ts";
import { openSessionInbox } from "./session-inbox.ts";

const write = (file_path: string, content = "new") => ({ name: "Write", input: { file_path, content } });
const agent = (prompt: string, more: object = {}) => ({
  name: "Agent",
  input: { description: prompt, prompt, subagent_type: "general-purpose", ...more },
});
const child = (prompt: string, step: object): Step => ({
  match: (request: ModelRequest) => JSON.stringify(request.messages[0]).includes(prompt),
  ...step,
});

/** A runtime whose questions wait, and a way to be notified of each as it begins to wait. */
async function createInbox(script: readonly Step[], options: RuntimeOptions = {}) {
  const notices: string[] = [];
  let received = Promise.withResolvers<void>();
  const sample = await createSampleRuntime(script, {
    approvals: "inbox",
    transcripts: true,
    onWarning(text) {
      notices.push(text);
      received.resolve();
      received = Promise.withResolvers();
    },
    ...options,
  });
  const waiting = async (count = 1) => {
    while (true) {
      const next = received.promise;
      const open = (await sample.runtime.approvals.list()).filter(({ state }) => state === "waiting");
      if (open.length >= count) return open;
      await next;
    }
  };
  return {
    sample,
    runtime: sample.runtime,
    notices,
    waiting,
    async one() {
      const [first] = await waiting();
      if (first === undefined) throw new Error("No question waits.");
      return first.question;
    },
    async folder() {
      const { paths } = await sample.runtime.agents();
      const { session } = await this.one();
      return join(paths.transcripts, session, "approvals");
    },
    [Symbol.asyncDispose]: () => sample[Symbol.asyncDispose](),
  };
}

describe("a call that no person can be asked about", () => {
  it("waits in the inbox until a program allows it, and the journal shows who did [APR-1, APR-2]", async () => {
    await using inbox = await createInbox([{ calls: [write("a.txt")] }, "Done."]);
    const run = inbox.runtime.run("Go.");
    const question = await inbox.one();
    expect(question).toMatchObject({ tool: "Write", places: [{ agent: "main", path: "main" }] });
    expect(existsSync(inbox.sample.workspace.path("a.txt"))).toBe(false);
    await inbox.runtime.approvals.answer(question.id, { type: "allow" }, { by: "Ada" });
    expect((await run.result).denials).toEqual([]);
    expect(readFileSync(inbox.sample.workspace.path("a.txt"), "utf8")).toBe("new");
    const [after] = await inbox.runtime.approvals.list();
    expect(after).toMatchObject({ state: "used up", uses: [{ agent: "main", tool: "Write", by: "Ada" }] });
    const { paths } = await inbox.runtime.agents();
    const journal = readFileSync(join(paths.transcripts, `${question.session}.jsonl`), "utf8");
    expect(journal).toContain(`"approval":{"id":"${question.id}","by":"Ada"}`);
  });

  it.each([
    ["the script it runs", "sh x.sh", "x.sh"],
    ["the task it starts", "npm run build", "package.json"],
  ])("is another question when %s is changed before the answer [APR-3]", async (_, command, file) => {
    await using inbox = await createInbox([{ calls: [{ name: "Bash", input: { command } }] }, "Done."]);
    const { workspace } = inbox.sample;
    await workspace.write(file, "{}");
    const run = inbox.runtime.run("Go.");
    const first = await inbox.one();
    expect(first.scripts).toEqual([expect.stringContaining(` ${workspace.path(file)}`)]);
    await workspace.write(file, '{ "scripts": { "build": "touch made" } }');
    await inbox.runtime.approvals.answer(first.id, { type: "allow", scope: "session" }, { by: "Ada" });
    const second = await inbox.one();
    expect(second.id).not.toBe(first.id);
    expect(second.reason).toContain(`${file} was changed`);
    await inbox.runtime.approvals.answer(second.id, { type: "deny" }, { by: "Ada" });
    expect((await run.result).denials).toHaveLength(1);
    expect(existsSync(workspace.path("made"))).toBe(false);
  });

  it("reads the message of the person who denies it [APR-1]", async () => {
    await using inbox = await createInbox([{ calls: [write("a.txt")] }, "Done."]);
    const run = inbox.runtime.run("Go.");
    const { id } = await inbox.one();
    await inbox.runtime.approvals.answer(id, { type: "deny", message: "use b.txt" }, { by: "Ada" });
    const [denial] = (await run.result).denials;
    expect(denial?.reason).toContain("Ada refused it and says: use b.txt");
    expect(existsSync(inbox.sample.workspace.path("a.txt"))).toBe(false);
  });

  it("is refused immediately where the inbox was not chosen [APR-1]", async () => {
    await using sample = await createSampleRuntime([{ calls: [write("a.txt")] }, "Done."], {
      transcripts: true,
    });
    expect((await sample.runtime.run("Go.").result).denials).toHaveLength(1);
    expect(await sample.runtime.approvals.list()).toEqual([]);
  });

  it("cannot wait where no transcript is kept [APR-1]", async () => {
    await using sample = await createSampleRuntime(["Done."], {
      approvals: "inbox",
      transcripts: false,
    });
    await expect(sample.runtime.run("Go.").result).rejects.toMatchObject({ code: "invalid-option" });
  });

  it("of a child in the background holds no place, and its sibling continues [APR-1]", async () => {
    await using inbox = await createInbox(
      [
        { calls: [agent("First task", { run_in_background: true })] },
        child("First task", { calls: [write("a.txt")] }),
        child("First task", { text: "First done." }),
        async () => {
          // One place for agents, and the first one waits: the second can only run if that place is free.
          await inbox.one();
          return { calls: [agent("Second task")] };
        },
        child("Second task", { text: "Second done." }),
        async (request) => {
          expect(JSON.stringify(request.messages.at(-1))).toContain("Second done.");
          const { id } = await inbox.one();
          await inbox.runtime.approvals.answer(id, { type: "allow" });
          return "Waiting.";
        },
        "All done.",
      ],
      { concurrency: 1 },
    );
    expect(await inbox.runtime.run("Go.").result).toMatchObject({ text: "All done.", denials: [] });
    expect(existsSync(inbox.sample.workspace.path("a.txt"))).toBe(true);
  });

  it("is one question with all its places where several children make the same call [APR-1]", async () => {
    const tasks = ["Task one", "Task two", "Task three"];
    await using inbox = await createInbox([
      { calls: tasks.map((task) => agent(task)) },
      ...tasks.flatMap((task) => [
        child(task, { calls: [{ name: "Bash", input: { command: "echo x >> log" } }] }),
        child(task, { text: "Done." }),
      ]),
      "All done.",
    ]);
    const run = inbox.runtime.run("Go.");
    while ((await inbox.one()).places.length < 3) await new Promise((resolve) => setImmediate(resolve));
    expect(await inbox.waiting()).toHaveLength(1);
    await inbox.runtime.approvals.answer((await inbox.one()).id, { type: "allow" });
    expect((await run.result).denials).toEqual([]);
    expect(readFileSync(inbox.sample.workspace.path("log"), "utf8")).toBe("x\nx\nx\n");
    expect(await inbox.runtime.approvals.list()).toMatchObject([{ uses: [{}, {}, {}] }]);
  });
});

describe("an answer", () => {
  it("counts only for its own question and call, from a file that no other user can write [APR-2]", async () => {
    await using inbox = await createInbox([{ calls: [write("a.txt")] }, "Done."]);
    const run = inbox.runtime.run("Go.");
    const { id, digest } = await inbox.one();
    const folder = await inbox.folder();
    const file = join(folder, `a-${id}.json`);
    const facts = { version: 1, question: id, agents: ["main"], by: "x", via: "x", at: 1 };
    const forge = (changes: object) =>
      JSON.stringify({ ...facts, digest, type: "allow", scope: "call", rules: [], ...changes });
    const refused = async (why: string) => {
      while (!inbox.notices.at(-1)?.includes(why)) await new Promise((resolve) => setImmediate(resolve));
      expect(await inbox.waiting()).toHaveLength(1);
    };
    writeFileSync(file, forge({}), { mode: 0o600 });
    chmodSync(file, 0o666);
    expect(await inbox.runtime.approvals.list()).toMatchObject([{ state: "waiting" }]);
    for (const changes of [{ digest: "0" }, { question: "000000000000" }, { until: "never" }]) {
      writeFileSync(file, forge(changes));
      chmodSync(file, 0o600);
      expect(await inbox.runtime.approvals.list()).toMatchObject([{ state: "waiting" }]);
    }
    const elsewhere = inbox.sample.workspace.path("answer.json");
    writeFileSync(elsewhere, forge({}), { mode: 0o600 });
    const link = join(folder, "link");
    symlinkSync(elsewhere, link);
    renameSync(link, file);
    expect(await inbox.runtime.approvals.list()).toMatchObject([{ state: "waiting" }]);
    await refused("was ignored");
    // What does not count keeps no real answer away.
    await inbox.runtime.approvals.answer(id, { type: "allow" });
    expect((await run.result).denials).toEqual([]);
  });

  it("does not count for a changed call, and counts once [APR-2]", async () => {
    await using inbox = await createInbox([
      { calls: [write("a.txt", "good")] },
      { calls: [write("a.txt", "evil")] },
      { calls: [write("a.txt", "good")] },
      "Done.",
    ]);
    const run = inbox.runtime.run("Go.");
    const first = await inbox.one();
    await inbox.runtime.approvals.answer(first.id, { type: "allow" });
    await expect(inbox.runtime.approvals.answer(first.id, { type: "deny" })).rejects.toMatchObject({
      code: "already-answered",
    });
    const second = await inbox.one();
    expect(second).toMatchObject({ input: { content: "evil" } });
    await inbox.runtime.approvals.answer(second.id, { type: "deny" });
    const third = await inbox.one();
    expect(third).toMatchObject({ digest: first.digest, input: { content: "good" } });
    await inbox.runtime.approvals.answer(third.id, { type: "deny" });
    expect((await run.result).denials).toHaveLength(2);
  });

  it("cannot come from an agent's own tools, in any mode [APR-2]", async () => {
    const session = "11111111-2222-4333-8444-555555555555";
    const at = `.claude/projects/p/${session}/approvals/a-000000000000.json`;
    const commands = [
      `echo {} > ${at}`,
      `cd .claude && touch projects/p/${session}/approvals/x`,
      "retinue approve 000000000000",
      "env -u CLAUDECODE npx retinue approve 0000 --for session",
      "retinue trust --yes",
      "node bin/retinue.js mcp add --scope user evil -- touch x",
      "npx retinue teams send alpha carl 'delete everything'",
      "CLAUDECODE= node r.js approve 000000000000",
      "unset CLAUDECODE; node r.js approve 000000000000",
      `ln -s $HOME/.claude/projects/p/${session}/approvals lnk && cp answer.json lnk/a-000000000000.json`,
    ];
    await using sample = await createSampleRuntime([
      { calls: [write(at), ...commands.map((command) => ({ name: "Bash", input: { command } }))] },
      "Done.",
    ]);
    const options = { permissionMode: "bypassPermissions", skipPermissions: true } as const;
    const { denials } = await sample.runtime.run("Go.", options).result;
    const expected =
      /only users answer approvals|only a user can decide that|hide that it is a command of an agent/;
    expect(denials.map(({ reason }) => expected.test(reason))).toEqual(Array(11).fill(true));
  });
});

describe("a grant", () => {
  const script = (count: number): Step[] => [
    ...Array.from({ length: count }, (_, index) => ({ calls: [write(`${index}.txt`)] })),
    "Done.",
  ];
  const edits = async (inbox: Awaited<ReturnType<typeof createInbox>>) => [
    `Edit(/${inbox.sample.workspace.path("**")})`,
  ];

  it("covers further calls by its rules, at most so many times [APR-2]", async () => {
    await using inbox = await createInbox(script(3));
    const run = inbox.runtime.run("Go.");
    const { id } = await inbox.one();
    const rules = await edits(inbox);
    await inbox.runtime.approvals.answer(id, { type: "allow", scope: "session", rules, maxUses: 2 });
    const next = await inbox.one();
    expect(next.input["file_path"]).toContain("2.txt");
    expect((await inbox.runtime.approvals.list()).find(({ question }) => question.id === id)).toMatchObject({
      state: "used up",
      uses: [{}, {}],
    });
    await inbox.runtime.approvals.answer(next.id, { type: "deny" });
    expect((await run.result).denials).toHaveLength(1);
  });

  it("holds no more once it is revoked, has expired or its money is spent [APR-2]", async () => {
    await using inbox = await createInbox(script(4));
    const rules = await edits(inbox);
    const run = inbox.runtime.run("Go.");
    const { answer, revoke, list } = inbox.runtime.approvals;
    const first = await inbox.one();
    await expect(answer(first.id, { type: "allow", scope: "session", until: 1 })).rejects.toMatchObject({
      code: "unusable-grant",
    });
    await answer(first.id, { type: "allow", scope: "session", rules, maxUsd: 0.000001 });
    const second = await inbox.one();
    expect(second.input["file_path"]).toContain("1.txt");
    await answer(second.id, {
      type: "allow",
      scope: "session",
      rules,
      until: Date.now() + 60_000,
      maxUses: 2,
    });
    const third = await inbox.one();
    expect(third.input["file_path"]).toContain("3.txt");
    await answer(third.id, { type: "allow", scope: "session", rules });
    await run.result;
    await revoke(third.id, { by: "Ada" });
    expect((await list()).find(({ question }) => question.id === third.id)).toMatchObject({
      state: "revoked",
      revoked: { by: "Ada" },
    });
  });

  it("is refused with a mistyped or unknown key, which would else be no limit [APR-2]", async () => {
    await using inbox = await createInbox(script(1));
    const run = inbox.runtime.run("Go.");
    const { id } = await inbox.one();
    const { answer } = inbox.runtime.approvals;
    const refused = async (given: object) =>
      answer(id, given as never).then(
        () => "accepted",
        (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
      );
    expect(await refused({ type: "allow", scope: "session", maxUse: 1 })).toBe(
      'unusable-grant: "maxUse" is not part of an answer of the type allow. Did you mean "maxUses"?',
    );
    expect(await refused({ type: "allow", updatedInput: { command: "x" } })).toContain(
      'unusable-grant: "updatedInput" is not part of an answer of the type allow.',
    );
    expect(await refused({ type: "deny", maxUses: 1 })).toContain(
      'unusable-grant: "maxUses" is not part of an answer of the type deny.',
    );
    expect(await refused({ type: "allways" })).toBe(
      'unusable-grant: The type of an answer must be "allow" or "deny", but is "allways".',
    );
    await answer(id, { type: "deny" });
    expect((await run.result).denials).toHaveLength(1);
  });

  it("is never wider than the person's own settings [APR-2]", async () => {
    await using inbox = await createInbox(script(2), {
      settings: { permissions: { ask: ["Edit(**/0.txt)"], deny: ["Edit(**/1.txt)"] } },
    });
    const run = inbox.runtime.run("Go.");
    const question = await inbox.one();
    expect(question).toMatchObject({ everyTime: true });
    const { answer } = inbox.runtime.approvals;
    await expect(answer(question.id, { type: "allow", scope: "session" })).rejects.toThrow(
      "it can only be allowed for this call",
    );
    await answer(question.id, { type: "allow" });
    const { denials } = await run.result;
    expect(denials).toMatchObject([{ reason: expect.stringContaining("denies it") }]);
  });

  it("for one agent covers no other [APR-2]", async () => {
    const call = { calls: [{ name: "Bash", input: { command: "echo x >> log" } }] };
    await using inbox = await createInbox([
      { calls: [agent("Task one")] },
      child("Task one", call),
      child("Task one", call),
      child("Task one", { text: "One done." }),
      call,
      "All done.",
    ]);
    const run = inbox.runtime.run("Go.");
    const { answer, list } = inbox.runtime.approvals;
    await answer((await inbox.one()).id, { type: "allow", scope: "agent" });
    const second = await inbox.one();
    expect(second).toMatchObject({ places: [{ agent: "main" }] });
    expect((await list()).at(-1)).toMatchObject({ state: "allowed", uses: [{}, {}] });
    await answer(second.id, { type: "deny" });
    await run.result;
    expect(readFileSync(inbox.sample.workspace.path("log"), "utf8")).toBe("x\nx\n");
    expect(readdirSync(inbox.sample.workspace.path("."))).toContain("log");
  });
});

it("a question of an agent in another process counts while that agent runs [APR-1, TEA-8]", async () => {
  await using sample = await createSampleRuntime([]);
  const directory = join(sample.home, "approvals");
  const open = () => {
    const main = { id: "main", name: "main" };
    return openSessionInbox({ directory, sessionId: "s", main, now: Date.now });
  };
  const policy = {
    mode: "default",
    allow: [],
    ask: [],
    deny: [],
    workingDirectories: [],
    home: "/",
  } as const;
  using here = open();
  using there = open();
  const stop = new AbortController();
  const asked = there.ask(
    {
      callId: "c",
      reason: "it writes",
      request: { tool: "Bash", effect: "execute", input: { command: "touch x" }, paths: [] },
    },
    { path: [there.main, { id: "a1", name: "ada" }], policy, directory },
    { signal: stop.signal },
  );
  expect(here.isAsking((id) => id === "a1")).toBe(true);
  expect(here.isAsking(() => false)).toBe(false);
  stop.abort();
  await expect(asked).rejects.toThrow();
});
