import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { textOf } from "@retinue/core/conversation/message.ts";
import { offlineLabel } from "@retinue/core/models/offline/offline-answer.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import {
  type CommandOptions,
  createPlace,
  type Finished,
  type InProcessOptions,
  type Place,
  readJsonLines,
  runCommand,
  runInProcess,
} from "./run-command.ts";

interface Stage extends Place {
  readonly provider: FakeProvider;
  run(arguments_: readonly string[], options?: InProcessOptions): Promise<Finished>;
  /** The built command, in a process of its own. */
  start(arguments_: readonly string[], options?: CommandOptions): Promise<Finished>;
}

/** A place whose runs ask a provider on this machine, over HTTP, that says what the steps say. */
async function createStage(steps: readonly Step[], apiKey?: string): Promise<Stage> {
  const provider = await startFakeProvider({ script: steps, apiKey });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  return {
    ...place,
    provider,
    run: (arguments_, options = {}) => runInProcess(place, arguments_, { ...options, environment }),
    start: (arguments_, options = {}) => runCommand(place, arguments_, { ...options, environment }),
  };
}

const asked = ({ provider }: Stage, at: number) => provider.requests[at]?.request;
const said = (stage: Stage, at: number) => asked(stage, at)?.messages.map(textOf);
const read = (file_path: string) => ({ calls: [{ name: "Read", input: { file_path } }] });
const bash = (command: string) => ({ calls: [{ name: "Bash", input: { command } }] });
const isWindows = process.platform === "win32";

describe("output formats [CLI-1]", () => {
  test("text is the answer alone, and the tools really read", async () => {
    const stage = await createStage([read("a.txt"), "It says hello."]);
    stage.write("a.txt", "hello\n");
    expect(await stage.start(["-p", "what does a.txt say?"])).toEqual({
      code: 0,
      out: "It says hello.\n",
      err: "",
    });
    expect(JSON.stringify(asked(stage, 1)?.messages.at(-1))).toContain("hello");
    stage.provider.finish();
  });

  test("json is one object with the result and its sums [LIM-4]", async () => {
    const stage = await createStage([{ text: "Yes.", usage: { inputTokens: 10, outputTokens: 5 } }]);
    const { code, out, err } = await stage.run(["-p", "really?", "--output-format", "json"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({
      type: "result",
      subtype: "success",
      is_error: false,
      num_turns: 1,
      result: "Yes.",
      stop_reason: "end_turn",
      usage: { input_tokens: 10, output_tokens: 5 },
      total_cost_usd: expect.any(Number),
      permission_denials: [],
      session_id: [...stage.transcripts().keys()][0],
    });
  });

  test.skipIf(isWindows)(
    "a command in the background that never ends does not hold the result for programs",
    async () => {
      const command = "echo $$ > server.pid; while :; do sleep 0.1; done";
      const server = { calls: [{ name: "Bash", input: { command, run_in_background: true } }] };
      const stage = await createStage([server, "The server runs."]);
      const given = ["--output-format", "json", "--allowedTools", "Bash"];
      const { code, out } = await stage.run(["-p", "Start the server.", ...given]);
      expect({ code, result: JSON.parse(out).result }).toEqual({ code: 0, result: "The server runs." });
      const pid = Number(readFileSync(join(stage.cwd, "server.pid"), "utf8"));
      expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    },
    60_000,
  );

  test("stream-json is everything that happens, one message per line", async () => {
    const stage = await createStage([{ text: "Looking.", ...read("a.txt") }, "Hello."]);
    stage.write("a.txt", "hello\n");
    const flags = ["--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    const messages = readJsonLines((await stage.run(["-p", "read a.txt", ...flags])).out);
    const kinds = messages.map(({ type, subtype }) => (subtype === undefined ? type : `${type}/${subtype}`));
    expect(kinds.filter((kind) => kind !== "stream_event")).toEqual([
      "system/init",
      "system/status",
      // One message per content block.
      "assistant",
      "assistant",
      "user",
      "system/status",
      "assistant",
      "result/success",
    ]);
    const streamed = messages.flatMap(({ event }) =>
      event === undefined ? [] : [Reflect.get(Object(event), "type")],
    );
    expect(streamed.slice(0, 3)).toEqual(["message_start", "content_block_start", "content_block_delta"]);
    expect(streamed.slice(-2)).toEqual(["message_delta", "message_stop"]);
    expect(new Set(messages.map(({ session_id }) => session_id)).size).toBe(1);
    expect(messages[0]).toMatchObject({ cwd: stage.cwd, apiKeySource: "ANTHROPIC_API_KEY" });
  });

  test("hooks of a folder that is not trusted do not run, and that is reported [PRM-11]", async () => {
    const stage = await createStage(["Hello."]);
    const hook = { hooks: [{ type: "command", command: "touch ran" }] };
    stage.write(".claude/settings.json", JSON.stringify({ hooks: { Stop: [hook], PreToolUse: [hook] } }));
    const { code, err } = await stage.run(["-p", "hi"]);
    expect([code, existsSync(join(stage.cwd, "ran"))]).toEqual([0, false]);
    expect(err).toContain("2 hooks do not run, because this folder is not trusted");
    expect(err).toContain("/trust in the terminal");
  });

  test("a retry is reported, and the answer comes all the same", async () => {
    const stage = await createStage([{ failure: "overloaded", retryAfterMs: 1 }, "Now."]);
    const { code, out } = await stage.run(["-p", "hi", "--output-format", "stream-json"]);
    const retry = readJsonLines(out).find(({ subtype }) => subtype === "api_retry");
    expect(retry).toMatchObject({ attempt: 1, max_retries: 10, error_status: 529 });
    expect(retry).toMatchObject({ error_message: expect.stringMatching(/529/) });
    expect(code).toBe(0);
  });

  test("a server that is not there is named at the first failure, in every format [CLI-6]", async () => {
    const stage = await createStage([]);
    await stage.provider[Symbol.asyncDispose]();
    const { host } = new URL(stage.provider.url);
    const cause = `Cannot reach ${host} (ECONNREFUSED).`;
    for (const format of ["text", "json", "stream-json"]) {
      const { code, out, err } = await stage.run(["-p", "hi", "--output-format", format]);
      expect(code).toBe(1);
      expect(out).toContain(`API Error: ${cause}`);
      if (format !== "stream-json") expect(err.split("\n")[0]).toMatch(`${cause} Trying again in `);
      else
        expect(readJsonLines(out).find(({ subtype }) => subtype === "api_retry")).toMatchObject({
          error_message: cause,
        });
    }
  });

  test("without a key it fails with one sentence; the offline model answers where it is named [MDL-4, CLI-7]", async () => {
    const place = createPlace();
    place.write("README.md", "# Demo\n\nA demo with two parts.\n");
    const refused = await runInProcess(place, ["-p", "what is here"]);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/^retinue: No API key is configured\.\s.*offline/s);
    const { code, out, err } = await runInProcess(place, ["-p", "what is here", "--model", "offline"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.startsWith(offlineLabel)).toBe(true);
    expect(out).toContain("A demo with two parts.");
  });
});

describe("where the prompt comes from [CLI-1]", () => {
  test("stdin alone", async () => {
    const stage = await createStage(["Yes."]);
    expect((await stage.start(["-p"], { input: "from the pipe\n" })).out).toBe("Yes.\n");
    expect(said(stage, 0)).toEqual(["from the pipe"]);
  });

  test("the arguments with a file piped in", async () => {
    const stage = await createStage(["Yes."]);
    await stage.run(["-p", "explain"], { input: "const a = 1;\n" });
    expect(said(stage, 0)).toEqual(["explain\n\nconst a = 1;"]);
  });

  test("the arguments alone, where the pipe stays open and silent", async () => {
    const stage = await createStage(["Yes."]);
    expect(await stage.start(["-p", "explain"], { input: { open: true } })).toEqual({
      code: 0,
      out: "Yes.\n",
      err: "",
    });
  });

  test("several messages on stdin, in one session", async () => {
    const stage = await createStage(["One.", "Two."]);
    const message = (content: string) =>
      `${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`;
    const flags = [
      "--input-format",
      "stream-json",
      "--output-format",
      "stream-json",
      "--replay-user-messages",
    ];
    const { code, out } = await stage.run(["-p", ...flags], {
      // JSON writes the separator as it is, and it ends no line of the protocol.
      input: message("first\u2028of them") + message("second").trimEnd(),
    });
    expect(code).toBe(0);
    expect(said(stage, 1)).toEqual(["first\u2028of them", "One.", "second"]);
    const results = readJsonLines(out).filter(({ type }) => type === "result");
    expect(results.map(({ result }) => result)).toEqual(["One.", "Two."]);
    expect(readJsonLines(out).filter(({ isReplay }) => isReplay === true)).toHaveLength(2);
    expect(stage.transcripts().size).toBe(1);
  });
});

describe("limits and forms", () => {
  test("--max-turns ends with 1 and error_max_turns", async () => {
    const stage = await createStage([{ text: "Looking.", ...read("a.txt") }]);
    const flags = ["--max-turns", "1", "--output-format", "json"];
    const { code, out } = await stage.run(["-p", "go", ...flags]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      subtype: "error_max_turns",
      is_error: true,
      errors: ["Reached maximum number of turns (1)"],
    });
  });

  test("--json-schema gives a checked value, after a retry where it must [SDK-4]", async () => {
    const schema = JSON.stringify({
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
    });
    const requestFinalAnswer = (n: unknown) => ({ calls: [{ name: "StructuredOutput", input: { n } }] });
    const stage = await createStage([
      requestFinalAnswer("many"),
      requestFinalAnswer(3),
      requestFinalAnswer(4),
    ]);
    const { out } = await stage.run(["-p", "count", "--json-schema", schema, "--output-format", "json"]);
    expect(JSON.parse(out)).toMatchObject({ subtype: "success", structured_output: { n: 3 } });
    expect((await stage.run(["-p", "count", "--json-schema", schema])).out).toBe('{"n":4}\n');
  });
});

describe("sessions", () => {
  const id = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

  test("are resumed, continued and forked with the whole conversation [TRN-1, TRN-3]", async () => {
    const stage = await createStage(["One.", "Two.", "Three.", "Four."]);
    await stage.run(["-p", "first", "--session-id", id]);
    await stage.run(["-p", "second", "--resume", id]);
    expect(said(stage, 1)).toEqual(["first", "One.", "second"]);
    await stage.run(["-p", "third", "--continue"]);
    expect(said(stage, 2)).toEqual(["first", "One.", "second", "Two.", "third"]);
    expect([...stage.transcripts().keys()]).toEqual([id]);
    await stage.run(["-p", "fourth", "--resume", id, "--fork-session"]);
    expect(said(stage, 3)?.slice(-3)).toEqual(["third", "Three.", "fourth"]);
    expect(stage.transcripts().size).toBe(2);
  });

  test("--no-session-persistence keeps nothing", async () => {
    const stage = await createStage(["One."]);
    expect((await stage.run(["-p", "first", "--no-session-persistence"])).out).toBe("One.\n");
    expect(existsSync(join(stage.home, ".claude"))).toBe(false);
  });

  test.runIf(!isWindows)(
    "Ctrl+C in the middle of an answer ends with 130, and the session continues later [CLI-6, CLI-8, TRN-2, TRN-3]",
    async () => {
      const stage = await createStage([
        read("a.txt"),
        { text: "Half of an answer that stalls", failure: "stall", after: 1 },
        "Well.",
      ]);
      stage.write("a.txt", "hello\n");
      const flags = ["--session-id", id, "--output-format", "stream-json", "--include-partial-messages"];
      let isAnswering = false;
      const { code, out, err } = await stage.start(["-p", "go", ...flags], {
        watch(text, child) {
          if (isAnswering || !text.includes('"Half')) return;
          isAnswering = true;
          child.kill("SIGINT");
        },
      });
      const line = `Continue: retinue -p --resume ${id} "Continue."`;
      expect({ code, err }).toEqual({ code: 130, err: `retinue: Stopped by SIGINT.\n${line}\n` });
      expect(readJsonLines(out).at(-1)).toMatchObject({
        type: "result",
        subtype: "error_during_execution",
        errors: ["The run was stopped."],
      });
      expect((await stage.run(["-p", "continue", "--resume", id])).out).toBe("Well.\n");
      const sent = asked(stage, 2)?.messages ?? [];
      expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user", "user"]);
      expect(JSON.stringify(sent.slice(2))).toMatch(/tool_result.*hello.*continue/);
      expect(
        stage
          .transcripts()
          .get(id)
          ?.some(({ type }) => type === "system"),
      ).toBe(true);
    },
  );

  test.runIf(!isWindows)("Ctrl+C while it waits for the next message ends immediately [CLI-6]", async () => {
    const stage = await createStage([]);
    const { code } = await stage.start(
      ["-p", "--input-format", "stream-json", "--output-format", "stream-json"],
      {
        input: {
          open: true,
          text: '{"type":"control_request","request_id":"1","request":{"subtype":"get_usage"}}\n',
        },
        watch: (_, child) => void child.kill("SIGINT"),
      },
    );
    expect(code).toBe(130);
  });
});

describe("agents", () => {
  test("a child whose call does not say where it runs is waited for, with JSON as with text [BGR-1]", async () => {
    for (const format of ["text", "json", "stream-json"]) {
      const stage = await createStage([
        { calls: [{ name: "Agent", input: { description: "Look", prompt: "CHILD: look." } }] },
        "Seen by the child.",
        "Done.",
      ]);
      const { code } = await stage.run(["-p", "go", "--output-format", format, "--verbose"]);
      expect(code).toBe(0);
      expect(JSON.stringify(asked(stage, 2)?.messages)).toContain("Seen by the child.");
    }
  });

  test("--agent brings its prompt, its tools and its model [TLS-1, TLS-6, SPN-3]", async () => {
    const stage = await createStage(["Reviewed."]);
    stage.write(
      ".claude/agents/reviewer.md",
      "---\nname: reviewer\ndescription: Reviews. Use it. Not else.\ntools: Read, Grep\nmodel: opus\n---\nYou review.\n",
    );
    expect((await stage.run(["-p", "go", "--agent", "reviewer"])).out).toBe("Reviewed.\n");
    expect(asked(stage, 0)?.system.join("\n")).toContain("You review.");
    expect(asked(stage, 0)?.tools.map(({ name }) => name)).toEqual(["Grep", "Read"]);
    expect(stage.provider.requests[0]?.body["model"]).toMatch(/opus/);
  });

  test("--agents, --model and --append-system-prompt go together", async () => {
    const stage = await createStage(["Ahoy."]);
    const agents = JSON.stringify({
      pirate: { description: "Talks. Use at sea. Not on land.", prompt: "You are a pirate." },
    });
    await stage.run([
      "-p",
      "go",
      "--agents",
      agents,
      "--agent",
      "pirate",
      "--model",
      "haiku",
      "--append-system-prompt",
      "Be brief.",
    ]);
    expect(asked(stage, 0)?.system.join("\n")).toMatch(/You are a pirate\.[\s\S]*Be brief\./);
    expect(stage.provider.requests[0]?.body["model"]).toMatch(/haiku/);
  });
});

describe("permissions", () => {
  test("everything but reading inside the folder is refused, and the result lists it", async () => {
    const calls = [
      { name: "Bash", input: { command: "touch made" }, id: "t1" },
      { name: "Write", input: { file_path: "made", content: "x" }, id: "t2" },
      { name: "Read", input: { file_path: "/etc/hostname" }, id: "t3" },
      { name: "Read", input: { file_path: "a.txt" }, id: "t4" },
    ];
    const stage = await createStage([{ calls }, "I could not.", { calls }, "I could not."]);
    stage.write("a.txt", "hello\n");
    const { code, out } = await stage.run(["-p", "go", "--output-format", "json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out).permission_denials).toEqual(
      calls
        .slice(0, 3)
        .map(({ name, input, id }) => ({ tool_name: name, tool_use_id: id, tool_input: input })),
    );
    expect(existsSync(join(stage.cwd, "made"))).toBe(false);
    const text = await stage.run(["-p", "go"]);
    expect(text.err).toMatch(/^3 calls were not allowed; .* --allowedTools "Bash,Write,Read"/);
  });

  test("--allowedTools allows, --tools leaves out, --disallowedTools wins", async () => {
    const stage = await createStage([bash("touch made"), "Done.", bash("touch made2"), "No."]);
    await stage.run(["-p", "go", "--allowedTools", "Bash", "--tools", "Bash,Read"]);
    expect(existsSync(join(stage.cwd, "made"))).toBe(true);
    expect(asked(stage, 0)?.tools.map(({ name }) => name)).toEqual(["Bash", "Read"]);
    await stage.run(["-p", "go", "--dangerously-skip-permissions", "--disallowedTools", "Bash"]);
    expect(existsSync(join(stage.cwd, "made2"))).toBe(false);
    expect(JSON.stringify(asked(stage, 3)?.messages.at(-1))).toMatch(/no tool .*Bash.* Available: /);
  });
});

describe("what goes wrong is one sentence and an exit code [CLI-6]", () => {
  const noModel = { environment: { ANTHROPIC_BASE_URL: "", ANTHROPIC_API_KEY: "" } };

  test.each<[readonly string[], number, RegExp]>([
    [["-p"], 1, /^retinue: No prompt was given\.\n/],
    [["-p", "hi", "--output-format", "xml"], 1, /^retinue: Invalid --output-format "xml"\.\n/],
    [["-p", "hi", "--max-turns", "none"], 1, /^retinue: --max-turns needs a whole number from 1/],
    [["-p", "hi", "--tools", "Raed"], 1, /^retinue: `tools` names `Raed`/],
    [
      ["-p", "hi", "--model", "sonnet or opus"],
      1,
      /^retinue: The model cannot be used: "sonnet or opus" contains spaces/,
    ],
    [["-p", "hi", "--settings", "{bad"], 1, /^retinue: The settings given to this run cannot be used: /],
    [["-p", "hi", "--add-dir", "nowhere"], 1, /^retinue: --add-dir names a folder that does not exist/],
    [["-p", "hi", "--session-id", "../x"], 1, /^retinue: "\.\.\/x" is not a session id\.\n/],
    [["-p", "hi", "--json-schema", '{"type":"objekt"}'], 1, /^retinue: The output schema cannot be used/],
    [["-p", "hi", "--wrong"], 1, /^retinue: Unknown option '--wrong'\.\n/],
    [["-p", "hi", "--agent", "nobody"], 1, /^retinue: There is no agent "nobody"\.\n/],
    [["-p", "hi", "--resume", "../x"], 1, /^retinue: There is no session "\.\.\/x" in this folder\.\n/],
    [["-p", "hi", "--continue"], 1, /^retinue: There is no session in this folder to continue\.\n/],
    [["-p", "hi", "--model", "nobody/gpt-5"], 1, /^retinue: .*nobody.*\n/],
    [
      ["-p", "hi", "--model", "anthropic/claude-opus-5"],
      1,
      /^retinue: anthropic\/claude-opus-5 needs a key, and none is set\.\n/,
    ],
  ])("%j", async (arguments_, code, message) => {
    const place = createPlace();
    // One of them as a user sees it.
    const run = arguments_.length === 1 ? runCommand : runInProcess;
    const result = await run(place, arguments_, noModel);
    expect(result).toMatchObject({ code, out: "" });
    expect(result.err).toMatch(message);
    expect(result.err).not.toMatch(/^\s+at /m);
    expect(result.err.trimEnd().split("\n").length).toBeLessThanOrEqual(3);
  });

  test("a key that is not accepted", async () => {
    const stage = await createStage([], "the right one");
    const { code, out, err } = await stage.run(["-p", "hi"]);
    expect(code).toBe(1);
    expect(out).toMatch(/^Failed to authenticate. API Error: 401 .*\n$/);
    expect(err).toMatch(/^retinue: .*\nCheck ANTHROPIC_API_KEY .*\n$/);
    expect(stage.provider.requests).toHaveLength(1);
  });

  test("a model that does not exist", async () => {
    const stage = await createStage([{ failure: "not-found" }]);
    const { code, err } = await stage.run(["-p", "hi", "--model", "claude-opus-99"]);
    expect(code).toBe(1);
    expect(err).toMatch(/^retinue: .*\nCheck the model's name .*\n$/);
  });

  test("settings that cannot be read", async () => {
    const place = createPlace();
    place.write(".claude/settings.json", "{bad");
    const { code, out, err } = await runInProcess(place, ["-p", "hi"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^retinue: \/.*settings\.json:1:\d+: Settings could not be read completely/);
  });

  test.runIf(!isWindows)(
    "a reader that goes away stops the run, with a sentence on how to continue",
    async () => {
      const stage = await createStage([{ text: "x".repeat(20_000), delayMs: 1 }, "never asked"]);
      const program = join(projectRoot, "bin/retinue.js");
      const line = `"${process.execPath}" "${program}" -p hi --output-format stream-json --include-partial-messages`;
      const pipe = `${line} | head -2 >first; echo "\${PIPESTATUS[0]}" >code`;
      const environment = { ANTHROPIC_BASE_URL: stage.provider.url, ANTHROPIC_API_KEY: "x" };
      const env = { HOME: stage.home, PATH: process.env["PATH"], ...environment };
      const shell = await new Promise<string>((resolve) => {
        execFile("bash", ["-c", pipe], { cwd: stage.cwd, env }, (_error, out, err) =>
          resolve(`${out}${err}`),
        );
      });
      expect(shell).toMatch(
        /^retinue: The output is no longer being read, so the run was stopped\.[^\n]*\n$/,
      );
      expect(readFileSync(join(stage.cwd, "code"), "utf8")).toBe("0\n");
      expect(readFileSync(join(stage.cwd, "first"), "utf8")).toContain('"subtype":"init"');
      expect(stage.provider.requests[0]?.status).toBe("abandoned");
    },
  );
});
