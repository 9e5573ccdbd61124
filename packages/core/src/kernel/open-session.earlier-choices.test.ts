import { appendFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { findChoices } from "../journal/session-choices.ts";
import { createRuntime, type Runtime } from "./create-runtime.ts";

interface Stage {
  readonly workspace: Workspace;
  readonly provider: FakeProvider;
  readonly start: () => Runtime;
  readonly transcripts: () => Promise<readonly string[]>;
}

async function createStage(): Promise<Stage> {
  const workspace = await createWorkspace();
  await workspace.write(
    ".claude/agents/scribe.md",
    "---\nname: scribe\ndescription: Writes.\n---\nYOU ARE THE SCRIBE\n",
  );
  const provider = await startFakeProvider({ respond: () => "Yes." });
  const home = join(workspace.root, "home");
  const runtimes: Runtime[] = [];
  onTestFinished(async () => {
    for (const runtime of runtimes) await runtime[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    await workspace[Symbol.asyncDispose]();
  });
  return {
    workspace,
    provider,
    start() {
      const runtime = createRuntime({
        cwd: workspace.project,
        home,
        settingSources: ["user", "project", "local"],
        transcripts: true,
        managedDirectory: join(workspace.root, "managed"),
        env: {
          PATH: process.env["PATH"],
          ANTHROPIC_BASE_URL: provider.url,
          OPENAI_BASE_URL: `${provider.url}/v1`,
        },
      });
      runtimes.push(runtime);
      return runtime;
    },
    async transcripts() {
      const files = await readdir(join(home, ".claude/projects"), { recursive: true });
      return files
        .filter((name) => name.endsWith(".jsonl"))
        .map((name) => join(home, ".claude/projects", name));
    },
  };
}

/** The model and whether it was the scribe, of each request so far. */
function asked({ provider }: Stage) {
  return provider.requests.map(({ body, request }) => [
    body["model"],
    request.system.join("\n").includes("YOU ARE THE SCRIBE"),
  ]);
}

describe("[TRN-3] a session that is continued", () => {
  test.each([
    ["resumed", (id: string) => ({ resume: id })],
    ["continued", () => ({ continue: true })],
    ["copied", (id: string) => ({ resume: id, forkSession: true })],
  ])("keeps its agent and model when it is %s", async (_, again) => {
    const stage = await createStage();
    const first = await stage.start().run("One.", { agent: "scribe", model: "opus" }).result;
    const second = await stage.start().run("Two.", again(first.sessionId)).result;
    await stage.start().run("Three.", { resume: second.sessionId }).result;
    expect(asked(stage)).toEqual(Array(3).fill(["claude-opus-5", true]));
  });

  test("takes what the new call names, and keeps that from then on", async () => {
    const stage = await createStage();
    const { sessionId: resume } = await stage.start().run("One.", { agent: "scribe", model: "opus" }).result;
    await stage.start().run("Two.", { resume, model: "openai-compatible/house" }).result;
    await stage.start().run("Three.", { resume, agent: "" }).result;
    await stage.start().run("Four.", { resume }).result;
    expect(asked(stage)).toEqual([
      ["claude-opus-5", true],
      ["house", true],
      ["house", false],
      ["house", false],
    ]);
  });

  test("does not hold on to what was in settings", async () => {
    const stage = await createStage();
    await stage.workspace.write("../home/.claude/settings.json", '{"model": "opus"}');
    const { sessionId: resume } = await stage.start().run("One.").result;
    await stage.workspace.write("../home/.claude/settings.json", '{"model": "haiku"}');
    await stage.start().run("Two.", { resume }).result;
    expect(asked(stage).map(([model]) => model)).toEqual(["claude-opus-5", "claude-haiku-5-5"]);
  });

  test("is refused when its agent is gone, since it would have other rights, until another is named", async () => {
    const stage = await createStage();
    const { sessionId: resume } = await stage.start().run("One.", { agent: "scribe" }).result;
    await writeFile(stage.workspace.path(".claude/agents/scribe.md"), "");
    await expect(stage.start().open({ resume })).rejects.toMatchObject({
      code: "unknown-agent",
      message: 'The session ran as the agent "scribe", which no longer exists.',
    });
    await stage.start().run("Two.", { resume, agent: "" }).result;
    expect(asked(stage).map(([, isScribe]) => isScribe)).toEqual([true, false]);
  });

  test("writes the choices as lines beside the conversation", async () => {
    const stage = await createStage();
    const { sessionId } = await stage.start().run("One.", { agent: "scribe", model: "opus" }).result;
    const [file = ""] = await stage.transcripts();
    const lines = (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ type }) => type === "agent-setting" || type === "retinue-model")).toEqual([
      { type: "agent-setting", agentSetting: "scribe", sessionId },
      { type: "retinue-model", model: "opus", sessionId },
    ]);
    const said = {
      type: "user",
      message: { role: "user", content: '{"type":"agent-setting","agentSetting":"x"}' },
    };
    const nested = { type: "user", data: { type: "agent-setting", agentSetting: "y" } };
    await appendFile(
      file,
      `${JSON.stringify(said)}\n${JSON.stringify(nested)}\n{"type":"agent-setting","agentS`,
    );
    expect(await findChoices(file)).toEqual({ agent: "scribe", model: "opus" });
    expect(await findChoices(join(file, "nowhere"))).toEqual({});
  });
});
