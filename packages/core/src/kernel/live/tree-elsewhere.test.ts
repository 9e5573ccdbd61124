import { becomes } from "@retinue/testing/becomes.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { expect, onTestFinished, test } from "vitest";
import { type AgentEvent, isRunEvent } from "../../protocol/agent-event.ts";
import { openTree, runPrompt } from "../agent-tree.ts";
import { createHostedRuntime } from "../create-runtime.ts";
import { createAnswerFold } from "./live-text.ts";
import { openTreeElsewhere } from "./tree-elsewhere.ts";

/** A session of this process, and the same one as another process sees it through its files. */
async function openBoth(steps: readonly Step[]) {
  const workspace = await createWorkspace();
  const runtime = createHostedRuntime({
    cwd: workspace.project,
    home: `${workspace.root}/home`,
    model: createScriptedModel(steps),
    transcripts: true,
    permissionMode: "acceptEdits",
  });
  const own: AgentEvent[] = [];
  const tree = await openTree({ runtime, session: {}, onEvent: (event) => void own.push(event) });
  onTestFinished(async () => {
    await tree.close();
    await runtime.close();
    await workspace[Symbol.asyncDispose]();
  });
  const { transcripts } = tree.facts.discovered.paths;
  const look = async () => {
    const by = { user: "ada", through: "test" };
    const elsewhere = await openTreeElsewhere({ transcripts, sessionId: tree.sessionId, by });
    onTestFinished(() => elsewhere[Symbol.dispose]());
    const events: AgentEvent[] = [];
    await elsewhere.follow((event) => void events.push(event));
    return { elsewhere, events };
  };
  return { tree, own, look };
}

/** What both are to report of a run in the same order; durations are rounded on disk. */
const shared = (events: readonly AgentEvent[], agentId: string): readonly unknown[] =>
  events.flatMap((event): readonly unknown[] => {
    if (event.agentId !== agentId) return [];
    if (event.type === "assistant-answered") return [[event.type, event.message.content, event.usage]];
    if (event.type === "call-started") return [[event.type, event.call.name]];
    if (event.type === "call-finished") return [[event.type, event.call.name, event.isError, event.content]];
    return event.type === "run-ended" ? [[event.type, event.ending.status, event.ending.reason]] : [];
  });

const write = { name: "Write", input: { file_path: "a.txt", content: "one\n" } };
const child = {
  name: "Agent",
  input: { subagent_type: "general-purpose", description: "look", prompt: "Look around." },
};

test("what another process writes down is read as the events of its tree, and folds to its totals and states [CLI-1, CLI-3]", async () => {
  const { tree, own, look } = await openBoth([
    { text: "I write it.", calls: [write] },
    { calls: [child] },
    { calls: [{ name: "Glob", input: { pattern: "*" } }] },
    "There is one file.",
    "All is done.",
  ]);
  const { elsewhere, events } = await look();
  await runPrompt(tree, { content: "Write a file and look." });
  await becomes(() => events.some(({ type, agentId }) => type === "run-ended" && agentId === "main"));
  const [started] = tree.list();
  const id = started?.id ?? "";
  expect(shared(events, "main")).toEqual(shared(own, "main"));
  await becomes(() => elsewhere.get(id)?.state()?.status === "completed");
  expect(shared(events, id)).toEqual(shared(own, id));
  const { usage, turns, toolUses, agentType, description, callId, parentId, background, lastText } =
    started ?? {};
  expect(elsewhere.list()).toMatchObject([
    { id, usage, turns, toolUses, agentType, description, callId, parentId, background, lastText },
  ]);
  const sums = ({ agents }: ReturnType<typeof tree.totals>) =>
    agents
      .map(({ agentId, status, models, totals }) => ({ agentId, status, models, turns: totals.turns }))
      .toSorted((a, b) => (a.agentId < b.agentId ? -1 : 1));
  expect(sums(elsewhere.totals())).toEqual(sums(tree.totals()));
  // The diff of an edit is there, as in the process that made it.
  const written = events.find((event) => event.type === "call-finished" && event.call.name === "Write");
  expect(written).toMatchObject({ data: { filePath: expect.stringContaining("a.txt") } });
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
  // One that comes later reads the same sums, and is sent nothing of what is over.
  const late = await look();
  expect(sums(late.elsewhere.totals())).toEqual(sums(tree.totals()));
  expect(late.events).toEqual([]);
  await tree.close();
  await becomes(() => late.events.some(({ type }) => type === "closed"));
  expect(late.elsewhere.isOwned).toBe(false);
});

test("an op that another process cannot take is refused with its reason [CLI-3]", async () => {
  const { tree, look } = await openBoth(["Done."]);
  await runPrompt(tree, { content: "Begin." });
  const { elsewhere } = await look();
  await expect(elsewhere.submit("main", { type: "rename", title: "other" })).rejects.toThrow(
    "does not accept rename",
  );
  await tree.close();
  await expect(elsewhere.submit("main", { type: "prompt", content: "More." })).rejects.toThrow(
    "is not running",
  );
});

test("an answer that is interrupted while it is written is shown once, and is over before it counts as lost [CLI-1]", async () => {
  const { tree, look } = await openBoth([
    { text: "said in part, and never more", failure: "stall", after: 12 },
    "Next.",
  ]);
  const { events } = await look();
  const running = runPrompt(tree, { content: "Say it." });
  await becomes(() => events.some(({ type }) => type === "model-streamed"));
  await tree.submit("main", { type: "interrupt" });
  await running;
  await runPrompt(tree, { content: "And now?" });
  await becomes(() => events.some((event) => event.type === "assistant-answered"));
  const fold = createAnswerFold();
  const shown = events.flatMap((event) => {
    if (!isRunEvent(event)) return [];
    fold.onEvent(event);
    if (event.type !== "model-streamed") return [];
    if (event.event.type === "text-delta") return [event.event.text];
    // A block is shown whole where no piece of it was.
    const { event: said } = event;
    const isWhole = said.type === "block-ended" && fold.open?.texts[said.index] === undefined;
    return isWhole && said.block.type === "text" ? [said.block.text] : [];
  });
  expect(shown.join("").split("said in part")).toHaveLength(2);
  expect(shown.at(-1)).toBe("Next.");
});
