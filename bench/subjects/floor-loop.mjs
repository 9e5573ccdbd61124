// The same loop on plain node:http.
import { runAgentLoop } from "./agent-loop.mjs";
import { postMessage } from "./post-message.mjs";

await runAgentLoop(postMessage);
