import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { createFakeMcpServer, type FakeMcpTool } from "@retinue/testing/fake-mcp-server.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { createWorkplace, type Workplace } from "./workplace.ts";

const sizes = [10, 100, 500];
/** All tools in every request, ours behind the others once found, and loaded by the provider where they were found. */
const ways = [
  { name: "all", mode: "false" },
  { name: "search", mode: "auto:0" },
  { name: "deferred", mode: "true" },
] as const;
/** What the first request may take with 500 tools, of what it takes with all of them in it. */
const most = 0.1;

/** Tokens of the first request and of a run that finds and calls two tools, as the fake provider counts by the real one's rules. */
export async function benchToolSearch(): Promise<boolean> {
  console.log("\nTokens with many MCP tools: first request, and 5 requests that find and call two tools");
  console.log("  tools  way       first request    all requests    read from the cache    written to it");
  let isGood = true;
  for (const size of sizes) {
    let all = 0;
    for (const way of ways) {
      using place = createWorkplace();
      const { first, total, read, written } = await measure(place, size, way.mode);
      if (way.name === "all") all = first;
      isGood &&= way.name === "all" || size < 500 || first <= all * most;
      const share = `${((read / total) * 100).toFixed(1)} %`;
      const columns = [String(first).padStart(12), String(total).padStart(15), share.padStart(22)];
      console.log(
        `  ${String(size).padStart(5)}  ${way.name.padEnd(8)} ${columns.join(" ")} ${String(written).padStart(16)}`,
      );
    }
  }
  console.log(
    `  first request with 500 tools at most ${most * 100} % of all in it: ${isGood ? "ok" : "TOO MUCH"}`,
  );
  return isGood;
}

async function measure(place: Workplace, size: number, mode: string) {
  await using provider = await startFakeProvider({ script: mode === "false" ? called : searched });
  await using runtime = createRuntime({
    cwd: place.project,
    home: place.home,
    env: { ...place.environment(provider.url), ENABLE_TOOL_SEARCH: mode },
    canUseTool: async () => ({ behavior: "allow" }),
    mcpServers: Object.fromEntries(
      serversOf(size).map(([name, tools]) => [name, { type: "sdk", instance: createFakeMcpServer(tools) }]),
    ),
  });
  const { status } = await runtime.run("Open an issue and post it.", { model: "claude-sonnet-4-5" }).result;
  if (status !== "completed") throw new Error(`The run ended with ${status}.`);
  return countTokens(provider);
}

function countTokens({ requests }: FakeProvider) {
  const counts = requests.map(({ usage }) => {
    const { inputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
    return { total: inputTokens + cacheReadTokens + cacheWriteTokens, cacheReadTokens, cacheWriteTokens };
  });
  const sum = (key: "total" | "cacheReadTokens" | "cacheWriteTokens") =>
    counts.reduce((before, count) => before + count[key], 0);
  return {
    first: counts[0]?.total ?? 0,
    total: sum("total"),
    read: sum("cacheReadTokens"),
    written: sum("cacheWriteTokens"),
  };
}

const call = (name: string): Step => ({ calls: [{ name, input: { title: "A title" } }] });
const find = (query: string): Step => ({ calls: [{ name: "ToolSearch", input: { query } }] });
const [first, second] = ["mcp__server0__create_0", "mcp__server1__update_1"] as const;
const searched: readonly Step[] = [
  find(`select:${first}`),
  call(first),
  find(`select:${second}`),
  call(second),
  "Done.",
];
/** As many requests, without a search. */
const called: readonly Step[] = [call(first), call(first), call(second), call(second), "Done."];

/** Tools as servers have them: a paragraph, and five parameters with a sentence each. */
function serversOf(count: number): readonly (readonly [string, readonly FakeMcpTool[]])[] {
  const servers = new Map<string, FakeMcpTool[]>();
  for (let at = 0; at < count; at += 1) {
    const server = `server${at % 10}`;
    servers.set(server, [...(servers.get(server) ?? []), toolOf(at)]);
  }
  return [...servers];
}

const verbs = ["create", "update", "list", "delete", "search"];
const parameters = ["title", "body", "labels", "assignee", "project"];

function toolOf(at: number): FakeMcpTool {
  const verb = verbs[at % verbs.length] ?? "";
  const sentence = `Lets you ${verb} entries of collection ${at}, and answers with the entry as it is afterwards. `;
  return {
    name: `${verb}_${at}`,
    description: sentence.repeat(3).trim(),
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(
        parameters.map((name) => [
          name,
          { type: "string", description: `The ${name} of the entry, as people read it.` },
        ]),
      ),
      required: ["title"],
    },
    call: () => "done",
  };
}
