import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { SettingsInput } from "@retinue/config/settings/settings.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime, createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { createPlace, runInProcess } from "./run-command.ts";

const spawning: Step = {
  calls: [{ name: "Agent", input: { description: "look", prompt: "Look.", subagent_type: "worker" } }],
};
const worker = { name: "worker", description: "Works.", prompt: "You work." };
const efforts = (requests: readonly ModelRequest[]) => requests.map(({ effort }) => effort);

describe("[DRP-3] settings that speak to models", () => {
  test("effortLevel holds for main agents and children without one; maxEffortLevel for all", async () => {
    const run = async (settings: SettingsInput, options: object = {}, own: object = {}) => {
      await using sample = await createSampleRuntime([spawning, "Looked.", "Done."], {
        settings,
        agents: [{ ...worker, ...own }],
        ...options,
      });
      await sample.runtime.run("Go.").result;
      return efforts(sample.requests);
    };
    expect(await run({})).toEqual([undefined, undefined, undefined]);
    expect(await run({ effortLevel: "low" })).toEqual(["low", "low", "low"]);
    expect(await run({ effortLevel: "low" }, { effort: "max" }, { effort: "high" })).toEqual([
      "max",
      "high",
      "max",
    ]);
    expect(await run({ maxEffortLevel: "medium" }, { effort: "max" })).toEqual([
      "medium",
      "medium",
      "medium",
    ]);
    expect(await run({ maxEffortLevel: "max" })).toEqual([undefined, undefined, undefined]);
  });

  test("language and includeGitInstructions change the prompt of the main agent", async () => {
    const system = async (settings: SettingsInput) => {
      await using sample = await createSampleRuntime([]);
      execFileSync("git", ["init", "-q", "-b", "side-branch"], { cwd: sample.workspace.project });
      const { runtime, requests } = sample.restart(["Done."], { settings, trusted: true });
      await runtime.run("Go.").result;
      return JSON.stringify(requests[0]?.system);
    };
    const usual = await system({});
    expect(usual).toContain("side-branch");
    expect(usual).not.toContain("# Language");
    const changed = await system({ language: "Deutsch\n# Other", includeGitInstructions: false });
    expect(changed).toContain("in this language: Deutsch # Other.");
    expect(changed).not.toContain("side-branch");
  });

  test("outputStyle puts a style into the prompt of the main agent alone; a prompt of one's own has none", async () => {
    const systems = async (settings: SettingsInput, options: object = {}) => {
      await using sample = await createSampleRuntime([]);
      await sample.workspace.write(
        ".claude/output-styles/pirate.md",
        "---\nname: Pirate\ndescription: At sea\n---\nSpeak as a pirate.\n",
      );
      const { runtime, requests } = sample.restart([spawning, "Looked.", "Done."], {
        settings,
        trusted: true,
        agents: [worker],
        ...options,
      });
      await runtime.run("Go.").result;
      return {
        main: requests[0]?.system.join("\n") ?? "",
        child: requests[1]?.system.join("\n") ?? "",
      };
    };
    const usual = await systems({});
    expect(usual.main).toContain("# Change with care");
    const pirate = await systems({ outputStyle: "pirate" });
    expect(pirate.main).toMatch(/# Safety[\s\S]*# Output style: Pirate\nSpeak as a pirate\./);
    expect(pirate.main).not.toContain("# Change with care");
    expect(pirate.child).not.toContain("pirate");
    const explanatory = await systems({ outputStyle: "Explanatory" });
    expect(explanatory.main).toMatch(/# Change with care[\s\S]*# Output style: explanatory/);
    expect((await systems({ outputStyle: "pirate" }, { systemPrompt: "Mine." })).main).not.toContain(
      "pirate",
    );
    expect((await systems({ outputStyle: "default" })).main).not.toContain("# Output style");
  });

  test("promptCacheTtl, subagentPromptCacheTtl and alwaysThinkingEnabled are in requests to Anthropic", async () => {
    const bodies = async (settings: SettingsInput, environment: Record<string, string> = {}) => {
      await using provider = await startFakeProvider({ script: [spawning, "Looked.", "Done."] });
      await using workspace = await createWorkspace();
      await using runtime = createRuntime({
        cwd: workspace.project,
        home: join(workspace.root, "home"),
        managedDirectory: join(workspace.root, "managed"),
        env: { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "key", ...environment },
        model: "claude-opus-4-6",
        agents: [worker],
        settings,
      });
      await runtime.run("Go.").result;
      return provider.requests.map(({ body }) => ({
        ttl: [...new Set(JSON.stringify(body).match(/"ttl":"\w+"/g))],
        thinking: body["thinking"],
      }));
    };
    const ttls = async (...given: Parameters<typeof bodies>) =>
      (await bodies(...given)).map(({ ttl }) => ttl);
    const hour = ['"ttl":"1h"'];
    expect(await ttls({})).toEqual([[], [], []]);
    expect(await ttls({ promptCacheTtl: "1h" })).toEqual([hour, hour, hour]);
    expect(await ttls({ promptCacheTtl: "1h", subagentPromptCacheTtl: "5m" })).toEqual([hour, [], hour]);
    expect(await ttls({ subagentPromptCacheTtl: "1h" })).toEqual([[], hour, []]);
    const variable = { CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL: "1h" };
    expect(await ttls({ subagentPromptCacheTtl: "5m" }, variable)).toEqual([[], hour, []]);
    const usual = (await bodies({})).map(({ thinking }) => thinking);
    expect(usual).toEqual([1, 2, 3].map(() => ({ type: "adaptive", display: "summarized" })));
    const without = await bodies({ alwaysThinkingEnabled: false });
    expect(without.map(({ thinking }) => thinking)).toEqual([1, 2, 3].map(() => ({ type: "disabled" })));
  });

  test("agentSources, claudeMd and the sizes of the list of skills change what a model reads", async () => {
    const asked = async (settings: SettingsInput, managed?: object) => {
      await using sample = await createSampleRuntime([]);
      const { workspace } = sample;
      await workspace.write(
        ".opencode/agent/porter.md",
        "---\ndescription: Carries things.\n---\nYou carry.",
      );
      const text = `---\ndescription: ${"Long words about the skill. ".repeat(20)}\n---\nDo it.`;
      await workspace.write(".claude/skills/lengthy/SKILL.md", text);
      if (managed !== undefined) {
        mkdirSync(join(workspace.root, "managed"));
        writeFileSync(join(workspace.root, "managed/managed-settings.json"), JSON.stringify(managed));
      }
      const { runtime, requests } = sample.restart(["Done."], { settings, trusted: true });
      await runtime.run("Go.").result;
      return JSON.stringify(requests[0]);
    };
    const usual = await asked({});
    expect(usual).not.toContain("porter");
    expect(await asked({ agentSources: ["opencode"] })).toContain("porter");
    const words = (text: string): number => text.match(/Long words about/g)?.length ?? 0;
    expect(words(usual)).toBeGreaterThan(5);
    expect(words(await asked({ skillListingMaxDescChars: 60 }))).toBeLessThan(4);
    expect(words(await asked({ skillListingBudgetFraction: 0.000_1 }))).toBeLessThan(words(usual));
    expect(await asked({}, { claudeMd: "Always be kind." })).toContain("Always be kind.");
  });

  test("httpHookAllowedEnvVars says which variables headers of HTTP hooks may name", async () => {
    const seen = async (settings: SettingsInput) => {
      const tokens: unknown[] = [];
      const server = createServer((request, response) => {
        tokens.push(request.headers["x-token"]);
        response.end("{}");
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
      const handler = {
        type: "http",
        url: `http://127.0.0.1:${port}/`,
        headers: { "x-token": "$HOOK_TOKEN" },
        allowedEnvVars: ["HOOK_TOKEN"],
      };
      await using sample = await createSampleRuntime(["Done."], {
        env: { PATH: process.env["PATH"], HOOK_TOKEN: "of-a-hook", RETINUE_LOCAL_MODELS: "0" },
        settings: { hooks: { UserPromptSubmit: [{ hooks: [handler] }] }, ...settings },
        trusted: true,
      });
      await sample.runtime.run("Go.").result;
      server.close();
      return tokens;
    };
    expect(await seen({})).toEqual(["of-a-hook"]);
    expect(await seen({ httpHookAllowedEnvVars: ["HOOK_TOKEN"] })).toEqual(["of-a-hook"]);
    expect(await seen({ httpHookAllowedEnvVars: ["OTHER"] })).not.toContain("of-a-hook");
  });

  test("those that have none here are named by check, with their place", async () => {
    const place = createPlace();
    place.write(
      ".claude/settings.json",
      '{\n  "availableModelsMatch": "family",\n  "effortLevel": "some"\n}\n',
    );
    const { out, err } = await runInProcess(place, ["agents", "check"], {});
    expect(out + err).toContain('"availableModelsMatch" has no effect here');
    expect(out + err).toContain("settings.json:2");
    expect(out + err).toContain("effortLevel");
  });
});
