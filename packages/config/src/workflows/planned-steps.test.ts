import { expect, it } from "vitest";
import { builtinWorkflows } from "./builtin-workflows.ts";
import { plannedSteps } from "./planned-steps.ts";

/** `times`, with `+` where it may be more, for each place that starts agents. */
function counts(body: string, args?: unknown): readonly string[] {
  const { steps } = plannedSteps(`export const meta = { name: 'w', description: 'd' }\n${body}`, args);
  return steps.map(({ times, isOpen }) => `${times}${isOpen ? "+" : ""}`);
}

it.each<[string, unknown, readonly string[]]>([
  ["await agent('a'); await agent('b')", undefined, ["1", "1"]],
  ["await parallel([() => agent('a'), () => agent('b')])", undefined, ["1", "1"]],
  ["await parallel(args.files.map((f) => () => agent(f)))", { files: ["a", "b", "c"] }, ["3"]],
  ["await parallel(args.files.map((f) => () => agent(f)))", {}, ["1+"]],
  ["await pipeline(args, (f) => agent(f), (r) => agent(r))", [1, 2], ["2", "2"]],
  ["const all = args.files.filter(Boolean); for (const f of all) await agent(f)", { files: [1, 2] }, ["2"]],
  [
    "const all = (args && args.all) || ['x', 'y']; await parallel(all.map((f) => () => agent(f)))",
    undefined,
    ["2"],
  ],
  ["await parallel(Array.from({ length: 5 }, (_, n) => () => agent('n' + n)))", undefined, ["5"]],
  ["while (true) await agent('a')", undefined, ["1+"]],
  ["for (let i = 0; i < 3; i++) await agent('a')", undefined, ["1+"]],
  ["const found = await agent('a'); await parallel(found.files.map((f) => () => agent(f)))", {}, ["1", "1+"]],
  [
    "const one = (x) => agent(x); await parallel([1, 2].map((x) => () => one(x))); await one(3)",
    {},
    ["2", "1"],
  ],
  ["const again = async (n) => { await agent('a'); return again(n - 1) }; await again(3)", {}, ["1+"]],
  ["const kept = { check: (x) => agent(x) }; const never = (x) => agent(x)", {}, ["1", "1+"]],
  [
    "let f = args.files; if (!f) { f = await agent('find') } await pipeline(f, (x) => agent(x))",
    { files: [1, 2] },
    ["2"],
  ],
  ["if (args.deep) await agent('a'); else await agent('b')", { deep: true }, ["1"]],
  ["await parallel([].map(() => () => agent('a')))", undefined, []],
  ["a => {", undefined, []],
])("how often a script starts agents is read from it and its arguments [WFL-4, BIL-2]: %s", (body, args, expected) => {
  expect(counts(body, args)).toEqual(expected);
});

it("each place has its phase, its options and what is known of its prompt [WFL-4]", () => {
  const { steps, startsWorkflows } = plannedSteps(
    `export const meta = { name: 'w', description: 'd' }
phase('Look')
await agent('Look at ' + args.file + ' well', { label: 'look', agentType: 'Explore', model: 'haiku', schema: {}, effort: args.effort, verify: ['npm test', { run: args.file }] })
await agent(\`Check \${args.file}\`, { phase: 'Check' })
await workflow('other')`,
    { file: "a.ts", effort: "low" },
  );
  expect(startsWorkflows).toBe(true);
  expect(steps).toEqual([
    {
      ...{ times: 1, isOpen: false, phase: "Look", prompt: "Look at a.ts well" },
      options: { label: "look", agentType: "Explore", model: "haiku", effort: "low" },
      checks: ["npm test", "a.ts"],
    },
    { times: 1, isOpen: false, phase: "Check", prompt: "Check ", options: {}, checks: [] },
  ]);
});

it("the workflows of the product are understood [WFL-4]", () => {
  const read = (name: string, args: unknown) =>
    plannedSteps(builtinWorkflows.find(({ meta }) => meta.name === name)?.text ?? "", args).steps.map(
      ({ phase, times, isOpen }) => `${phase} ${times}${isOpen ? "+" : ""}`,
    );
  expect(read("review-diff", undefined)).toEqual(["Look 4", "Judge 1"]);
  expect(read("sweep-files", { task: "t", files: ["a", "b"] })).toEqual(["Work 2", "Check 2"]);
  expect(read("sweep-files", { task: "t" })).toEqual(["Find 1", "Work 1+", "Check 1+"]);
  expect(read("research", "why")).toEqual(["Plan 1", "Search 1+", "Check 1+", "Write 1"]);
});
