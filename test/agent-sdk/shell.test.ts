import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { textOf } from "@retinue/core/conversation/message.ts";
import { addOptions } from "@retinue/hosts/shared/add-options.ts";
import { addAgentSdkOptions } from "@retinue/hosts/shared/agent-sdk-options.ts";
import { commandFlags, runFlags } from "@retinue/hosts/shared/flags.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { Command } from "commander";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { projectRoot, readProjectFile } from "../project-files.ts";
import { createPlace } from "../scenarios/run-command.ts";
import { runInside } from "./run-inside.ts";
import { bash, read } from "./sdk-stage.ts";

const run = promisify(execFile);

async function createShell(steps: readonly Step[] = ["Done."]) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    run: (...words: readonly string[]) => runInside(place, words, { environment }),
    prompt: (at = 0) => provider.requests[at]?.request.messages.map(textOf).join("\n"),
    system: (at = 0) => provider.requests[at]?.request.system.join("\n") ?? "",
  };
}

// Loads the command once, so that no test pays for it.
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "retinue-warm-"));
  const flags = ["--bare", "--model", "offline", "--no-session-persistence"];
  await runInside({ cwd: folder, home: folder }, ["-p", "hi", ...flags]);
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

describe("lists behind one flag [DRP-3]", () => {
  test("--allowedTools takes several words, and the prompt behind them stays the prompt", async () => {
    const shell = await createShell([bash("touch made"), "Done."]);
    const { code, out } = await shell.run("-p", "--allowedTools", "Read", "Bash(touch *)", "make a file");
    expect([code, out, shell.prompt()]).toEqual([0, "Done.\n", expect.stringContaining("make a file")]);
    expect(existsSync(join(shell.cwd, "made"))).toBe(true);
  });

  test("--disallowedTools takes several words", async () => {
    const shell = await createShell();
    await shell.run("-p", "hi there", "--disallowedTools", "Bash", "Write");
    const names = shell.provider.requests[0]?.request.tools.map(({ name }) => name) ?? [];
    expect(names).toContain("Read");
    expect(names.filter((name) => name === "Bash" || name === "Write")).toEqual([]);
  });

  test("--tools takes several words", async () => {
    const shell = await createShell();
    await shell.run("-p", "--tools", "Read", "Glob", "look around");
    const names = shell.provider.requests[0]?.request.tools.map(({ name }) => name) ?? [];
    expect([...names].sort()).toEqual(["Glob", "Read"]);
    expect(shell.prompt()).toContain("look around");
  });

  test("--add-dir takes several folders, and a word that is none begins the prompt", async () => {
    const shell = await createShell([read("../a/x.txt"), read("../b/x.txt"), "Done."]);
    for (const folder of ["../a", "../b"]) mkdirSync(join(shell.cwd, folder));
    shell.write("../a/x.txt", "from a\n");
    shell.write("../b/x.txt", "from b\n");
    const { code } = await shell.run("-p", "--add-dir", "../a", "../b", "read both");
    expect(code).toBe(0);
    const last = JSON.stringify(shell.provider.requests[2]?.request.messages);
    expect([last.includes("from a"), last.includes("from b")]).toEqual([true, true]);
  });
});

describe("flags [DRP-3]", () => {
  test.each([
    ["--tmux"],
    ["--teleport"],
    ["--remote", "x"],
    ["--from-pr", "1"],
    ["--file", "a:b"],
    ["--init-only"],
    ["--plugin-url", "https://x.invalid/p.zip"],
    ["--project-config-root", "x"],
    ["--autocompact", "auto"],
    ["--advisor", "opus"],
    ["--channels", "x"],
  ])("%s is refused by name, with a reason and exit code 1", async (...words) => {
    const { code, err, out } = await runInside(createPlace(), ["-p", "hi", ...words]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(new RegExp(`^retinue: ${words[0]}[a-z]* is not supported: \\S`));
  });

  test.each([
    ["--ide"],
    ["--chrome"],
    ["--no-chrome"],
    ["--mcp-debug"],
    ["--teammate-mode", "auto"],
    ["--ax-screen-reader"],
    ["--thinking-display", "summarized"],
    ["--exclude-dynamic-system-prompt-sections"],
  ])("%s is named in a note, and the run works", async (...words) => {
    const { code, err } = await runInside(createPlace(), ["-p", "hi", "--model", "offline", ...words]);
    expect([code, err]).toEqual([0, `retinue: ${words[0]?.split("=")[0]} has no effect here.\n`]);
  });

  test.each([
    [["-p", "hi", "--no-such-flag"], "no-such-flag"],
    [["-p", "hi", "--permission-mode", "yolo"], "yolo"],
    [["-p", "hi", "--output-format", "xml"], "xml"],
    [["-p", "hi", "--max-turns", "0"], "--max-turns"],
    [["-p", "hi", "--thinking", "loud"], "loud"],
    [["-p", "hi", "--permission-prompts", "all"], "all"],
  ])("a run with a wrong option ends with 1: %j", async (words, named) => {
    const { code, err, out } = await runInside(createPlace(), words);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(named);
    expect(err).not.toMatch(/^\s+at /m);
  });

  test("--verbose prints no stack trace, --debug does", async () => {
    const place = createPlace();
    const words = ["-p", "hi", "--no-such-flag"];
    expect((await runInside(place, [...words, "--verbose"])).err).not.toMatch(/^\s+at /m);
    expect((await runInside(place, [...words, "--debug"])).err).toMatch(/^\s+at /m);
    expect((await runInside(place, [...words, "--debug=api"])).err).toMatch(/^\s+at /m);
  });

  test("--debug takes no sentence for its filter", async () => {
    const shell = await createShell();
    expect((await shell.run("-p", "--debug", "look around")).code).toBe(0);
    expect(shell.prompt()).toContain("look around");
  });

  test("--name gives the session a title by which it is resumed", async () => {
    const shell = await createShell(["One.", "Two."]);
    await shell.run("-p", "begin here", "--name", "the first try");
    const { code } = await shell.run("-p", "continue there", "--resume", "the first try");
    expect([code, shell.prompt(1)]).toEqual([0, expect.stringContaining("begin here")]);
  });

  test("--bare leaves out instructions, hooks and agents of files", async () => {
    const shell = await createShell();
    shell.write("CLAUDE.md", "Speak of otters.\n");
    shell.write(".claude/agents/own.md", "---\nname: own\ndescription: Own.\n---\nx\n");
    shell.write(
      ".claude/settings.json",
      JSON.stringify({ permissions: { deny: ["Bash"] }, env: { X: "1" } }),
    );
    await shell.run("-p", "look around", "--bare");
    expect(JSON.stringify(shell.provider.requests[0]?.request)).not.toMatch(/otters|\bown\b: Own/);
    const { code, err } = await shell.run("-p", "hi", "--bare", "--setting-sources", "user");
    expect([code, err]).toEqual([1, expect.stringContaining("--bare")]);
  });

  test("--append-subagent-system-prompt reaches children, and not the main agent", async () => {
    const spawn = {
      name: "Agent",
      input: { description: "look", prompt: "Look.", run_in_background: false },
    };
    const shell = await createShell([{ calls: [spawn] }, "Child.", "Done."]);
    await shell.run("-p", "start one", "--append-subagent-system-prompt", "Mind the gap.");
    expect(shell.system(0)).not.toContain("Mind the gap.");
    expect(shell.system(1)).toContain("Mind the gap.");
  });

  test("a failure of the provider is printed on stdout, with exit code 1", async () => {
    const shell = await createShell([{ failure: "unauthorized" }]);
    const { code, out } = await shell.run("-p", "hi there");
    expect([code, out]).toEqual([1, expect.stringMatching(/^Failed to authenticate. API Error: 401 /)]);
  });
});

describe("commands [DRP-3]", () => {
  const servers = (home: string) => JSON.parse(readFileSync(join(home, ".claude.json"), "utf8")).mcpServers;

  test("mcp add-json writes a server as it is given, and refuses what is none", async () => {
    const place = createPlace();
    const json = '{"type":"http","url":"https://x.invalid/mcp","headers":{"A":"b"}}';
    expect((await runInside(place, ["mcp", "add-json", "web", json, "-s", "user"])).code).toBe(0);
    expect(servers(place.home)).toEqual({ web: JSON.parse(json) });
    for (const wrong of ["{", "[]", '{"type":"http"}']) {
      const { code, err } = await runInside(place, ["mcp", "add-json", "other", wrong]);
      expect([code, err]).toEqual([2, expect.stringContaining("mcp add-json")]);
    }
  });

  test("mcp add takes the short options", async () => {
    const place = createPlace();
    const words = ["-s", "user", "-t", "http", "-H", "A: b", "web", "https://x.invalid/mcp"];
    expect((await runInside(place, ["mcp", "add", ...words])).code).toBe(0);
    expect(servers(place.home).web).toMatchObject({ type: "http", headers: { A: "b" } });
    expect((await runInside(place, ["mcp", "remove", "web", "-s", "user"])).code).toBe(0);
    expect(servers(place.home)).toEqual({});
  });

  test("mcp reset-project-choices forgets what was approved and rejected", async () => {
    const place = createPlace();
    place.write(".mcp.json", JSON.stringify({ mcpServers: { a: { command: "a" }, b: { command: "b" } } }));
    await runInside(place, ["mcp", "approve", "a", "--trust"]);
    await runInside(place, ["mcp", "reject", "b", "--trust"]);
    const file = join(place.cwd, ".claude/settings.local.json");
    expect(readFileSync(file, "utf8")).toContain("disabledMcpjsonServers");
    expect((await runInside(place, ["mcp", "reset-project-choices"])).code).toBe(0);
    expect(Object.keys(JSON.parse(readFileSync(file, "utf8")))).toEqual(["$schema"]);
    const { out } = await runInside(place, ["mcp", "list", "--json", "--trust"]);
    expect(out).not.toContain("rejected");
  });

  test("auth status says where the key comes from, never the key, and ends with 1 without one", async () => {
    const place = createPlace();
    const without = await runInside(place, ["auth", "status"]);
    expect([without.code, JSON.parse(without.out)]).toEqual([
      1,
      expect.objectContaining({ loggedIn: false }),
    ]);
    const environment = { ANTHROPIC_API_KEY: "sk-secret" };
    const { code, out } = await runInside(place, ["auth", "status"], { environment });
    expect([code, JSON.parse(out)]).toEqual([
      0,
      { loggedIn: true, authMethod: "api_key", apiProvider: "firstParty", apiKeySource: "ANTHROPIC_API_KEY" },
    ]);
    expect(out).not.toContain("sk-secret");
  });

  test("plugin and auth alone show what there is, and refuse unknown words", async () => {
    const place = createPlace();
    expect(await runInside(place, ["plugin"])).toMatchObject({
      code: 0,
      out: "There are no plugins here.\n",
    });
    expect((await runInside(place, ["auth"])).code).toBe(1);
    const { code, err } = await runInside(place, ["plugin", "lst"]);
    expect([code, err]).toEqual([2, expect.stringContaining("There is no command `plugin lst`.")]);
  });

  test("plugin list, enable, disable and validate", async () => {
    const place = createPlace();
    const manifest = join(place.home, ".claude/skills/helper/.claude-plugin/plugin.json");
    place.write(
      "../home/.claude/skills/helper/.claude-plugin/plugin.json",
      '{"name":"helper","version":"1.2.0"}',
    );
    const list = async () => JSON.parse((await runInside(place, ["plugin", "list", "--json"])).out);
    expect(await list()).toMatchObject([{ name: "helper", version: "1.2.0", enabled: true }]);
    expect((await runInside(place, ["plugin", "disable", "helper"])).code).toBe(0);
    expect(await list()).toMatchObject([{ name: "helper", enabled: false }]);
    expect((await runInside(place, ["plugins", "enable", "helper", "-s", "user"])).code).toBe(0);
    expect(await list()).toMatchObject([{ name: "helper", enabled: true }]);
    expect((await runInside(place, ["plugin", "enable", "nope"])).code).toBe(1);
    expect((await runInside(place, ["plugin", "validate", join(manifest, "../..")])).code).toBe(0);
    place.write("../home/.claude/skills/helper/.claude-plugin/plugin.json", "{");
    expect((await runInside(place, ["plugin", "validate", join(manifest, "../..")])).code).toBe(1);
  });

  test.each([
    ["plugin", "install", "x@y"],
    ["plugin", "marketplace", "add", "a/b"],
    ["setup-token"],
    ["update"],
    ["install", "stable"],
    ["remote-control"],
  ])("%s %s is refused with a reason", async (...words) => {
    const { code, err } = await runInside(createPlace(), words);
    expect([code, err]).toEqual([1, expect.stringMatching(/^retinue: `[a-z -]+` is not supported: \S/)]);
  });
});

describe("the workflow of docs/github-actions.md [DRP-3]", () => {
  const page = readProjectFile("docs/github-actions.md");
  const [, agents = ""] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
  const [, script = ""] = /run: \|\n([\s\S]*?)\n {6}- run: gh/.exec(page) ?? [];
  // The lines up to the first that reads the result; jq is not everywhere.
  const lines = script.replace(/^ {10}/gm, "").split(/^jq /m)[0] ?? "";

  test("its shell lines review a change with three agents, which can write nothing", async () => {
    const spawn = (subagent_type: string) => ({
      name: "Agent",
      input: { description: subagent_type, prompt: "Read it.", subagent_type, run_in_background: false },
    });
    const names = ["security", "correctness", "tests"];
    const provider = await startFakeProvider({
      script: [
        { calls: names.map(spawn) },
        { match: "attacker", text: "No holes." },
        { match: "does not work", text: "One mistake." },
        { match: "no test would notice", text: "One gap." },
        "Summary.",
      ],
    });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const place = createPlace();
    const temp = join(place.cwd, "../temp");
    place.write("../temp/.keep", "");
    place.write(
      "../bin/retinue",
      `#!/bin/sh\nexec "${process.execPath}" "${join(projectRoot, "bin/retinue.js")}" "$@"\n`,
    );
    chmodSync(join(place.cwd, "../bin/retinue"), 0o755);
    place.write(".github/review-agents.json", agents);
    const git = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";
    const setup = `${git} init -q && ${git} add . && ${git} commit -qm one && echo x > x.txt && ${git} add . && ${git} commit -qm two`;
    await run("bash", ["-c", setup], { cwd: place.cwd });
    await run("bash", ["-e", "-c", lines], {
      cwd: place.cwd,
      env: {
        HOME: place.home,
        PATH: `${join(place.cwd, "../bin")}:${process.env["PATH"]}`,
        RUNNER_TEMP: temp,
        BASE: "HEAD~1",
        CI: "true",
        RETINUE_LOCAL_MODELS: "0",
        ANTHROPIC_BASE_URL: provider.url,
        ANTHROPIC_API_KEY: "x",
      },
    });
    const review = JSON.parse(readFileSync(join(temp, "review.json"), "utf8"));
    expect(review).toMatchObject({ subtype: "success", result: "Summary." });
    const last = JSON.stringify(provider.requests.at(-1)?.request.messages);
    for (const text of ["No holes.", "One mistake.", "One gap."]) expect(last).toContain(text);
    const tools = new Set(provider.requests.flatMap(({ request }) => request.tools.map(({ name }) => name)));
    expect([...tools].filter((name) => ["Write", "Edit", "Bash", "WebFetch"].includes(name))).toEqual([]);
  });
});

/** The flags that `claude --help` of version 2.1.325 lists. */
const flags = [
  "--add-dir",
  "--agent",
  "--agents",
  "--allow-dangerously-skip-permissions",
  "--allowed-tools",
  "--allowedTools",
  "--append-system-prompt",
  "--autocompact",
  "--ax-screen-reader",
  "--background",
  "--bare",
  "--betas",
  "--bg",
  "--brief",
  "--chrome",
  "--cloud",
  "--continue",
  "--dangerously-skip-permissions",
  "--debug",
  "--debug-file",
  "--desktop",
  "--disable-slash-commands",
  "--disallowed-tools",
  "--disallowedTools",
  "--effort",
  "--environment",
  "--exclude-dynamic-system-prompt-sections",
  "--fallback-model",
  "--file",
  "--fork-session",
  "--forward-subagent-text",
  "--from-pr",
  "--help",
  "--ide",
  "--include-hook-events",
  "--include-partial-messages",
  "--input-format",
  "--json-schema",
  "--max-budget-usd",
  "--mcp-config",
  "--model",
  "--name",
  "--no-chrome",
  "--no-session-persistence",
  "--output-format",
  "--permission-mode",
  "--permission-prompt-tool",
  "--permission-prompts",
  "--plugin-dir",
  "--plugin-url",
  "--print",
  "--prompt-suggestions",
  "--remote-control",
  "--remote-control-session-name-prefix",
  "--replay-user-messages",
  "--restricted",
  "--resume",
  "--safe-mode",
  "--session-id",
  "--setting-sources",
  "--settings",
  "--strict-mcp-config",
  "--system-prompt",
  "--system-prompt-snapshot",
  "--teleport",
  "--tmux",
  "--tools",
  "--verbose",
  "--version",
  "--worktree",
];

/** Those that the program itself answers. */
const ofProgram = ["--help", "--version", "--print"];

test("every flag of the other engine's help is known here [DRP-3]", () => {
  const program = new Command();
  addOptions(program, [...Object.values(commandFlags), ...Object.values(runFlags)]);
  addAgentSdkOptions(program);
  const known = new Set(program.options.flatMap(({ flags: text }) => text.match(/--[A-Za-z-]+/g) ?? []));
  expect(flags.filter((flag) => !known.has(flag) && !ofProgram.includes(flag))).toEqual([]);
});
