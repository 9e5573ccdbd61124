// Only imports the official SDK and sends one request.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: "none", baseURL: process.env.ANTHROPIC_BASE_URL, maxRetries: 0 });
const messages = [{ role: "user", content: process.argv[2] }];
await client.messages.stream({ model: "claude-sonnet-4-5", max_tokens: 1024, messages }).finalMessage();
