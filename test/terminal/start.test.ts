import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runInProcess } from "../scenarios/run-command.ts";
import { keys, openConversation, openPty } from "./pty-stage.ts";

const small = { columns: 80, rows: 24 };

test("from an empty home to the first answer and the first allowed command, one screen at 80 by 24 says what to do [CLI-1, CLI-4]", async () => {
  const provider = await startFakeProvider({
    apiKey: "a-good-key",
    script: [
      "It is a shop.",
      { calls: [{ name: "Bash", input: { command: "touch made" } }] },
      "The file is there.",
    ],
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  // A gateway that wants a key, which is not there yet.
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "old-key" };
  const pty = openPty(place, [], { ...small, environment });
  await pty.shows("retinue ", "folder", "refuses the key", "mode", "try", "ctrl+c twice", "1 paste a key");
  expect((await pty.all()).length).toBeLessThanOrEqual(24);
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("the key  enter sends");
  pty.type(`a-good-key${keys.enter}`);
  await pty.shows("1 in your settings");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("The key is kept in");
  await pty.isMissing("1 question");
  pty.type(`what is here?${keys.enter}`);
  await pty.shows("It is a shop.");
  await pty.isMissing("esc to interrupt");
  pty.type(`make a file${keys.enter}`);
  await pty.shows("main asks to use Bash", "1 yes");
  await pty.takesAnswers();
  pty.type("1");
  await pty.shows("The file is there.");
  expect(existsSync(join(place.cwd, "made"))).toBe(true);
  pty.type(keys.ctrlD);
  await pty.exited;

  // From then on two lines, and no question.
  const again = openPty(place, [], { ...small, environment });
  await again.shows("retinue ", "key from ANTHROPIC_API_KEY", "default");
  const lines = await again.all();
  expect(lines.join("\n")).not.toMatch(/ctrl\+c twice|paste a key/);
  expect(lines.findIndex((line) => line.startsWith("────"))).toBeLessThanOrEqual(3);
});

test("without a key the choice has variables of other names and the offline demo, once; what is typed meanwhile waits [CLI-7]", async () => {
  const place = createPlace();
  const environment = { CLAUDE_API_KEY: "kept-elsewhere" };
  const first = openPty(place, [], { ...small, environment });
  await first.shows("no key: the offline demo answers", "2 use CLAUDE_API_KEY", "3 the offline demo");
  first.type("hello there");
  await first.shows("> hello there", "tab to answer");
  first.type(keys.enter);
  await first.shows("hello there  (queued");
  first.type(keys.tab);
  await first.shows("3 the offline demo");
  await first.takesAnswers();
  first.type("3");
  // The answer may be longer than the window.
  await first.hasShown("> hello there");
  first.type(keys.ctrlD);
  await first.exited;

  const second = openPty(place, [], { ...small, environment });
  await second.shows("no key: the offline demo answers · /login");
  expect((await second.screen()).join("\n")).not.toContain("CLAUDE_API_KEY");
  second.type(`/login${keys.enter}`);
  await second.shows("2 use CLAUDE_API_KEY");
  await second.takesAnswers();
  second.type("2");
  await second.shows("takes the key from CLAUDE_API_KEY");
  const settings = readFileSync(join(place.home, ".claude/settings.json"), "utf8");
  // The variable is named, the key is not copied.
  expect(JSON.parse(settings).apiKeyHelper).toBe('printf %s "$CLAUDE_API_KEY"');
  expect(settings).not.toContain("kept-elsewhere");
});

test("a server of models on this machine is offered where there is no key [CLI-7]", async () => {
  await using provider = await startFakeProvider({ script: [{ times: "any", text: "Local answer." }] });
  const place = createPlace();
  const environment = {
    RETINUE_LOCAL_MODELS: "1",
    OLLAMA_HOST: "127.0.0.1:1",
    LMSTUDIO_BASE_URL: `${provider.url}/v1`,
  };
  const pty = openPty(place, [], { ...small, environment });
  await pty.shows(`lmstudio at ${provider.url}`);
  pty.type(`/login${keys.enter}`);
  await pty.shows(`use LM Studio  lmstudio/scripted at ${provider.url}`);
  await pty.takesAnswers();
  pty.type("2");
  await pty.shows("lmstudio/scripted answers from now on");
  const settings = JSON.parse(readFileSync(join(place.home, ".claude/settings.json"), "utf8"));
  expect(settings.model).toBe("lmstudio/scripted");
  pty.type(`hello${keys.enter}`);
  await pty.shows("Local answer.");
});

const hooks = {
  env: { DEPLOY_TARGET: "production" },
  hooks: { UserPromptSubmit: [{ hooks: [{ type: "command", command: "touch hook-ran" }] }] },
};

test("what a folder would run and set is shown and asked for in place, by y or n, once until it wants more [PRM-11, CLI-4]", async () => {
  const files = {
    ".claude/settings.json": JSON.stringify(hooks),
  };
  const { pty, again, place } = await openConversation(["One.", "Two.", "Three."], { ...small, files });
  await pty.shows(
    "Do you trust",
    "Would run programs",
    "touch hook-ran",
    "(.claude/settings.json)",
    "DEPLOY_TARGET: production",
    "1 yes, trust this folder",
  );
  await pty.takesAnswers();
  pty.type("n");
  // What waits is said once, and not again as a warning.
  await pty.shows("· trust: not now", "1 program and 1 variable of it wait");
  expect((await pty.all()).join("\n")).not.toMatch(/hook does not run|is not connected/);
  pty.type(`first${keys.enter}`);
  await pty.shows("One.");
  expect(existsSync(join(place.cwd, "hook-ran"))).toBe(false);
  pty.type(keys.ctrlD);
  await pty.exited;

  // Declined as it is; with one hook more it is asked again.
  const second = again();
  await second.shows("not trusted: 2 parts wait · /trust", "default");
  expect((await second.screen()).join("\n")).not.toContain("Do you trust");
  second.type(keys.ctrlD);
  await second.exited;
  place.write(".claude/settings.json", JSON.stringify({ ...hooks, env: { DEPLOY_TARGET: "staging" } }));
  const third = again();
  await third.shows("DEPLOY_TARGET: staging", "2 not now");
  await third.takesAnswers();
  third.type("y");
  await third.shows("trusted folder");
  third.type(`second${keys.enter}`);
  await third.shows("Two.");
  expect(existsSync(join(place.cwd, "hook-ran"))).toBe(true);
});

test("/trust asks in a running conversation, and what the folder brings counts at once [PRM-11]", async () => {
  const files = { ".claude/settings.json": JSON.stringify(hooks) };
  const { pty, place } = await openConversation(["One.", "Two."], { ...small, files });
  await pty.shows("Do you trust");
  await pty.takesAnswers();
  pty.type("2");
  await pty.shows("folder not trusted", "default");
  pty.type(`first${keys.enter}`);
  await pty.shows("One.");
  await pty.isMissing("esc to interrupt");
  pty.type(`/trust${keys.enter}`);
  await pty.shows("Do you trust");
  await pty.takesAnswers();
  pty.type("y");
  await pty.shows("trusted from now on");
  expect(existsSync(join(place.cwd, "hook-ran"))).toBe(false);
  pty.type(`second${keys.enter}`);
  await pty.shows("Two.");
  expect(existsSync(join(place.cwd, "hook-ran"))).toBe(true);
});

test("`retinue auth login` tries a key that is piped in and keeps it for this person alone; logout forgets it [CLI-7]", async () => {
  await using provider = await startFakeProvider({ apiKey: "a-good-key", script: [] });
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url };
  const run = (words: readonly string[], input = "", more = {}) =>
    runInProcess(place, words, { input, environment: { ...environment, ...more } });
  const file = join(place.home, ".claude/settings.json");
  mkdirSync(join(place.home, ".claude"));
  writeFileSync(file, '{ "language": "english" }\n', { mode: 0o644 });

  const refused = await run(["auth", "login"], "a-bad-key\n");
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("refuses the key (status 401)")]);
  expect(readFileSync(file, "utf8")).not.toContain("a-bad-key");
  expect((await run(["auth", "login"], "two words")).err).toContain("Nothing was changed: this is not a key");
  expect((await run(["auth", "login"], "")).code).toBe(2);

  const kept = await run(["auth", "login"], "a-good-key\n");
  expect([kept.code, kept.out]).toEqual([
    0,
    expect.stringMatching(/kept in ~\/\.claude\/settings\.json, which only you can read\..* accepts it\./),
  ]);
  expect(kept.out).not.toContain("a-good-key");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const settings = { language: "english", env: { ANTHROPIC_API_KEY: "a-good-key" } };
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(settings);
  expect((await run(["auth", "status", "--text"])).out).toBe("The key comes from ANTHROPIC_API_KEY.\n");
  expect((await run(["logout"])).out).toBe("The key is forgotten.\n");
  expect(readFileSync(file, "utf8")).not.toContain("a-good-key");

  const token = await run(["login"], "a-good-key", { ANTHROPIC_AUTH_TOKEN: "t" });
  expect([token.code, token.err]).toEqual([1, expect.stringContaining("ANTHROPIC_AUTH_TOKEN is set")]);
  const keychain = await run(["login", "--keep", "keychain"], "a-good-key", { RETINUE_MCP_KEYCHAIN: "0" });
  expect([keychain.code, keychain.err]).toEqual([1, expect.stringContaining("no keychain")]);
  // Settings that are kept in a repository are one commit away from everybody.
  mkdirSync(join(place.home, ".git"));
  const shared = await run(["auth", "login"], "a-good-key");
  expect([shared.code, shared.err]).toEqual([1, expect.stringContaining("is in the git repository")]);
  expect(readFileSync(file, "utf8")).not.toContain("a-good-key");
});
