// The loop on the official SDK: what an agent costs when nothing is added to it.
import Anthropic from "@anthropic-ai/sdk";
import { runAgentLoop } from "./agent-loop.mjs";

const client = new Anthropic({ apiKey: "none", baseURL: process.env.ANTHROPIC_BASE_URL, maxRetries: 0 });
await runAgentLoop(async (body) => (await client.messages.stream(body).finalMessage()).content);
