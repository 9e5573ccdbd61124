// The smallest loop that does the job of an agent with helpers; how a request is sent is given to it.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

const cache = { cache_control: { type: "ephemeral" } };
const system = [{ type: "text", text: "You are an agent that reads files. ".repeat(240), ...cache }];
const readTool = {
  name: "Read",
  description: "Reads a text file.",
  input_schema: { type: "object", properties: { file_path: { type: "string" } }, required: ["file_path"] },
};
const writeTool = {
  name: "Write",
  description: "Writes a text file.",
  input_schema: {
    type: "object",
    properties: { file_path: { type: "string" }, content: { type: "string" } },
    required: ["file_path", "content"],
  },
};
const agentTool = {
  name: "Agent",
  description: "Hands work to another agent.",
  input_schema: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
};

/** Works through the prompt of the command line. `send` takes the body of a request and gives the content of the answer. */
export async function runAgentLoop(send) {
  const starts = [];

  async function converse(prompt, tools) {
    const messages = [{ role: "user", content: [{ type: "text", text: prompt }] }];
    for (;;) {
      starts.push(performance.now());
      const newest = messages.at(-1).content.at(-1);
      newest.cache_control = cache.cache_control;
      const content = await send({ model: "claude-sonnet-4-5", max_tokens: 8192, system, tools, messages });
      delete newest.cache_control;
      messages.push({ role: "assistant", content });
      const calls = content.filter(({ type }) => type === "tool_use");
      if (calls.length === 0) return content[0].text;
      messages.push({ role: "user", content: await Promise.all(calls.map(run)) });
    }
  }

  async function run({ id, name, input }) {
    return { type: "tool_result", tool_use_id: id, content: await answer(name, input) };
  }

  async function answer(name, input) {
    if (name === "Agent") return converse(input.prompt, [readTool]);
    if (name === "Read") return readFile(input.file_path, "utf8");
    await mkdir(dirname(input.file_path), { recursive: true });
    await writeFile(input.file_path, input.content);
    return "written";
  }

  const text = await converse(process.argv[2], [agentTool, readTool, writeTool]);
  console.log(JSON.stringify({ text: text.slice(0, 100), starts }));
}
