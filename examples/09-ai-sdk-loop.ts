// A loop over a model of the Vercel AI SDK, whose model gets subagents. With the package `ai` the loop is one call:
// generateText({ model, tools: toAiSdkTools(await runtime.tools()), stopWhen: stepCountIs(20), prompt }).
import { fileURLToPath } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3Prompt, LanguageModelV3ToolResultPart } from "@ai-sdk/provider";
import { createRuntime } from "retinue";
import { toAiSdkTools } from "retinue/model";
import { createScriptedModel, startFakeProvider } from "retinue/testing";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const look = {
  description: "count the agents",
  prompt: "How many agents are there?",
  subagent_type: "Explore",
};

const provider = await startFakeProvider({
  script: [{ calls: [{ name: "Agent", input: look }] }, "Five agents work here."],
});
// The main agent asks one model, its children another.
const model = createOpenAICompatible({ name: "local", baseURL: `${provider.url}/v1` })("any");
const runtime = createRuntime({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  model: createScriptedModel(["There are five."]),
});

const tools = toAiSdkTools(await runtime.tools());
const prompt: LanguageModelV3Prompt = [
  { role: "user", content: [{ type: "text", text: "Who works here?" }] },
];
while (true) {
  const { content } = await model.doGenerate({
    prompt,
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({
      type: "function",
      name,
      description,
      inputSchema: inputSchema.jsonSchema,
    })),
  });
  const calls = content.filter((part) => part.type === "tool-call");
  if (calls.length === 0) {
    console.log("says", content.map((part) => (part.type === "text" ? part.text : "")).join(""));
    break;
  }
  const results = calls.map(
    async ({ toolCallId, toolName, input }): Promise<LanguageModelV3ToolResultPart> => {
      const value =
        (await tools[toolName]?.execute(JSON.parse(input), { toolCallId })) ?? "There is no such tool.";
      console.log("hears", value.split("\n")[0]);
      return { type: "tool-result", toolCallId, toolName, output: { type: "text", value } };
    },
  );
  prompt.push(
    {
      role: "assistant",
      content: calls.map(({ toolCallId, toolName, input }) => ({
        type: "tool-call",
        toolCallId,
        toolName,
        input: JSON.parse(input),
      })),
    },
    { role: "tool", content: await Promise.all(results) },
  );
}
await runtime.close();
await provider.close();
