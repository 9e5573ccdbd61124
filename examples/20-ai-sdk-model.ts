// A model and a tool of the AI SDK, as they are. With a key: `import { openai } from "@ai-sdk/openai"` and `openai("gpt-5")`.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { tool } from "ai";
import { createRuntime } from "retinue";
import { startFakeProvider } from "retinue/testing";
import { z } from "zod";

const provider = await startFakeProvider({
  script: [{ calls: [{ name: "weather", input: { city: "Oslo" } }] }, "It snows in Oslo."],
});
const model = createOpenAICompatible({ name: "local", baseURL: `${provider.url}/v1` })("any");
const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: snow`,
});

const runtime = createRuntime({ model, tools: { weather }, allowedTools: ["weather"] });
const run = runtime.run("How is the weather in Oslo?");
console.log(await run.text, (await run.result).totals.toolUses, "call");
await runtime.close();
await provider.close();
