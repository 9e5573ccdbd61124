import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runInProcess } from "./run-command.ts";

const agent = (fields: string) => `---\nname: finder\ndescription: Finds.\n${fields}\n---\nFINDER PROMPT\n`;

/** A main agent that sends out a finder once, over HTTP with the built command. */
async function runFinder(fields: string, flags: readonly string[] = []) {
  const place = createPlace();
  const call = { name: "Agent", input: { description: "find", prompt: "Find it.", subagent_type: "finder" } };
  const steps: Step[] = [{ match: "FINDER PROMPT", text: "Found." }, { calls: [call] }, "Done."];
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  place.write(".claude/agents/finder.md", agent(fields));
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    OPENAI_BASE_URL: `${provider.url}/v1`,
    OPENAI_API_KEY: "x",
  };
  const finished = await runInProcess(place, ["-p", "go", ...flags], { environment });
  const plan = await runInProcess(place, ["plan", "finder", "--json", ...flags], { environment });
  const of = (isFinder: boolean) =>
    provider.requests.filter(({ request }) => request.system.join().includes("FINDER") === isFinder);
  const kinds = ({ body }: { readonly body: Record<string, unknown> }) =>
    (Array.isArray(body["tools"]) ? body["tools"] : []).map((tool) => String(tool.type ?? tool.name));
  const listing = of(false)[0]?.request.tools.find(({ name }) => name === "Agent")?.description;
  return {
    finished,
    child: kinds(of(true)[0] ?? { body: {} }),
    main: kinds(of(false)[0] ?? { body: {} }),
    reported: JSON.stringify(of(false).at(-1)?.request.messages.at(-1)),
    planned: JSON.parse(plan.out).plan.tools.map(({ name }: { name: string }) => name),
    listed: /- finder:.*/.exec(listing ?? "")?.[0],
  };
}

const search = "web_search_20250305";
const allowed = ["--allowedTools", "WebSearch"];

describe("the provider's web search for a child", () => {
  test("is there where its list names it and a rule allows it, as plan and listing say [TLS-1, BLT-6]", async () => {
    const { child, main, planned, listed, reported } = await runFinder("tools: Read, WebSearch", allowed);
    expect(child).toEqual(["Read", search]);
    expect(main).toContain(search);
    expect(planned).toEqual(["Read", "WebSearch"]);
    expect(listed).toContain("(Tools: Read, WebSearch)");
    expect(reported).not.toContain("not available");
  });

  test("is inherited without a list [TLS-1]", async () => {
    expect((await runFinder("model: inherit", allowed)).child).toContain(search);
  });

  test("is not promised where no allow rule matches, and the parent is notified why [TLS-1, TLS-10]", async () => {
    const { child, planned, listed, reported } = await runFinder("tools: Read, WebSearch");
    expect(child).toEqual(["Read"]);
    expect(planned).toEqual(["Read"]);
    expect(listed).toContain("(Tools: Read)");
    expect(reported).toContain("`WebSearch` is not available to this agent: no allow rule matches");
  });

  test("is not promised for a model that has none [MDL-3, TLS-1]", async () => {
    const fields = "tools: Read, WebSearch\nmodel: openai-compatible/scripted";
    const { child, planned, reported } = await runFinder(fields, allowed);
    expect(child).toEqual(["function"]);
    expect(planned).toEqual(["Read"]);
    expect(reported).toContain("the model scripted has no web search of its own");
  });
});
