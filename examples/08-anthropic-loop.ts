// A loop of one's own over the Anthropic SDK, whose model gets subagents. A server on this machine plays the provider.
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { createRuntime } from "retinue";
import { toAnthropicTools } from "retinue/model";
import { startFakeProvider } from "retinue/testing";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const ask = (task: string) => ({
  name: "Agent",
  input: { description: task, prompt: `TASK ${task}`, subagent_type: "Explore" },
});

const provider = await startFakeProvider({
  script: [
    { match: "You lead", calls: [ask("count the agents"), ask("find the settings")] },
    { match: "TASK count", text: "There are five agents." },
    { match: "TASK find", text: "The settings are in .claude/settings.json." },
    { match: "You lead", text: "Five agents, one settings file." },
  ],
});
const env = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "none" };
const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  env,
});

const client = new Anthropic({ baseURL: provider.url, apiKey: "none" });
const agents = toAnthropicTools(await runtime.loopTools());
console.log("offers", agents.definitions.map(({ name }) => name).join(", "));

const messages: Anthropic.MessageParam[] = [{ role: "user", content: "What is in this project?" }];
while (true) {
  const { content, stop_reason } = await client.messages.create({
    model: "claude-sonnet-5",
    max_tokens: 1000,
    system: "You lead.",
    tools: agents.definitions,
    messages,
  });
  messages.push({ role: "assistant", content });
  if (stop_reason !== "tool_use") {
    console.log("says", content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    break;
  }
  const results = await agents.answer(content);
  for (const { content: text } of results) console.log("hears", text.split("\n")[0]);
  messages.push({ role: "user", content: results });
}
await runtime.close();
await provider.close();
