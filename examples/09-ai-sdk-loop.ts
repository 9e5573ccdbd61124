// A loop of the Vercel AI SDK whose model gets subagents: the main agent asks one model, its children another.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";
import { createRuntime } from "retinue";
import { toAiSdkTools } from "retinue/model";
import { createScriptedModel, startFakeProvider } from "retinue/testing";

const look = { description: "count", prompt: "How many agents are there?", subagent_type: "Explore" };
const provider = await startFakeProvider({
  script: [{ calls: [{ name: "Agent", input: look }] }, "Five agents work here."],
});
const runtime = createRuntime({ model: createScriptedModel(["There are five."]) });

const { text, steps } = await generateText({
  model: createOpenAICompatible({ name: "local", baseURL: `${provider.url}/v1` })("any"),
  tools: toAiSdkTools(await runtime.loopTools()),
  stopWhen: stepCountIs(20),
  prompt: "Who works here?",
});
for (const { toolResults } of steps)
  for (const { output } of toolResults) console.log("hears", String(output).split("\n")[0]);
console.log("says", text);
await runtime.close();
await provider.close();
