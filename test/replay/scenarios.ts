import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import type { ScriptedModelOptions } from "@retinue/testing/scripted-model.ts";

/** A session that is recorded with a scripted model, to be replayed. */
export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly prompts: readonly string[];
  readonly options?: RuntimeOptions & { readonly modelOptions?: ScriptedModelOptions };
  readonly session?: SessionOptions;
  /** The same session in another process. */
  readonly again?: { readonly steps: readonly Step[]; readonly prompts: readonly string[] };
}

export const call = (name: string, input: unknown): ScriptedStep => ({ calls: [{ name, input }] });
const child = (prompt: string, more: object = {}): ScriptedStep =>
  call("Agent", { description: prompt, prompt, subagent_type: "Explore", ...more });
const read = call("Read", { file_path: "a.txt" });
const long = "word ".repeat(3000);
const smallWindow = { modelOptions: { facts: { contextWindow: 80_000, maxOutputTokens: 4_000 } } };

export const scenarios: readonly Scenario[] = [
  {
    name: "two prompts, with a call that is refused",
    steps: [read, "one", call("Bash", { command: "rm -rf x" }), "two"],
    prompts: ["first", "second"],
  },
  { name: "a child that is waited for", steps: [child("look"), read, "found", "done"], prompts: ["go"] },
  {
    name: "three children at the same time",
    steps: [
      { calls: [1, 2, 3].map((n) => child(`look ${n}`).calls?.[0] ?? { name: "" }) },
      { match: "look 1", text: "one" },
      { match: "look 2", ...read },
      { match: "look 3", text: "three" },
      { match: "hello", text: "two" },
      "all done",
    ],
    prompts: ["go"],
  },
  {
    name: "a child in the background, whose news arrive later",
    steps: [
      { match: "go", ...child("look", { run_in_background: true }) },
      { match: "look", ...read },
      { match: "hello", text: "found" },
      "waiting",
      "noted",
      "done",
    ],
    prompts: ["go"],
  },
  {
    name: "mistakes of the model: an invalid input, no such tool, no such file",
    steps: [call("Read", { file: 1 }), call("Nope", {}), call("Read", { file_path: "zz" }), "done"],
    prompts: ["go"],
  },
  {
    name: "the same call again and again",
    steps: [...Array.from({ length: 7 }, () => call("Read", { file_path: "zz" })), "done"],
    prompts: ["go"],
  },
  {
    name: "the limit of turns",
    steps: [read, call("Glob", { pattern: "*" }), "done"],
    prompts: ["go"],
    session: { maxTurns: 2 },
  },
  {
    name: "the limit of calls, and a last turn without tools",
    steps: [{ calls: [read, read, read].flatMap(({ calls = [] }) => calls) }, "handed in"],
    prompts: ["go"],
    session: { limits: { tree: { toolCalls: 2 } } },
  },
  {
    name: "a reminder in every message, of an agent that is the main thread",
    steps: [read, "done"],
    prompts: ["go"],
    session: { agent: "reminded" },
  },
  {
    name: "a child that begins with its parent's conversation",
    steps: [call("Agent", { description: "x", prompt: "look", subagent_type: "forked" }), "found", "done"],
    prompts: ["go"],
  },
  {
    name: "a child that ends without a word",
    steps: [child("look"), { text: "" }, "found", "done"],
    prompts: ["go"],
  },
  {
    name: "a request that fails in the end",
    steps: [read, { failure: "invalid-request" }],
    prompts: ["go"],
  },
  {
    name: "a typed result, after a reminder",
    steps: ["no", call("StructuredOutput", { n: 1 })],
    prompts: ["go"],
    session: { output: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } },
  },
  {
    name: "compaction in the middle of a run",
    steps: [
      { text: long, ...read },
      { text: long, ...call("Glob", { pattern: "*" }), usage: { inputTokens: 76_500 } },
      "a summary",
      read,
      "done",
      "more",
    ],
    prompts: ["one", "two"],
    options: smallWindow,
  },
  {
    name: "compaction that was asked for",
    steps: [{ text: long, ...read }, { text: long }, "a summary", read, "done"],
    prompts: ["one", "/compact", "two"],
    options: smallWindow,
  },
  {
    name: "a session that another process continues",
    steps: [read, "one"],
    prompts: ["first"],
    again: { steps: [call("Glob", { pattern: "*" }), "two"], prompts: ["second"] },
  },
  {
    name: "hooks that add to a prompt and to a result and refuse the end once",
    steps: [read, "first", "second"],
    prompts: ["go"],
    options: { hooks: addingHooks() },
  },
];

function addingHooks(): NonNullable<RuntimeOptions["hooks"]> {
  let ends = 0;
  return {
    Stop: [() => (ends++ === 0 ? { decision: "block", reason: "not yet" } : undefined)],
    UserPromptSubmit: [
      () => ({ hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "a" } }),
    ],
    PostToolUse: [() => ({ hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "b" } })],
  };
}

/** A session made of pieces that a number chooses. */
export function makeScenario(seed: number): Scenario {
  let state = seed * 2_654_435_761 + 1;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pieces: readonly (() => readonly ScriptedStep[])[] = [
    () => [read],
    () => [call("Glob", { pattern: `*${next(9)}` })],
    () => [call("Grep", { pattern: `word${next(9)}` })],
    () => [call("Write", { file_path: `new${next(99)}.txt`, content: `text ${next(99)}` })],
    () => [call("Bash", { command: `echo ${next(99)}` })],
    () => [call("Read", { file_path: `missing${next(9)}` })],
    () => [
      {
        text: `Now ${next(99)}.`,
        calls: [read, call("Glob", { pattern: "*" })].flatMap(({ calls = [] }) => calls),
      },
    ],
    () => [child(`look ${next(99)}`), ...(next(2) === 0 ? [read] : []), { text: `found ${next(99)}` }],
    () => [{ thinking: `Hm ${next(99)}.`, ...read }],
  ];
  const runs = Array.from({ length: 1 + next(3) }, () => {
    const steps = Array.from({ length: next(5) }, () => pieces[next(pieces.length)]?.() ?? []).flat();
    return [...steps, { text: `done ${next(99)}` }];
  });
  const isContinued = runs.length > 1 && next(4) === 0;
  const own = isContinued ? runs.slice(0, -1) : runs;
  const prompts = (list: readonly unknown[]): readonly string[] => list.map(() => `Task ${next(999)}`);
  return {
    name: `seed ${seed}`,
    steps: own.flat(),
    prompts: prompts(own),
    session: next(2) === 0 ? { permissionMode: "acceptEdits" } : {},
    ...(isContinued ? { again: { steps: runs.at(-1) ?? [], prompts: prompts([0]) } } : {}),
  };
}

const agents = {
  reminded: "criticalSystemReminder_EXPERIMENTAL: be brief",
  forked: "forkContext: true",
};

/** Records a scenario; gives what the model was asked, in order. */
export async function recordScenario(
  sample: SampleRuntime,
  { prompts, session = {}, again }: Scenario,
): Promise<readonly string[]> {
  await sample.workspace.write("a.txt", "hello\n");
  for (const [name, field] of Object.entries(agents))
    await sample.workspace.write(
      `.claude/agents/${name}.md`,
      `---\nname: ${name}\ndescription: Works. Use when asked.\n${field}\n---\nYou are ${name}.`,
    );
  const ask = async (
    runtime: SampleRuntime["runtime"],
    options: SessionOptions,
    texts: readonly string[],
  ) => {
    await using open = await runtime.open(options);
    for (const text of texts) await open.run(text).result;
    return open.id;
  };
  const id = await ask(sample.runtime, session, prompts);
  if (again === undefined) return sample.requests.map((request) => JSON.stringify(request));
  const second = sample.restart(again.steps);
  await ask(second.runtime, { ...session, resume: id }, again.prompts);
  return [...sample.requests, ...second.requests].map((request) => JSON.stringify(request));
}
