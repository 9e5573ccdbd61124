// Only sends one request over plain node:http.
import { postMessage } from "./post-message.mjs";

const messages = [{ role: "user", content: process.argv[2] }];
await postMessage({ model: "claude-sonnet-4-5", max_tokens: 1024, messages });
