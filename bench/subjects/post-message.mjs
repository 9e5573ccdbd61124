// One streamed request over node:http, read with as little as the job allows: the floor that every program stands on.
import { Agent, request } from "node:http";

const target = new URL("/v1/messages", process.env.ANTHROPIC_BASE_URL);
const agent = new Agent({ keepAlive: true });
const headers = {
  "content-type": "application/json",
  "x-api-key": "none",
  "anthropic-version": "2023-06-01",
};

/** Sends the body of a request and gives the content of the answer. */
export function postMessage(body) {
  return new Promise((resolve, reject) => {
    const outgoing = request(target, { method: "POST", agent, headers }, (response) => {
      const content = [];
      let rest = "";
      response.setEncoding("utf8");
      response.on("error", reject);
      response.on("data", (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line.startsWith("data:")) take(JSON.parse(line.slice(5)), content);
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(content.map(finish));
        else reject(new Error(`The provider answered with ${response.statusCode}.`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify({ ...body, stream: true }));
  });
}

function take({ type, index, content_block: block, delta }, content) {
  if (type === "content_block_start") content[index] = { ...block, json: "" };
  if (type !== "content_block_delta") return;
  if (delta.type === "text_delta") content[index].text += delta.text;
  if (delta.type === "input_json_delta") content[index].json += delta.partial_json;
}

function finish({ json, ...block }) {
  return block.type === "tool_use" ? { ...block, input: JSON.parse(json || "{}") } : block;
}
