import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createModelFactory } from "../models/model-factory.ts";
import { offlineLabel } from "../models/offline/offline-answer.ts";
import { createCoolDowns } from "../models/request-gate.ts";
import { chooseModel } from "./choose-model.ts";
import { createRuntime, type Runtime } from "./create-runtime.ts";
import { normalizeRuntimeOptions } from "./options/normalize-runtime-options.ts";
import type { RuntimeOptions } from "./options/runtime-options.ts";
import { createRuntimeSource } from "./runtime-source.ts";

/** A closed port on this machine, so that nothing here depends on what else runs on it. */
const nowhere = "http://127.0.0.1:1/v1";

interface Stage {
  readonly runtime: Runtime;
  readonly server: FakeProvider;
  readonly options: RuntimeOptions;
  readonly project: string;
}

async function createStage(
  script: readonly Step[],
  { env: environment = {}, ...options }: RuntimeOptions = {},
): Promise<Stage> {
  const workspace = await createWorkspace();
  const server = await startFakeProvider({ script });
  const all: RuntimeOptions = {
    cwd: workspace.project,
    home: `${workspace.root}/home`,
    settingSources: ["user", "project", "local"],
    transcripts: true,
    managedDirectory: `${workspace.root}/managed`,
    env: {
      PATH: process.env["PATH"],
      OLLAMA_HOST: nowhere,
      LMSTUDIO_BASE_URL: `${server.url}/v1`,
      ...environment,
    },
    ...options,
  };
  const runtime = createRuntime(all);
  onTestFinished(async () => {
    await runtime[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await workspace[Symbol.asyncDispose]();
  });
  return { runtime, server, options: all, project: workspace.project };
}

describe("[MDL-4] with no key and no model named", () => {
  test("a server on this machine answers, and the plan shows which and why", async () => {
    const { runtime, server } = await createStage(["From here."]);
    await using session = await runtime.open();
    expect(session.model).toMatchObject({ provider: "lmstudio", id: "scripted" });
    expect(session.plan.model).toEqual({
      value: "scripted",
      from: `no key is set and LM Studio was found at ${server.url}`,
    });
    expect(session.plan.notes).toEqual([
      `No key is set and LM Studio was found at ${server.url}, so lmstudio/scripted answers. RETINUE_LOCAL_MODELS=0 disables this.`,
    ]);
    expect((await session.prompt("Hello?").result).text).toBe("From here.");
  });

  test("children that name a model of Claude run on it too, not on the offline model", async () => {
    const { runtime, server } = await createStage([
      {
        calls: [{ name: "Agent", input: { description: "Look", prompt: "Look.", subagent_type: "looker" } }],
      },
      "Seen.",
      "Done.",
    ]);
    runtime.register({ name: "looker", description: "Looks.", prompt: "Look.", model: "haiku" });
    const { text } = await runtime.run("Send one.").result;
    expect(text).toBe("Done.");
    expect(server.requests.map(({ path }) => path)).toEqual(Array(3).fill("/v1/chat/completions"));
    server.finish();
  });

  test.each<[string, RuntimeOptions["env"], string | undefined]>([
    ["RETINUE_LOCAL_MODELS is 0", { RETINUE_LOCAL_MODELS: "0" }, undefined],
    ["the variable names one", { ANTHROPIC_MODEL: "opus" }, undefined],
  ])("it is not looked for when %s", async (_, environment, model) => {
    const { runtime } = await createStage([], environment === undefined ? {} : { env: environment });
    await expect(runtime.open(model === undefined ? {} : { model })).rejects.toMatchObject({
      code: "no-credentials",
    });
  });

  test("it is not looked for when the offline model is named, which then answers", async () => {
    const { runtime } = await createStage([]);
    await using session = await runtime.open({ model: "offline" });
    expect(session.model.provider).toBe("offline");
    expect(session.plan.notes).toEqual([]);
  });

  test.each([
    "sonnet",
    "sonet",
    "gpt-5",
  ])("a run that names %s fails and does not answer offline", async (model) => {
    const { runtime } = await createStage([], { env: {} });
    await expect(runtime.run("Hi.", { model }).result).rejects.toMatchObject({
      code: "no-credentials",
      message: expect.stringContaining(model),
    });
  });

  test("a key that is set is used immediately, and no server on this machine is asked", async () => {
    let asked = 0;
    const listening = createServer(() => {
      asked += 1;
    });
    await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      listening.closeAllConnections();
      listening.close();
    });
    const address = listening.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const { runtime } = await createStage([], {
      env: {
        ANTHROPIC_API_KEY: "key",
        OLLAMA_HOST: `127.0.0.1:${port}`,
        LMSTUDIO_BASE_URL: `http://127.0.0.1:${port}/v1`,
      },
    });
    await using session = await runtime.open();
    expect(session.model.provider).toBe("anthropic");
    expect(asked).toBe(0);
  });

  test("a found model that settings deny does not answer, and a person who tries the demo is notified", async () => {
    const { runtime } = await createStage([], {
      settings: JSON.stringify({ deniedModels: ["lmstudio/scripted"] }),
    });
    await expect(runtime.open()).rejects.toMatchObject({ code: "no-credentials" });
    await using session = await runtime.open({ offlineDemo: true });
    expect(session.model.provider).toBe("offline");
    expect(session.plan.notes).toEqual([expect.stringContaining("but the offline model answers")]);
  });

  test("a found server whose package is not installed leaves the offline model, and the command is shown", async () => {
    const { server, options } = await createStage([]);
    await using source = createRuntimeSource(normalizeRuntimeOptions(options).setup);
    const facts = await source.gather();
    const clock = facts.clock;
    const models = createModelFactory({
      environment: facts.environment,
      coolDowns: createCoolDowns(clock, () => 0),
      clock,
      random: () => 0,
      load: async (name) => {
        throw Object.assign(new Error(`Cannot find package '${name}'`), { code: "ERR_MODULE_NOT_FOUND" });
      },
    });
    const { model, notes } = await chooseModel({ ...facts, models }, {}, undefined);
    expect(model.facts.provider).toBe("offline");
    expect(notes).toEqual([
      `LM Studio was found at ${server.url}, but the offline model answers: The package @ai-sdk/openai-compatible for lmstudio is not installed. Run: npm install @ai-sdk/openai-compatible`,
    ]);
  });

  test("without a server a run, its text, its events and a child fail with one sentence, and nothing answers", async () => {
    const { runtime } = await createStage([], { env: { LMSTUDIO_BASE_URL: nowhere } });
    const refused = { code: "no-credentials", message: "No API key is configured." };
    const run = runtime.run("what is here");
    await expect(run.result).rejects.toMatchObject(refused);
    await expect(run.text).rejects.toMatchObject(refused);
    await expect(runtime.spawn("Explore", "what is here").result).rejects.toMatchObject(refused);
    await expect(runtime.open()).rejects.toMatchObject(refused);
  });

  test("the offline model answers where it is named, and every answer says what it is", async () => {
    const { runtime } = await createStage([], { env: { LMSTUDIO_BASE_URL: nowhere } });
    const text = await runtime.run("what is here", { model: "offline" }).text;
    expect(text.startsWith(offlineLabel)).toBe(true);
  });
});

describe("[MDL-3] [PRM-11] packages of providers", () => {
  const fakePackage = `
    exports.createAcme = () => ({
      languageModel: (modelId) => ({ specificationVersion: "v2", provider: "acme", modelId, doStream: async () => ({}) }),
    });
    globalThis.loadedAcme = (globalThis.loadedAcme ?? 0) + 1;
  `;

  async function createProject(trusted: boolean): Promise<Runtime> {
    const { runtime, project } = await createStage([], { trusted });
    const folder = join(project, "node_modules/@ai-sdk/acme");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), '{"name": "@ai-sdk/acme", "main": "index.cjs"}');
    await writeFile(join(folder, "index.cjs"), fakePackage);
    return runtime;
  }

  test("those of the project are found in a trusted folder", async () => {
    const runtime = await createProject(true);
    await using session = await runtime.open({ model: "acme/large" });
    expect(session.model).toMatchObject({ provider: "acme", id: "large" });
  });

  test("one that is only for import is found too", async () => {
    const { runtime, project } = await createStage([], { trusted: true });
    const folder = join(project, "node_modules/@ai-sdk/acme");
    await mkdir(folder, { recursive: true });
    const exported = { ".": { types: "./index.d.ts", import: "./index.mjs" } };
    await writeFile(
      join(folder, "package.json"),
      JSON.stringify({ name: "@ai-sdk/acme", exports: exported }),
    );
    await writeFile(
      join(folder, "index.mjs"),
      fakePackage.replace("exports.createAcme", "export const createAcme"),
    );
    await using session = await runtime.open({ model: "acme/large" });
    expect(session.model.provider).toBe("acme");
  });

  test("those of the project are not loaded in a folder that is not trusted", async () => {
    const before = Reflect.get(globalThis, "loadedAcme");
    const runtime = await createProject(false);
    await expect(runtime.open({ model: "acme/large" })).rejects.toMatchObject({
      code: "provider-package-missing",
    });
    expect(Reflect.get(globalThis, "loadedAcme")).toBe(before);
  });
});
