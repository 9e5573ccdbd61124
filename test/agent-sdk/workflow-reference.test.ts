import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { notificationsOf, playWorkflowCase, runsOf, tag, type WorkflowCase } from "./play-workflow-case.ts";

const meta = (name: string, more = ""): string =>
  `export const meta = { name: '${name}', description: 'About ${name}'${more} }\n`;
const tryIt =
  "const tryIt = async (f) => { try { return await f() } catch (e) { return 'THROWS ' + e.name } }\n";
const schema = "const SCHEMA = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }\n";
const handIn = (n: unknown) => ({ tool: "StructuredOutput", input: { n } });
const bash = { tool: "Bash", input: { command: "echo hi" } };
const saved = (name: string): string => `.claude/workflows/${name}.js`;

interface Expected {
  /** What the runs returned, in the order in which they ended; absent where one returned nothing. */
  readonly results?: readonly unknown[];
  readonly requests?: Readonly<Record<string, number>>;
  /** Of the only run. */
  readonly logs?: readonly unknown[];
  readonly progress?: readonly string[];
  readonly statuses?: readonly string[];
}

const cases: Readonly<Record<string, readonly [WorkflowCase, Expected]>> = {
  "a text instead of the value gets one nudge, five wrong values end the agent; both throw": [
    {
      script: `${meta("s")}${tryIt}${schema}return [await tryIt(() => agent('conv:text x', { schema: SCHEMA })), await tryIt(() => agent('conv:five x', { schema: SCHEMA })), await agent('conv:nudged x', { schema: SCHEMA }), await agent('conv:last x', { schema: SCHEMA })]`,
      agents: {
        text: ["no", "no again", "never asked"],
        five: [handIn("a")],
        nudged: ["words", handIn(3), "never asked"],
        last: [handIn("a"), handIn("b"), handIn("c"), handIn("d"), handIn(9), "never asked"],
      },
    },
    {
      results: [["THROWS Error", "THROWS Error", { n: 3 }, { n: 9 }]],
      requests: { text: 2, five: 5, nudged: 2, last: 5 },
    },
  ],
  "of two values in one answer the last counts; a root that is no object throws before any request": [
    {
      script: `${meta("s")}${tryIt}${schema}return [await agent('conv:two x', { schema: SCHEMA }), await tryIt(() => agent('conv:root x', { schema: { type: 'array' } }))]`,
      agents: {
        two: [
          {
            calls: [
              { name: "StructuredOutput", input: { n: 1 } },
              { name: "StructuredOutput", input: { n: 2 } },
            ],
          },
        ],
      },
    },
    { results: [[{ n: 2 }, "THROWS Error"]], requests: { two: 1 } },
  ],
  "an agent without a word is asked for the value, and not for words": [
    {
      byRequest: ["silent", "mute"],
      script: `${meta("s")}${tryIt}${schema}return [await agent('conv:silent x', { schema: SCHEMA }), await tryIt(() => agent('conv:mute x', { schema: SCHEMA }))]`,
      agents: { silent: [bash, "", handIn(2)], mute: ["", "", "never asked"] },
    },
    { results: [[{ n: 2 }, "THROWS Error"]], requests: { silent: 3, mute: 2 } },
  ],
  "further properties pass unless they are forbidden": [
    {
      script: `${meta("s")}${schema}return await agent('conv:more x', { schema: { ...SCHEMA, additionalProperties: false } })`,
      agents: { more: [{ tool: "StructuredOutput", input: { n: 1, e: 2 } }, handIn(1)] },
    },
    { results: [{ n: 1 }], requests: { more: 2 } },
  ],
  "an empty answer is asked again once, the last block of text counts, white space stays": [
    {
      byRequest: ["later", "never"],
      script: `${meta("s")}return [await agent('conv:later x'), await agent('conv:never x'), await agent('conv:space x'), await agent('conv:blocks x')]`,
      agents: {
        later: ["", "LATER"],
        never: [""],
        space: ["  hi \n"],
        blocks: [
          {
            blocks: [
              { type: "text", text: "first" },
              { type: "text", text: "second" },
            ],
          },
        ],
      },
    },
    { results: [["LATER", "", "  hi \n", "second"]], requests: { later: 2, never: 2, space: 1, blocks: 1 } },
  ],
  "options that say nothing are ignored, prompts become texts, what cannot be had throws": [
    {
      script: `${meta("s")}${tryIt}return [await agent('conv:a x', { effort: 'silly', isolation: 'other', timeout: 3, subagent_type: 'zzz', model: 'no-such-model' }), await agent(42), await agent({}), await tryIt(() => agent('x', { isolation: 'remote' })), await tryIt(() => agent('x', { isolation: 'worktree' })), await tryIt(() => agent('x', { agentType: 'nobody' }))]`,
      agents: { a: ["A"], "": ["bare"] },
    },
    { results: [["A", "bare", "bare", "THROWS Error", "THROWS Error", "THROWS Error"]] },
  ],
  "a definition does not get Agent or Workflow, whatever it lists": [
    {
      files: {
        ".claude/agents/own.md": "---\nname: own\ndescription: o\ntools: Read, Agent, Workflow\n---\nOwn.\n",
      },
      script: `${meta("s")}return await agent('conv:own x', { agentType: 'own' })`,
      agents: {
        own: [
          {
            calls: [
              { name: "Agent", input: { description: "d", prompt: "p", subagent_type: "own" } },
              { name: "Workflow", input: { script: "x" } },
            ],
          },
          "OWN",
        ],
      },
    },
    { results: ["OWN"], requests: { own: 2 } },
  ],
  "a provider that fails gives null, in lists too; what parallel lost is told in its order": [
    {
      script: `${meta("s")}return [await agent('conv:dead x', { label: 'one' }), await parallel([() => agent('conv:dead y', { label: 'two' }), () => agent('conv:late z', { agentType: 'nobody' }), () => { throw new Error('sync') }]), await pipeline([1], () => agent('conv:dead z', { label: 'three' }), () => 'never')]`,
      agents: { dead: [{ fault: {} }] },
    },
    {
      results: [[null, [null, null, null], [null]]],
      logs: [
        expect.stringContaining("[one] failed"),
        expect.stringContaining("[two] failed"),
        expect.stringContaining("parallel[1] failed"),
        "parallel[2] failed: sync",
        expect.stringContaining("[three] failed"),
      ],
    },
  ],
  "lists take only what they should": [
    {
      script: `${meta("s")}${tryIt}return [await tryIt(() => pipeline('x', (x) => x)), await tryIt(() => parallel([1])), await tryIt(() => parallel()), await tryIt(() => parallel(new Set())), await tryIt(() => pipeline(Array.from({ length: 4097 }), (x) => x)), await pipeline([], (x) => x), await pipeline([1, null, undefined], (p) => p, (p) => ['s', p === undefined]), await parallel([async () => { throw null }]), await pipeline([1], () => { throw undefined })]`,
    },
    {
      results: [
        [
          ...["TypeError", "TypeError", "TypeError", "TypeError", "Error"].map((name) => `THROWS ${name}`),
          ...[[], [["s", false], null, ["s", true]], [null], [null]],
        ],
      ],
      logs: ["parallel[0] failed: null", "pipeline[0] failed: undefined"],
    },
  ],
  "of 1,000 agents one more throws, also through parallel": [
    {
      script: `${meta("s")}${tryIt}await Promise.all(Array.from({ length: 1000 }, () => agent('x', { isolation: 'remote' }).catch(() => 0)))\nreturn [await tryIt(() => agent('x')), await tryIt(() => parallel([() => agent('x'), () => agent('y')]))]`,
    },
    { results: [["THROWS WorkflowAgentCapError", "THROWS WorkflowAgentCapError"]], requests: {} },
  ],
  "workflow(): own args, own phases not shown, lines with its name, its throw is the caller's, one level": [
    {
      files: {
        [saved("inner")]:
          `${meta("inner")}phase('I'); log('in'); const a = await agent('conv:in x', { label: 'ia' }); if (args === 'boom') throw new TypeError('inner boom'); return { a, args }`,
        [saved("deep")]: `${meta("deep")}try { return await workflow('inner') } catch (e) { return 'T' }`,
        "other.txt": `${meta("by-file")}return ['FILE', args.k]`,
      },
      script: `${meta("s")}${tryIt}phase('Out')\nreturn [await workflow('inner', { k: 1 }), await tryIt(() => workflow('inner', 'boom')), await workflow('deep'), await tryIt(() => workflow('nobody')), await workflow({ scriptPath: 'other.txt' }, { k: 2 }), await tryIt(() => workflow({ scriptPath: 'none.js' }))]`,
      agents: { in: ["IN"] },
    },
    {
      results: [
        [{ a: "IN", args: { k: 1 } }, "THROWS TypeError", "T", "THROWS Error", ["FILE", 2], "THROWS Error"],
      ],
      logs: ["[inner] in", "[inner] in", expect.stringMatching(/^\[inner\] failed: .*inner boom/)],
      progress: [
        ...["phase 1 Out", "phase 2 ▸ inner child", "agent 1 ia done in ▸ inner"],
        ...["phase 3 ▸ inner #2 child", "agent 2 ia done in ▸ inner #2"],
        ...["phase 4 ▸ deep child", "phase 5 ▸ by-file child"],
      ],
    },
  ],
  "phases: the last one, or the agent's own": [
    {
      script: `${meta("s")}phase('A'); await agent('conv:a x'); const b = agent('conv:b x', { phase: 'B', label: 'bee' }); phase('C'); await agent('conv:c x'); await b; return typeof phase({})`,
    },
    {
      results: ["undefined"],
      progress: [
        ...["phase 1 A", "agent 1 conv:a x done in A", "phase 2 B", "agent 2 bee done in B"],
        ...["phase 3 C", "agent 3 conv:c x done in C", "phase 4 [object]"],
      ],
    },
  ],
  "texts of log and console": [
    {
      script: `${meta("s")}log({ a: 1 }); log(null); log(undefined); log(5); for (const key of ['log', 'info', 'debug', 'warn', 'error']) console[key](key)`,
    },
    {
      results: [undefined],
      logs: ["[object]", "null", "undefined", "5", "log", "info", "debug", "warn", "error"],
    },
  ],
  "args: JSON in a text is parsed, other texts stay, none is undefined, they can be changed": [
    {
      main: [
        ...[{ args: "words" }, { args: '{"a":[1]}' }, { args: "42" }, { args: "{a" }, { args: null }, {}].map(
          (more) => ({
            tool: "Workflow",
            input: {
              script: `${meta("s")}if (args && typeof args === 'object') args.more = 1\nreturn [typeof args, args]`,
              ...more,
            },
          }),
        ),
        "MAIN-DONE",
      ],
    },
    {
      results: [
        ["string", "words"],
        ["object", { a: [1], more: 1 }],
        ["number", 42],
        ["string", "{a"],
        ["object", null],
        ["undefined", null],
      ],
    },
  ],
  "values that leave: maps and dates are empty, NaN is null, markup is escaped; a cut at 8,000 characters": [
    {
      main: [
        {
          tool: "Workflow",
          input: { script: `${meta("s")}return { m: new Map([[1, 2]]), d: new Date(0), n: NaN, x: '<b>&' }` },
        },
        { tool: "Workflow", input: { script: `${meta("s")}return null` } },
        "MAIN-DONE",
      ],
    },
    { results: [{ m: {}, d: {}, n: null, x: "<b>&" }, null] },
  ],
  "functions, big integers and cycles fail the run; so does a throw of no error": [
    {
      main: [
        ...["return () => 1", "return 5n", "const a = {}; a.a = a; return a", "throw 'plain'"].map(
          (code) => ({
            tool: "Workflow",
            input: { script: meta("s") + code },
          }),
        ),
        "MAIN-DONE",
      ],
    },
    {
      results: [undefined, undefined, undefined, undefined],
      statuses: ["failed", "failed", "failed", "failed"],
    },
  ],
  "an agent that nobody waits for does not hold the run up": [
    {
      script: `${meta("s")}agent('conv:lost x'); return 'over'`,
      agents: { lost: [{ text: "LOST", delay: 6000 }] },
    },
    { results: ["over"], progress: ["agent 1 conv:lost x start"] },
  ],
  "scriptPath counts before name, and name before script; any extension, byte order marks and line ends": [
    {
      files: {
        "f.txt": `${meta("f")}return 'FILE'`,
        [saved("n")]: `\uFEFF${meta("n")}return 'NAME'`,
        [saved("c")]: `// first a comment\n${meta("crlf")}return 'CRLF'\n`.replaceAll("\n", "\r\n"),
      },
      main: [
        ...[
          { script: `${meta("s")}return 'SCRIPT'`, name: "n", scriptPath: "f.txt" },
          { script: `${meta("s")}return 'SCRIPT'`, name: "n", title: "t", description: "d" },
          { name: "crlf" },
        ].map((input) => ({ tool: "Workflow", input })),
        "MAIN-DONE",
      ],
    },
    { results: ["FILE", "NAME", "CRLF"] },
  ],
  "odd names, unknown keys and phases of a wrong type do no harm": [
    {
      script:
        "export const meta = { name: `a b/../c`, description: 'x', phases: 'odd', foo: [-1, null], 'q-r': 1 }\n// Date.now()\nreturn ['Math.random()', Date.UTC(1970, 0, 1), new Date(5).getTime(), typeof meta]",
    },
    { results: [["Math.random()", 0, 5, "undefined"]] },
  ],
  "refused at launch, with nothing run": [
    {
      main: [
        ...[
          `${meta("s")}Date.now()`,
          `${meta("s")}return Math . random ()`,
          `${meta("s")}new Date`,
          `'use strict'\n${meta("s")}`,
          `${meta("s")}import fs from 'fs'`,
          `${meta("s")}export const x = 1`,
          `${meta("s")}const x: number = 1`,
          `${meta("s")}await import('fs')`,
          `export const meta = { name: \`a\${1}\`, description: 'x' }`,
          "export const meta = { name: '', description: 'x' }",
          "export const meta = { name: 'x' }",
        ].map((script) => ({ tool: "Workflow", input: { script } })),
        { tool: "Workflow", input: {} },
        { tool: "Workflow", input: { script: meta("s"), resumeFromRunId: "wf_00000000-000" } },
        "MAIN-DONE",
      ],
    },
    { results: [], requests: {} },
  ],
  "agents of one shape wait for the first answer; all come in the order of the list": [
    {
      script: `${meta("s")}return await parallel([1, 2, 3, 4, 5].map((i) => () => agent('conv:w' + i + ' x')))`,
      agents: { w1: [{ text: "1", delay: 200 }], w2: ["2"], w3: ["3"], w4: ["4"], w5: ["5"] },
    },
    { results: [["1", "2", "3", "4", "5"]] },
  ],
  "args are given again when a run goes on; of equal prompts each is kept, and only the edited item runs": [
    {
      main: [
        { tool: "Workflow", input: { script: "{{SCRIPT}}", args: { v: 1 } } },
        "LAUNCHED",
        {
          edit: ["' x ' + item", "' x ' + (item === 'a' ? 'edited' : item)"],
          file: "{{SCRIPT_PATH}}",
          tool: "Workflow",
          input: { scriptPath: "{{SCRIPT_PATH}}", resumeFromRunId: "{{RUN_ID}}" },
        },
        "LAUNCHED-2",
        "MAIN-DONE",
      ],
      script: `${meta("s")}const p = await pipeline(['a', 'b'], (x, item) => agent('conv:one_' + item + ' x ' + item), (prev, item) => agent('conv:two_' + item + ' ' + prev))\nreturn [p, await agent('conv:same x'), await agent('conv:same x'), typeof args]`,
      agents: { one_a: ["A"], one_b: ["B"], two_a: ["TA"], two_b: ["TB"], same: ["S"] },
    },
    {
      results: [
        [["TA", "TB"], "S", "S", "object"],
        [["TA", "TB"], "S", "S", "undefined"],
      ],
      requests: { one_a: 2, one_b: 1, two_a: 1, two_b: 1, same: 2 },
    },
  ],
  "a step that failed runs again when its run goes on": [
    {
      main: [
        { tool: "Workflow", input: { script: "{{SCRIPT}}" } },
        "LAUNCHED",
        { tool: "Workflow", input: { script: "{{SCRIPT}}", resumeFromRunId: "{{RUN_ID}}" } },
        "LAUNCHED-2",
        "MAIN-DONE",
      ],
      byRequest: ["flaky"],
      script: `${meta("s")}return [await agent('conv:a x'), await agent('conv:flaky x')]`,
      agents: { a: ["A"], flaky: [{ fault: {} }, "OK"] },
    },
    {
      results: [
        ["A", null],
        ["A", "OK"],
      ],
      requests: { a: 1, flaky: 2 },
    },
  ],
  "a run that still works is not begun a second time": [
    {
      main: [
        { tool: "Workflow", input: { script: "{{SCRIPT}}" } },
        { tool: "Workflow", input: { script: "{{SCRIPT}}", resumeFromRunId: "{{RUN_ID}}" } },
        "MAIN-DONE",
      ],
      script: `${meta("s")}return await agent('conv:slow x')`,
      agents: { slow: [{ text: "S", delay: 400 }] },
    },
    { results: ["S"], requests: { slow: 1 } },
  ],
  "files of plugins have its name before theirs, and a saved one may take the name of a built-in": [
    {
      files: {
        "plug/.claude-plugin/plugin.json": '{ "name": "plug", "version": "1.0.0", "description": "d" }',
        "plug/workflows/p.js": `${meta("own")}return 'PLUG'`,
        [saved("r")]: `${meta("research")}return 'MINE'`,
      },
      main: [
        ...["plug:own", "own", "research"].map((name) => ({ tool: "Workflow", input: { name } })),
        "MAIN-DONE",
      ],
      options: { plugins: [{ type: "local", path: "plug" }] },
    },
    { results: ["PLUG", "MINE"] },
  ],
  "sources that are left out, and files that come too late, are not found": [
    {
      files: {
        [saved("pr")]: `${meta("pr")}return 'P'`,
        "~/.claude/workflows/us.js": `${meta("us")}return 'U'`,
      },
      main: [
        { tool: "Workflow", input: { name: "pr" } },
        {
          tool: "Write",
          input: { file_path: "{{HOME}}", content: "" },
        },
        { tool: "Workflow", input: { name: "us" } },
        "MAIN-DONE",
      ],
      options: { settingSources: ["user"] },
    },
    { results: ["U"] },
  ],
};

test.each(Object.entries(cases))("%s [WFL-1, WFL-3]", async (_title, [read, expected]) => {
  const { requests, stage } = await playWorkflowCase(read);
  const notices = notificationsOf({ stage });
  const { results, statuses, logs, progress } = expected;
  const seen = notices.map((notice) => tag(notice, "result"));
  expect(seen.map((text) => (text === undefined ? undefined : JSON.parse(text)))).toEqual(results);
  if (statuses !== undefined) expect(notices.map((notice) => tag(notice, "status"))).toEqual(statuses);
  if (expected.requests !== undefined) expect(Object.fromEntries(requests)).toEqual(expected.requests);
  const [run] = runsOf(stage.home);
  if (logs !== undefined) expect(run?.["logs"]).toEqual(logs);
  if (progress !== undefined)
    expect((run?.["workflowProgress"] as Record<string, unknown>[]).map(progressLine)).toEqual(progress);
});

function progressLine({
  type,
  index,
  title,
  kind,
  label,
  state,
  phaseTitle,
}: Record<string, unknown>): string {
  if (type === "workflow_phase") return `phase ${index} ${title}${kind === undefined ? "" : ` ${kind}`}`;
  return `agent ${index} ${label} ${state}${phaseTitle === undefined ? "" : ` in ${phaseTitle}`}`;
}

test("hooks see the call, each agent with its own type, and at the end what continues [WFL-1, WFL-4]", async () => {
  const command = "cat >> $HOME/hooks.log; echo >> $HOME/hooks.log";
  const events = [
    "PreToolUse",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "TaskCreated",
    "TaskCompleted",
  ];
  const hooks = Object.fromEntries(
    events.map((event) => [event, [{ hooks: [{ type: "command", command }] }]]),
  );
  const { stage } = await playWorkflowCase({
    files: {
      "~/.claude/settings.json": JSON.stringify({ hooks }),
      ".claude/agents/own.md": "---\nname: own\ndescription: o\n---\nOwn.\n",
    },
    script: `${meta("s")}return [await agent('conv:slow x'), await agent('conv:own x', { agentType: 'own' })]`,
    agents: { slow: [{ text: "S", delay: 400 }], own: ["O"] },
  });
  const seen: Record<string, unknown>[] = readFileSync(join(stage.home, "hooks.log"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  const of = (event: string) => seen.filter(({ hook_event_name: name }) => name === event);
  expect([...of("PreToolUse"), ...of("PostToolUse")].map(({ tool_name: name }) => name)).toEqual([
    "Workflow",
    "Workflow",
  ]);
  for (const event of ["SubagentStart", "SubagentStop"])
    expect(of(event).map(({ agent_type: type }) => type)).toEqual(["workflow-subagent", "own"]);
  expect([...of("TaskCreated"), ...of("TaskCompleted")]).toEqual([]);
  expect(of("Stop").map(({ background_tasks: tasks }) => tasks)).toEqual([
    [
      {
        id: expect.stringMatching(/^w/),
        type: "workflow",
        status: "running",
        description: "About s",
        name: "s",
      },
    ],
    [],
  ]);
});
