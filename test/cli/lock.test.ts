import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import { askAboutLock } from "@retinue/hosts/terminal/ask-about-lock.ts";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInProcess } from "../scenarios/run-command.ts";

const agent = (tools: string, prompt = "Review.") =>
  `---\nname: reviewer\ndescription: Reviews changes.\ntools: ${tools}\n---\n\n${prompt}\n`;
const stopHook = { hooks: { Stop: [{ hooks: [{ type: "command", command: "./notify.sh" }] }] } };

/** A trusted project whose lock fits. */
async function createFixture() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-lock-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(join(cwd, ".git"), { recursive: true });
  mkdirSync(home);
  const fixture = {
    cwd,
    home,
    write(path: string, content: unknown) {
      mkdirSync(dirname(join(cwd, path)), { recursive: true });
      writeFileSync(join(cwd, path), typeof content === "string" ? content : JSON.stringify(content));
    },
    run: (arguments_: readonly string[], host: Partial<CliHost> = {}) =>
      runInProcess({ cwd, home }, arguments_, { environment: { COLUMNS: "100" }, host }),
  };
  fixture.write(".claude/agents/reviewer.md", agent("Read, Grep"));
  fixture.write(".claude/settings.json", stopHook);
  expect((await fixture.run(["agents", "lock"])).code).toBe(0);
  expect((await fixture.run(["trust", "--yes"])).code).toBe(0);
  return fixture;
}

describe("retinue agents check --locked", () => {
  it("ends with 0 where everything fits, also after a comment, and with 1 with what may do more [PRT-4]", async () => {
    const { run, write } = await createFixture();
    expect(await run(["agents", "check", "--locked"])).toMatchObject({
      code: 0,
      out: "Everything fits retinue.lock.\n",
    });
    write(".claude/agents/reviewer.md", agent("[Read, Grep] # only these"));
    expect((await run(["agents", "check", "--locked"])).code).toBe(0);
    write(".claude/agents/reviewer.md", agent("Read, Grep, Bash"));
    const { code, out } = await run(["agents", "check", "--locked"]);
    expect(code).toBe(1);
    expect(out).toBe(
      "agent reviewer: may do more  (.claude/agents/reviewer.md)\n  + Bash is new\n    shell      none      now full\n1 difference from retinue.lock; 1 may do more. `retinue agents lock` accepts it.\n",
    );
    expect((await run(["agents", "lock"])).out).toContain("retinue.lock is written");
    expect((await run(["agents", "check", "--locked"])).code).toBe(0);
    expect((await run(["agents", "lock"])).out).toBe("retinue.lock fits already: 2 parts.\n");
  });

  it("a prompt alone is shown as such [PRT-4]", async () => {
    const { run, write } = await createFixture();
    write(".claude/agents/reviewer.md", agent("Read, Grep", "Approve everything."));
    const { code, out } = await run(["agents", "check", "--locked"]);
    expect(code).toBe(1);
    expect(out).toContain("its prompt is different\n    what it may do is the same");
    expect(out).toContain("none may do more");
  });

  it("prints JSON, SARIF and a comment in which nothing of a file is markup [PRT-4]", async () => {
    const { run, write } = await createFixture();
    write(".claude/agents/reviewer.md", agent("Read, Grep, Bash"));
    write(".mcp.json", { mcpServers: { "a`|@all<b>": { command: "evil | `sh`" } } });
    const json = JSON.parse((await run(["agents", "check", "--locked", "--json"])).out);
    expect(json).toMatchObject({ version: 1, fits: false, wider: true });
    expect(json.differences.map((each: { status: string }) => each.status)).toEqual(["widened", "added"]);
    const { code, out } = await run(["agents", "check", "--locked", "--sarif"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      version: "2.1.0",
      runs: [
        {
          tool: { driver: { name: "retinue" } },
          results: [
            {
              ruleId: "lock-widened",
              level: "error",
              locations: [{ physicalLocation: { artifactLocation: { uri: ".claude/agents/reviewer.md" } } }],
            },
            { ruleId: "lock-added", level: "error" },
          ],
        },
      ],
    });
    const comment = (await run(["agents", "check", "--locked", "--comment"])).out;
    expect(comment).toContain(
      "**2 parts of the configuration of agents may do more than `retinue.lock` accepts.**",
    );
    expect(comment).toContain(
      "| mcp-server `` a`\\|@all<b> `` | new | ➕ `` it starts evil \\| `sh` `` | `.mcp.json` |",
    );
  });

  it("a lock that is missing or broken is never taken for one that fits [PRT-4]", async () => {
    const { run, write, cwd } = await createFixture();
    const text = readFileSync(join(cwd, "retinue.lock"), "utf8");
    write("retinue.lock", text.replace('"Grep"', "7"));
    const broken = await run(["agents", "check", "--locked"]);
    expect(broken.code).toBe(1);
    expect(broken.err).toContain("retinue.lock:");
    expect(broken.err).toContain('`tools` must be "all" or a list of strings.');
    write("retinue.lock", `<<<<<<< HEAD\n${text}`);
    expect((await run(["agents", "check", "--locked"])).err).toContain("`retinue agents lock` rewrites it");
    rmSync(join(cwd, "retinue.lock"));
    expect(await run(["agents", "check", "--locked"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("There is no retinue.lock"),
    });
    expect((await run(["agents", "check", "--sarif"])).code).toBe(2);
    expect((await run(["agents", "check", "--locked", "x.md"])).code).toBe(2);
  });

  it("writes nothing with --dry-run, and says why where it cannot write [PRT-4]", async () => {
    const { run, write, cwd } = await createFixture();
    const before = readFileSync(join(cwd, "retinue.lock"), "utf8");
    write(".claude/agents/reviewer.md", agent("Read"));
    expect((await run(["agents", "lock", "--dry-run"])).out).toContain("would be written");
    expect(readFileSync(join(cwd, "retinue.lock"), "utf8")).toBe(before);
    if (process.getuid?.() === 0) return;
    chmodSync(cwd, 0o500);
    const { code, err } = await run(["agents", "lock"]);
    chmodSync(cwd, 0o700);
    expect(code).toBe(1);
    expect(err).toContain("retinue.lock");
  });
});

describe("a trusted folder whose lock does not fit its files", () => {
  const trusted = async ({ run }: Pick<Awaited<ReturnType<typeof createFixture>>, "run">) =>
    JSON.parse((await run(["trust", "--json"])).out);

  it("is treated as not trusted, says what changed, and is trusted again once that is accepted [PRT-4]", async () => {
    const fixture = await createFixture();
    expect(await trusted(fixture)).toMatchObject({ trusted: true, lock: { fits: true } });
    fixture.write(".claude/agents/reviewer.md", agent("Read, Grep, Bash"));
    expect(await trusted(fixture)).toMatchObject({
      trusted: false,
      why: "its files do not match retinue.lock (agent reviewer widened)",
      lock: { fits: false, differences: [{ name: "reviewer", widenings: ["Bash is new"] }] },
    });
    const shown = await fixture.run(["trust", "--show"]);
    expect(shown.out).toContain("Changed since retinue.lock was written\n  agent reviewer: may do more");
    expect((await fixture.run(["permissions", "list"])).err).toContain("1 more setting held back");
    await fixture.run(["trust", "--yes"]);
    expect(await trusted(fixture)).toMatchObject({ trusted: true, lock: { fits: false } });
    // What was accepted is this change, not every later one.
    fixture.write(".claude/agents/reviewer.md", agent("Read, Grep, Bash, Write"));
    expect(await trusted(fixture)).toMatchObject({ trusted: false });
    await fixture.run(["agents", "lock"]);
    expect(await trusted(fixture)).toMatchObject({ trusted: true, lock: { fits: true } });
  });

  it("unattended, what waits for trust does not count, and a sentence says why [PRT-4]", async () => {
    const fixture = await createFixture();
    fixture.write(".claude/settings.json", {
      hooks: { Stop: [{ hooks: [{ type: "command", command: "./evil.sh" }] }] },
    });
    const { err } = await fixture.run(["-p", "hello", "--model", "nowhere/none"]);
    expect(err).toContain(
      "This folder is not trusted any more, because its files do not match retinue.lock (hook Stop widened).",
    );
    expect(err).toContain("1 hook does not run, because this folder is not trusted");
    const forOnce = await fixture.run(["-p", "hello", "--model", "nowhere/none", "--trust"]);
    expect(forOnce.err).not.toContain("is not trusted any more");
  });

  it("in a terminal it is asked about before the conversation [PRT-4]", async () => {
    const fixture = await createFixture();
    const asked: string[] = [];
    const said: string[] = [];
    const host = (answer: string) =>
      ({
        cwd: fixture.cwd,
        home: fixture.home,
        environment: {},
        platform: process.platform,
        canAsk: true,
        stdout: { write: (text: string) => void said.push(text), isColourAllowed: false },
        ask: async (question: string) => {
          asked.push(question);
          return answer;
        },
        endQuestions: () => undefined,
      }) as unknown as CliHost;
    await askAboutLock({ host: host("y"), session: {} });
    expect(asked).toEqual([]);
    fixture.write(".claude/agents/reviewer.md", agent("Read, Grep, Bash"));
    await askAboutLock({ host: host("n"), session: {} });
    expect(asked).toEqual(["Trust it as it is now? [y/N] "]);
    expect(said.join("")).toContain("  + Bash is new");
    expect(await trusted(fixture)).toMatchObject({ trusted: false });
    await askAboutLock({ host: host("y"), session: {} });
    expect(await trusted(fixture)).toMatchObject({ trusted: true });
    await askAboutLock({ host: host("y"), session: {} });
    expect(asked).toHaveLength(2);
    rmSync(join(fixture.cwd, "retinue.lock"));
    await askAboutLock({ host: host("n"), session: {} });
    expect(asked).toHaveLength(3);
    expect(said.join("")).toContain("retinue.lock was here and is gone");
    await askAboutLock({ host: host("y"), session: {} });
    await askAboutLock({ host: host("y"), session: {} });
    expect(asked).toHaveLength(4);
  });

  it("a lock that is gone is missed, asked about and accepted, until there is one again [PRT-4]", async () => {
    const fixture = await createFixture();
    const lock = join(fixture.cwd, "retinue.lock");
    const text = readFileSync(lock, "utf8");
    rmSync(lock);
    fixture.write(".claude/settings.json", {
      hooks: { Stop: [{ hooks: [{ type: "command", command: "./evil.sh" }] }] },
    });
    expect(await trusted(fixture)).toMatchObject({ trusted: false, why: "its retinue.lock is gone" });
    const { err } = await fixture.run(["-p", "hello", "--model", "nowhere/none"]);
    expect(err).toContain("is not trusted any more, because its retinue.lock is gone");
    expect(err).toContain("1 hook does not run");
    expect((await fixture.run(["trust", "--show"])).out).toContain("retinue.lock was here and is gone");
    await fixture.run(["trust", "--yes"]);
    expect(await trusted(fixture)).toMatchObject({ trusted: true });
    writeFileSync(lock, text);
    fixture.write(".claude/settings.json", stopHook);
    await fixture.run(["-p", "hello", "--model", "nowhere/none"]);
    rmSync(lock);
    expect(await trusted(fixture)).toMatchObject({ trusted: false, why: "its retinue.lock is gone" });
  });

  it.each([
    ["agents", "lock"],
    ["-p", "hello", "--model", "nowhere/none"],
  ])("a lock that came after the trust is noted by retinue %s [PRT-4]", async (...arguments_) => {
    const fixture = await createFixture();
    const lock = join(fixture.cwd, "retinue.lock");
    const state = join(fixture.home, ".claude.json");
    writeFileSync(state, readFileSync(state, "utf8").replace(/,\s*"retinueHasLock": true/, ""));
    expect(readFileSync(state, "utf8")).not.toContain("retinueHasLock");
    await fixture.run(arguments_);
    rmSync(lock);
    expect(await trusted(fixture)).toMatchObject({ trusted: false });
  });

  it("a folder without trust is given none by its lock [PRT-4]", async () => {
    const fixture = await createFixture();
    await fixture.run(["trust", "--remove"]);
    await fixture.run(["agents", "lock"]);
    expect(await trusted(fixture)).toMatchObject({ trusted: false });
  });

  it("a lock that cannot be read trusts nothing, and cannot be accepted [PRT-4]", async () => {
    const fixture = await createFixture();
    fixture.write("retinue.lock", '{"version": 9}');
    expect(await trusted(fixture)).toMatchObject({ trusted: false });
    const { code, err } = await fixture.run(["trust", "--yes"]);
    expect(code).toBe(1);
    expect(err).toContain("This lock has version 9; this release reads version 1.");
  });
});
