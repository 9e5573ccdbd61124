import { execFileSync } from "node:child_process";
import { builtinWorkflows } from "@retinue/config/workflows/builtin-workflows.ts";
import { readWorkflowScript } from "@retinue/config/workflows/read-workflow-script.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { readProjectFile } from "../project-files.ts";

const blocks = [...readProjectFile("docs/workflow-cookbook.md").matchAll(/```js\n([\s\S]*?)```/g)].map(
  ([, text = ""]) => {
    const read = readWorkflowScript(text);
    return { name: read.type === "script" ? read.meta.name : `broken: ${read.problem.message}`, text };
  },
);

type Answer = (prompt: string) => StepAnswer | string | object;

/** A runtime whose agents answer by what the script asked of them: an object is handed in by the schema. */
async function openSample(answer: Answer): Promise<SampleRuntime & { readonly prompts: string[] }> {
  const prompts: string[] = [];
  const sample = await createSampleRuntime([
    {
      times: "any",
      respond(request: ModelRequest) {
        const prompt = JSON.stringify(request.messages[0]);
        prompts.push(prompt);
        const said = answer(prompt);
        return typeof said === "string" ? said : { calls: [{ name: "StructuredOutput", input: said }] };
      },
    },
  ]);
  onTestFinished(() => sample[Symbol.asyncDispose]());
  return Object.assign(sample, { prompts });
}

interface Play {
  readonly args: unknown;
  readonly answer: Answer;
  readonly result: unknown;
  readonly agents: number;
  readonly logs?: readonly string[];
}

const plays: Readonly<Record<string, Play>> = {
  many: {
    args: { files: ["a.ts", "b.ts"], question: "Is it tested?" },
    answer: (prompt) => (prompt.includes("a.ts") ? "yes" : "no"),
    result: {
      known: [
        { file: "a.ts", answer: "yes" },
        { file: "b.ts", answer: "no" },
      ],
      failed: 0,
    },
    agents: 2,
  },
  line: {
    args: { files: ["a.ts", "b.ts"] },
    answer: (prompt) =>
      prompt.includes("Word this") ? "Please fix." : { found: prompt.includes("b.ts"), what: "a leak" },
    result: ["Please fix."],
    agents: 3,
  },
  lenses: {
    args: { lenses: ["bugs", "names"] },
    answer: (prompt) => (prompt.includes("Check these") ? "Both hold." : "a.ts:1"),
    result: "Both hold.",
    agents: 3,
  },
  vote: {
    args: { question: "Is it safe?" },
    answer: (prompt) => ({ yes: !prompt.includes("Opinion 2"), why: "seen" }),
    result: { yes: true, of: 3, why: ["seen", "seen", "seen"] },
    agents: 3,
  },
  rounds: {
    args: { what: "leaks" },
    answer: (prompt) => ({ found: prompt.includes("Round 1") ? ["x", "y"] : ["y"] }),
    result: ["x", "y"],
    agents: 2,
    logs: ["round 1: 2 new", "round 2: 0 new"],
  },
  route: {
    args: { requests: ["Why is it slow?", "Make it fast."] },
    answer: (prompt) => {
      if (prompt.includes("a question or a change?"))
        return { kind: prompt.includes("Why") ? "question" : "change" };
      return prompt.includes("Why") ? "Because." : "Done.";
    },
    result: ["Because.", "Done."],
    agents: 4,
  },
  depth: {
    args: { topic: "the parser" },
    answer: (prompt) => (prompt.includes("closer") ? "in depth" : "in short"),
    result: { first: "in short", second: "in depth" },
    agents: 2,
  },
  fixes: {
    args: { tasks: ["Rename it.", "Move it."], check: "true" },
    answer: () => "Changed.",
    result: ["Changed.", "Changed."],
    agents: 2,
  },
};

test("the cookbook has eight patterns, and each of them is played [WFL-1]", () => {
  expect(blocks.map(({ name }) => name)).toEqual(Object.keys(plays));
});

test.each(blocks)("the pattern $name does what the page says [WFL-1]", async ({ name, text }) => {
  const play = plays[name];
  const sample = await openSample(play?.answer ?? (() => ""));
  if (name === "fixes") {
    const git = (...words: string[]) => execFileSync("git", words, { cwd: sample.workspace.project });
    git("init", "-q");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one");
  }
  const run = sample.runtime.workflow(text, play?.args);
  const state = await run.ended;
  expect(state).toMatchObject({ status: "completed", failures: [] });
  expect(JSON.parse(state.result ?? "null")).toEqual(play?.result);
  expect(state.steps).toHaveLength(play?.agents ?? -1);
  expect(state.logs).toEqual(play?.logs ?? []);
});

test("as deep as the budget: where too little is left, there is no second look [WFL-4]", async () => {
  const { text = "" } = blocks.find(({ name }) => name === "depth") ?? {};
  const sample = await openSample(() => "in short");
  const run = sample
    .restart([{ times: "any", text: "in short" }], { settings: { workflows: { maxOutputTokens: 1000 } } })
    .runtime.workflow(text, { topic: "the parser" });
  expect(await run.result).toEqual({ first: "in short" });
});

const finding = { file: "a.ts", line: 3, problem: "leaks", evidence: "never closed" };
const builtins: Readonly<Record<string, readonly Play[]>> = {
  "review-diff": [
    {
      args: { lenses: ["bugs", "names"] },
      answer: (prompt) =>
        prompt.includes("Several reviewers")
          ? { summary: "One holds.", findings: [finding] }
          : { findings: prompt.includes("only: bugs") ? [finding] : [] },
      result: { summary: "One holds.", findings: [finding], notReviewed: [] },
      agents: 3,
      logs: ["findings: 1"],
    },
    {
      args: undefined,
      answer: () => ({ findings: [] }),
      result: { findings: [], summary: "Nothing was found.", notReviewed: [] },
      agents: 4,
      logs: ["findings: 0"],
    },
    {
      args: { lenses: ["bugs", "names"] },
      answer: (prompt) => (prompt.includes("only: bugs") ? "I could not look." : { findings: [] }),
      result: { findings: [], summary: "Nothing was found.", notReviewed: ["bugs"] },
      agents: 2,
      logs: [expect.stringMatching(/^parallel\[0\] failed/), "findings: 0; not reviewed: bugs"],
    },
  ],
  "sweep-files": [
    {
      args: { task: "Add a header", pattern: "*.ts" },
      answer(prompt) {
        if (prompt.includes("List the files")) return { files: ["a.ts", "b.ts"] };
        if (prompt.includes("Another agent worked"))
          return { passes: prompt.includes("a.ts"), reason: "looked" };
        return "added";
      },
      result: {
        passed: 1,
        failed: ["b.ts"],
        notFinished: [],
        results: [
          { file: "a.ts", report: "added", check: { passes: true, reason: "looked" } },
          { file: "b.ts", report: "added", check: { passes: false, reason: "looked" } },
        ],
      },
      agents: 5,
      logs: ["files: 2"],
    },
  ],
  research: [
    {
      args: "Why is the sky blue?",
      answer(prompt) {
        if (prompt.includes("Name up to 4")) return { angles: ["physics", "history"] };
        if (prompt.includes("Answer this question from the claims")) return "Scattering.";
        return { claims: [{ claim: "light scatters", source: "book:1" }] };
      },
      result: {
        answer: "Scattering.",
        claims: [
          { claim: "light scatters", source: "book:1" },
          { claim: "light scatters", source: "book:1" },
        ],
        notSearched: [],
      },
      agents: 6,
    },
  ],
};

test.each(
  builtinWorkflows.map(({ meta: { name } }) => name),
)("the workflow %s of the product runs by its name to its end [WFL-1]", async (name) => {
  const cases = builtins[name] ?? [];
  expect(cases.length).toBeGreaterThan(0);
  for (const play of cases) {
    const sample = await openSample(play.answer);
    const state = await sample.runtime.workflow(name, play.args).ended;
    expect(state.status).toBe("completed");
    expect(JSON.parse(state.result ?? "null")).toEqual(play.result);
    expect(state.steps).toHaveLength(play.agents);
    expect(state.logs).toEqual(play.logs ?? []);
  }
});

const hopeless: readonly (readonly [string, unknown, Answer, string])[] = [
  ["review-diff", undefined, () => "no", "No review was finished"],
  [
    "review-diff",
    undefined,
    (prompt) => (prompt.includes("Several reviewers") ? "no" : { findings: [finding] }),
    "StructuredOutput",
  ],
  [
    "research",
    "Why?",
    (prompt) => (prompt.includes("Name up to") ? { angles: ["a"] } : { claims: [] }),
    "No claim with a source",
  ],
];

test.each(
  hopeless,
)("%s does not pass off agents that found out nothing as a result: %j [WFL-1]", async (name, args, answer, text) => {
  const sample = await openSample(answer);
  const { status, error } = await sample.runtime.workflow(name, args).ended;
  expect([status, error]).toEqual(["failed", expect.stringContaining(text)]);
});
