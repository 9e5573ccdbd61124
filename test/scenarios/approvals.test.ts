import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import {
  readSignedAnswer,
  sign,
  signatureHeader,
  timestampHeader,
} from "@retinue/core/kernel/approvals/webhook.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand, runInProcess } from "./run-command.ts";

const bash = (command: string): Step => ({ calls: [{ name: "Bash", input: { command } }] });

/** Commands in a place of their own, with a model that says what the steps say. */
async function createStage(steps: readonly Step[]) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const retinue = (words: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    runInProcess(place, words, { environment: { ...environment, ...more } });
  const session = "0a1b2c3d-0000-4000-8000-000000000000";
  const projects = join(place.home, ".claude/projects");
  const folder = join(projects, place.cwd.replace(/[^A-Za-z0-9]/g, "-"), session, "approvals");
  const question = async (): Promise<string> => {
    while (true) {
      const names = existsSync(folder) ? readdirSync(folder) : [];
      const id = names.flatMap((name) => /^q-(\w+)\.json$/.exec(name)?.[1] ?? []).at(0);
      if (id !== undefined) return id;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return { place, retinue, session, question, environment };
}

describe("approvals from the command line", () => {
  test("a question outlives its killed process, and its answer lets the call run once when the session is resumed [APR-1, APR-2]", async () => {
    const command = "echo ran >> log";
    const stage = await createStage([bash(command), bash(command), bash(command), "Done."]);
    const { retinue, place, session } = stage;
    const flags = ["--approvals", "wait", "--output-format", "json"];
    const killed = runCommand(
      place,
      ["-p", "Go.", "--session-id", session, ...flags, "--output-format", "stream-json"],
      {
        environment: stage.environment,
        watch: (_, child) => void stage.question().then(() => child.kill("SIGKILL")),
      },
    );
    const id = await stage.question();
    await killed;
    expect(existsSync(join(place.cwd, "log"))).toBe(false);

    const listed = await retinue(["approvals", "--json"]);
    expect(JSON.parse(listed.out).approvals).toMatchObject([
      { state: "waiting", question: { id, tool: "Bash", input: { command } } },
    ]);
    const asAgent = [
      ["approve", id],
      ["trust", "--yes"],
      ["mcp", "add", "x", "--", "true"],
      ["teams", "stop", "a"],
      ["--bg", "Go on."],
    ];
    for (const words of asAgent)
      expect(await retinue(words, { CLAUDECODE: "1" })).toMatchObject({
        code: 1,
        err: expect.stringContaining("only a person decides this"),
      });
    expect(await retinue(["approve", id])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${id} is allowed: Bash, this call`),
    });

    const resumed = retinue(["-p", "Go on.", "--resume", session, ...flags]);
    // The same call a third time is another question.
    let again = "";
    await expect
      .poll(async () => {
        const { approvals } = JSON.parse((await retinue(["approvals", "--json"])).out);
        again = approvals.find(({ state }: { state: string }) => state === "waiting")?.question.id ?? "";
        return again;
      })
      .not.toBe("");
    expect(again).not.toBe(id);
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
    expect((await retinue(["deny", again, "not", "twice"])).code).toBe(0);
    const { out } = await resumed;
    expect(JSON.parse(out)).toMatchObject({ result: "Done.", permission_denials: [{}] });
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
    const shown = await retinue(["approvals", "show", id]);
    expect(shown.out).toMatch(/used +\S+ Bash of main/);
  });

  test("equal questions of two sessions are told apart, and an answer reaches its own session only [APR-1, BGR-6]", async () => {
    const spawn = { description: "append", prompt: "APPEND", run_in_background: true };
    const call = { name: "Bash", input: { command: "echo ran >> log" } };
    const { retinue, place } = await createStage([
      { match: "APPEND", calls: [call], times: 2 },
      { match: "Go.", calls: [{ name: "Agent", input: spawn }], times: 2 },
      { text: "Done.", times: "any" },
    ]);
    place.write("ask.json", '{"backgroundAgents": {"questions": "ask"}}');
    const ids = ["1a1b2c3d-0000-4000-8000-000000000000", "2a1b2c3d-0000-4000-8000-000000000000"] as const;
    const runs = ids.map((id) =>
      retinue(["-p", "Go.", "--session-id", id, "--approvals", "wait", "--settings", "ask.json"]),
    );
    const waiting = async (): Promise<readonly { readonly id: string; readonly session: string }[]> => {
      const { approvals } = JSON.parse((await retinue(["approvals", "--json"])).out || '{"approvals": []}');
      return approvals
        .filter(({ state }: { state: string }) => state === "waiting")
        .map(({ question }: { question: unknown }) => question);
    };
    await expect.poll(waiting).toHaveLength(2);
    const { out: table } = await retinue(["approvals"]);
    expect(table).toContain("SESSION");
    for (const id of ids) expect(table).toContain(` ${id.slice(0, 8)} `);
    const [one, two] = ids.map(
      async (id) => (await waiting()).find(({ session }) => session === id)?.id ?? "",
    );
    expect((await retinue(["approve", (await one) ?? ""])).code).toBe(0);
    expect((await runs[0])?.code).toBe(0);
    expect(await waiting()).toMatchObject([{ session: ids[1] }]);
    expect((await retinue(["deny", (await two) ?? ""])).code).toBe(0);
    expect((await runs[1])?.code).toBe(0);
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
  });

  test.each([
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
  ] as const)("a call that waits when %s ends its process is not recorded as refused, and the answer that comes later counts [APR-1, APR-2]", async (signal) => {
    const command = "echo ran >> log";
    const stage = await createStage([bash(command), bash(command), "Done."]);
    const { retinue, place, session } = stage;
    const flags = ["--approvals", "wait", "--output-format", "json"];
    const stopped = runCommand(place, ["-p", "Go.", "--session-id", session, ...flags], {
      environment: stage.environment,
      started: (child) => void stage.question().then(() => child.kill(signal)),
    });
    const id = await stage.question();
    const { out } = await stopped;
    expect(JSON.parse(out)).toMatchObject({ terminal_reason: "aborted_streaming", permission_denials: [] });
    const recorded = JSON.stringify([...place.transcripts().values()]);
    expect(recorded).not.toMatch(/not allowed/);
    expect(recorded).toContain("an answer that was given meanwhile counts");
    expect((await retinue(["approve", id])).code).toBe(0);
    const resumed = await retinue(["-p", "Go on.", "--resume", session, ...flags]);
    expect(JSON.parse(resumed.out)).toMatchObject({ result: "Done.", permission_denials: [] });
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
  });

  test("a child that waited when its process was killed runs its call once, after the answer and a restart [APR-1]", async () => {
    const command = "echo ran >> log";
    const prompt = "CHILD-TASK";
    const ofChild = (step: object): Step => ({
      match: ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes(prompt),
      ...step,
    });
    const call = { calls: [{ name: "Bash", input: { command } }] };
    const input = { description: "Paint", prompt, subagent_type: "general-purpose" };
    const stage = await createStage([
      ofChild(call),
      ofChild(call),
      ofChild({ text: "Painted." }),
      { calls: [{ name: "Agent", input }] },
    ]);
    const { place, session } = stage;
    const words = ["-p", "Go.", "--session-id", session, "--approvals", "wait", "--output-format", "json"];
    const killed = runCommand(place, words, {
      environment: stage.environment,
      started: (child) => void stage.question().then(() => child.kill("SIGKILL")),
    });
    const id = await stage.question();
    await killed;
    expect((await stage.retinue(["approve", id])).code).toBe(0);
    const resumed = await stage.retinue(["resume", "--interrupted", "--approvals", "wait"]);
    expect(resumed).toMatchObject({ code: 0, out: expect.stringContaining("Painted.") });
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
  });

  test("a question with choices waits as well, and its answer reaches the agent [APR-1]", async () => {
    const choices = [
      { label: "Blue", description: "" },
      { label: "Green", description: "" },
    ];
    const questions = [{ question: "Which colour?", header: "Colour", options: choices }];
    await using sample = await createSampleRuntime(
      [{ calls: [{ name: "AskUserQuestion", input: { questions } }] }, "Done."],
      { approvals: "inbox", transcripts: true },
    );
    const { approvals } = sample.runtime;
    const run = sample.runtime.run("Paint.");
    await expect.poll(async () => (await approvals.list()).length).toBe(1);
    const [waiting] = await approvals.list();
    const id = waiting?.question.id ?? "";
    await expect(approvals.answer(id, { type: "allow" })).rejects.toThrow(
      'The question "Which colour?" was not answered',
    );
    await expect(
      approvals.answer(id, { type: "allow", scope: "session", answers: { "Which colour?": "Green" } }),
    ).rejects.toThrow("only be allowed for this call");
    await approvals.answer(id, { type: "allow", answers: { "Which colour?": "Green" } });
    expect((await run.result).denials).toEqual([]);
    expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("→ Green");
  });

  test("wrong words are refused, and nothing is written [APR-2]", async () => {
    const { retinue } = await createStage([]);
    expect(await retinue(["approve", "0123456789ab"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("There is no question"),
    });
    expect(await retinue(["-p", "Go.", "--approvals", "later"])).toMatchObject({
      code: 1,
      err: expect.stringContaining('Invalid --approvals "later"'),
    });
  });
});

describe("the webhook", () => {
  const secret = "a key of more than sixteen characters";

  /** A server that answers each question with what `reply` says. */
  async function startReceiver(reply: (question: { id: string; digest: string }) => object, key = secret) {
    const seen: { readonly body: string; readonly signature: string; readonly timestamp: string }[] = [];
    const server = createServer(async (request, response) => {
      request.setEncoding("utf8");
      let body = "";
      for await (const part of request) body += part;
      const { headers } = request;
      seen.push({
        body,
        signature: String(headers[signatureHeader]),
        timestamp: String(headers[timestampHeader]),
      });
      const text = JSON.stringify(reply(JSON.parse(body)));
      const timestamp = String(Date.now());
      response.writeHead(200, {
        [timestampHeader]: timestamp,
        [signatureHeader]: sign(key, timestamp, text),
      });
      response.end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ask`, seen };
  }

  const script: readonly Step[] = [
    { calls: [{ name: "Write", input: { file_path: "a.txt", content: "x" } }] },
    "Done.",
  ];
  const start = (url: string, onWarning: (text: string) => void = () => undefined) =>
    createSampleRuntime(script, {
      settings: { approvals: { mode: "inbox", webhook: { url, secretEnv: "APPROVAL_KEY" } } },
      env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", APPROVAL_KEY: secret },
      onWarning,
    });

  test("gets each question signed, and its signed answer counts [APR-1]", async () => {
    const receiver = await startReceiver(({ id, digest }) => ({
      question: id,
      digest,
      by: "desk",
      answer: { type: "allow" },
    }));
    await using sample = await start(receiver.url);
    expect((await sample.runtime.run("Go.").result).denials).toEqual([]);
    const [{ body, signature, timestamp } = { body: "", signature: "", timestamp: "" }] = receiver.seen;
    expect(signature).toBe(sign(secret, timestamp, body));
    expect(await sample.runtime.approvals.list()).toMatchObject([
      { state: "used up", answer: { by: "desk", via: "webhook" } },
    ]);
  });

  test("is not believed with another key, another question or another call [APR-2]", async () => {
    const right = ({ id, digest }: { id: string; digest: string }) => ({
      question: id,
      digest,
      answer: { type: "allow" },
    });
    const receivers = [
      await startReceiver(right, "some other key of enough characters"),
      await startReceiver((question) => ({ ...right(question), question: "000000000000" })),
      await startReceiver((question) => ({ ...right(question), digest: "0" })),
      await startReceiver((question) => ({ ...right(question), answer: { type: "allow", scope: "world" } })),
    ];
    for (const { url } of receivers) {
      const failed = Promise.withResolvers<void>();
      await using sample = await start(url, (text) => {
        if (text.includes("could not be settled")) failed.resolve();
      });
      const run = sample.runtime.run("Go.");
      await failed.promise;
      const [approval] = await sample.runtime.approvals.list();
      expect(approval?.state).toBe("waiting");
      await sample.runtime.approvals.answer(approval?.question.id ?? "", { type: "deny" });
      expect((await run.result).denials).toHaveLength(1);
    }
  });

  test("its key reaches no command, server or hook of an agent [APR-2]", async () => {
    const receiver = await startReceiver(() => ({}));
    const hook = { type: "command", command: "env > hook.txt" };
    await using sample = await createSampleRuntime([bash("env > command.txt; true"), "Done."], {
      settings: {
        approvals: { mode: "inbox", webhook: { url: receiver.url, secretEnv: "APPROVAL_KEY" } },
        hooks: { UserPromptSubmit: [{ hooks: [hook] }] },
      },
      env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", APPROVAL_KEY: secret, OTHER: "kept" },
    });
    await sample.runtime.run("Go.", { permissionMode: "bypassPermissions" }).result;
    for (const file of ["command.txt", "hook.txt"]) {
      const seen = readFileSync(sample.workspace.path(file), "utf8");
      expect(seen).toContain("OTHER=kept");
      expect(seen).not.toContain(secret);
    }
  });

  test("answers come as signed requests to `approvals listen`, and others change nothing [APR-1, APR-2]", async () => {
    const stage = await createStage([bash("echo ran >> log"), "Done."]);
    const { place, session } = stage;
    const settings = { approvals: { webhook: { url: "http://127.0.0.1:9/", secretEnv: "APPROVAL_KEY" } } };
    mkdirSync(join(place.home, ".claude"), { recursive: true });
    writeFileSync(join(place.home, ".claude/settings.json"), JSON.stringify(settings));
    const environment = { ...stage.environment, APPROVAL_KEY: secret };
    const address = Promise.withResolvers<string>();
    const stop = Promise.withResolvers<void>();
    const listening = runCommand(place, ["approvals", "listen"], {
      environment,
      watch(out, child) {
        const found = /http:\/\/\S+/.exec(out)?.[0];
        if (found === undefined) return;
        address.resolve(found);
        void stop.promise.then(() => child.kill("SIGINT"));
      },
    });
    const flags = ["--approvals", "wait", "--output-format", "json"];
    const run = stage.retinue(["-p", "Go.", "--session-id", session, ...flags], { APPROVAL_KEY: secret });
    const id = await stage.question();
    const { digest } = JSON.parse((await stage.retinue(["approvals", "show", id, "--json"])).out).approval
      .question;
    const send = async (answer: object, key: string): Promise<number> => {
      const body = JSON.stringify({ question: id, digest, by: "desk", answer });
      const timestamp = String(Date.now());
      const headers = { [timestampHeader]: timestamp, [signatureHeader]: sign(key, timestamp, body) };
      return (await fetch(await address.promise, { method: "POST", headers, body })).status;
    };
    expect(await send({ type: "allow" }, "some other key of enough characters")).toBe(403);
    expect(await send({ type: "allow", scope: "world" }, secret)).toBe(403);
    expect(existsSync(join(place.cwd, "log"))).toBe(false);
    expect(await send({ type: "allow" }, secret)).toBe(200);
    expect(await send({ type: "deny" }, secret)).toBe(403);
    expect(JSON.parse((await run).out)).toMatchObject({ result: "Done.", permission_denials: [] });
    expect(readFileSync(join(place.cwd, "log"), "utf8")).toBe("ran\n");
    stop.resolve();
    expect((await listening).code).toBe(0);
  });

  test("an old answer is a copy and does not count [APR-2]", () => {
    const body = JSON.stringify({ question: "q", digest: "d", answer: { type: "deny" } });
    const signed = (timestamp: string) => ({ timestamp, signature: sign(secret, timestamp, body), secret });
    expect(readSignedAnswer(body, { ...signed("1000"), now: 1000 })).toMatchObject({ question: "q" });
    expect(() => readSignedAnswer(body, { ...signed("1000"), now: 1_000_000 })).toThrow("too long ago");
    expect(() => readSignedAnswer(body, { ...signed("x"), now: 1000 })).toThrow("too long ago");
  });

  test("a project's own file names none [APR-2]", async () => {
    const receiver = await startReceiver(() => ({}));
    await using sample = await createSampleRuntime(script, { trusted: true });
    const approvals = { mode: "inbox", webhook: { url: receiver.url, secretEnv: "PATH" } };
    await sample.workspace.write(".claude/settings.json", JSON.stringify({ approvals }));
    expect((await sample.runtime.run("Go.").result).denials).toHaveLength(1);
    expect(receiver.seen).toEqual([]);
  });
});
