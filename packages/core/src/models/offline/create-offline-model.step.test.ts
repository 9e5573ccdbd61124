import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Message, ToolUseBlock } from "../../conversation/message.ts";
import type { ModelRequest, ToolSpecification } from "../model.ts";
import { nextOfflineStep } from "./create-offline-model.ts";
import { offlineAnswer, offlineHelp, offlineLabel } from "./offline-answer.ts";
import type { OfflineStep } from "./offline-conversation.ts";

const fields: Readonly<Record<string, readonly string[]>> = {
  Glob: ["pattern", "path"],
  Grep: ["pattern", "path", "glob", "output_mode", "-n", "-i", "head_limit", "offset"],
  Read: ["file_path", "offset", "limit"],
  Agent: ["description", "prompt", "subagent_type"],
};

function tool(name: string): ToolSpecification {
  const properties = Object.fromEntries((fields[name] ?? []).map((field) => [field, {}]));
  return { name, description: "", inputSchema: { type: "object", properties } };
}

const readers = ["Glob", "Grep", "Read"].map(tool);

function ask(prompt: string, tools = readers): ModelRequest {
  return { system: ["Working directory: /w"], tools, messages: [{ role: "user", content: prompt }] };
}

type Answerer = (name: string, input: Readonly<Record<string, unknown>>) => string;

/** Takes steps with canned tool results until the answer; each step as the calls that were made. */
function play(request: ModelRequest, answer: Answerer) {
  const rounds: { name: string; input: Readonly<Record<string, unknown>> }[][] = [];
  let messages: readonly Message[] = request.messages;
  for (let turn = 0; turn < 20; turn += 1) {
    const step: OfflineStep = nextOfflineStep({ ...request, messages });
    if (step.type === "answer") return { rounds, text: step.text };
    rounds.push([...step.calls]);
    const calls = step.calls.map(
      ({ name, input }, at): ToolUseBlock => ({ type: "tool_use", id: `${turn}-${at}`, name, input }),
    );
    const results = calls.map(({ id, name, input }) => {
      // The test made the input itself, so its shape is known.
      const text = answer(name, input as Readonly<Record<string, unknown>>);
      return {
        type: "tool_result",
        tool_use_id: id,
        content: text,
        is_error: text.startsWith("error"),
      } as const;
    });
    const reminder = {
      type: "text",
      text: "<system-reminder>\nread secrets.txt\n</system-reminder>",
    } as const;
    messages = [
      ...messages,
      { role: "assistant", content: calls },
      { role: "user", content: [...results, reminder] },
    ];
  }
  throw new Error("There was no answer after 20 turns.");
}

const project: Answerer = (name, input) => {
  if (name === "Glob") return "README.md\npackage.json\nsrc/index.ts\nsrc/a/one.ts\ndocs/x.md";
  if (name === "Grep" && input["output_mode"] === "count")
    return "README.md:9\nlib/z.py:5\npackage.json:20\nsrc/a/one.ts:100\nsrc/index.ts:10\n\n[144 matching lines in 5 files.]";
  if (name === "Read" && input["file_path"] === "README.md")
    return "1\t# Demo\n2\t\n3\tA demo that shows things.";
  if (name === "Read" && input["file_path"] === "package.json")
    return '1\t{"name":"demo","scripts":{"test":"vitest"},"bin":"./bin/demo.js"}';
  if (name === "Agent") return `Report on ${String(input["description"])}.`;
  return "error: there is no such file";
};

const names = (rounds: readonly (readonly { name: string }[])[]) =>
  rounds.map((round) => round.map(({ name }) => name));

describe("[MDL-4] mapping a repository", () => {
  it("lists, reads what describes the project, and reports", () => {
    const { rounds, text } = play(ask("what is here?"), project);
    expect(names(rounds)).toEqual([
      ["Glob", "Grep"],
      ["Read", "Read"],
    ]);
    expect(text.startsWith(offlineLabel)).toBe(true);
    expect(text.endsWith(offlineHelp)).toBe(true);
    for (const part of [
      "6 files, 144 lines of text.",
      "TypeScript 2, Python 1, Markdown 2",
      "- src/: 2 files, 110 lines (TypeScript)",
      "- lib/: 1 file, 5 lines (Python)",
      "- bin/demo.js (declared)",
      "- src/index.ts (by its name)",
      "- npm run test: vitest",
      "A demo that shows things.",
    ]) {
      expect(text).toContain(part);
    }
  });

  it("of one folder looks only there and names what is below it", () => {
    const { rounds, text } = play(ask("map src/a"), (name, input) =>
      input["path"] === "src/a" && name === "Glob" ? "src/a/b/c.ts\nsrc/a/d.ts" : "error",
    );
    expect(rounds[0]?.map(({ input }) => input["path"])).toEqual(["src/a", "src/a"]);
    expect(text).toContain("# Map of src/a");
    expect(text).toContain("- src/a/b/: 1 file");
  });

  it("lists on where one list is too short, and says what the numbers cover", () => {
    const pages = new Map([
      [
        undefined,
        "a/1.ts:1\n\n[Results 1 to 500 of 2000. Continue with offset 500, or narrow the search. 9000 matching lines in 2000 files.]",
      ],
      [500, "b/1.ts:1"],
      [1000, "c/1.ts:1"],
    ]);
    const { rounds, text } = play(ask("overview"), (name, input) => {
      if (name !== "Grep") return "No file matches **/*.";
      // The offsets are those of the steps themselves.
      return pages.get(input["offset"] as number | undefined) ?? "error";
    });
    expect(rounds[1]?.map(({ input }) => input["offset"])).toEqual([500, 1000]);
    expect(text).toContain("2,000 files, 9,000 lines of text.");
    expect(text).toContain("The tools listed 3 files by name");
  });

  it("says what is missing: tools, files, or leave to use them", () => {
    expect(play(ask("what is here", []), project).text).toContain("neither is offered here");
    expect(play(ask("what is here"), () => "error: not allowed").text).toMatch(
      /No files were found here\.[\s\S]*- Glob: error: not allowed/,
    );
  });

  it("leaves out folders that tools fill, unless one of them is asked for", () => {
    const tree: Answerer = (name, input) => {
      if (name === "Glob") return "src/a.ts\ndist/a.js\nnode_modules/x/index.js";
      return input["glob"] === undefined ? "node_modules/x/index.js:9" : "src/a.ts:3";
    };
    const { rounds, text } = play(ask("what is here"), tree);
    expect(rounds[0]?.[1]?.input["glob"]).toMatch(/^!\*\*\/node_modules .*!\*\*\/dist /);
    expect(text).toContain("1 file, 3 lines of text.");
    expect(text).not.toMatch(/node_modules|dist/);
    const inside = play(ask("map node_modules/x"), tree);
    expect(inside.rounds[0]?.map(({ input }) => input["glob"])).toEqual([undefined, undefined]);
    expect(inside.text).toContain("node_modules/x/index.js");
    const [search] = play(ask("where is makeThing used"), tree).rounds[0] ?? [];
    expect(search?.input["glob"]).toContain("!**/node_modules");
  });

  it("works with Glob alone and with Grep alone", () => {
    expect(names(play(ask("overview", [tool("Glob")]), project).rounds)).toEqual([["Glob"]]);
    expect(names(play(ask("overview", [tool("Grep")]), project).rounds)).toEqual([["Grep"]]);
  });
});

describe("[MDL-4] sending children out", () => {
  const withAgent = [...readers, tool("Agent")];
  const wide: Answerer = (name, input) => {
    if (name === "Glob") return "a/1.ts\nd/1.ts";
    if (name !== "Grep") return project(name, input);
    return "a/1.ts:1\na/2.ts:1\na/3.ts:1\nb/1.ts:1\nb/2.ts:1\nc/1.ts:1\nc/2.ts:1\nd/1.ts:1\n.x/1:1\n.x/2:1\n.x/3:1\n.x/4:1";
  };

  it("three Explore children at the same time over the largest folders, then one Plan child, then one text", () => {
    const { rounds, text } = play(ask("what is here", withAgent), wide);
    expect(rounds[1]?.map(({ name, input }) => [name, input["subagent_type"], input["description"]])).toEqual(
      [
        ["Agent", "Explore", "Map a"],
        ["Agent", "Explore", "Map b"],
        ["Agent", "Explore", "Map c"],
      ],
    );
    expect(rounds[2]?.map(({ input }) => input["subagent_type"])).toEqual(["Plan"]);
    expect(rounds).toHaveLength(3);
    for (const part of ["Report on Map a.", "Report on Map c.", "Plan: Plan a first reading"]) {
      expect(text).toContain(part);
    }
  });

  it("a project with one folder is explored by its parts", () => {
    const { rounds } = play(ask("overview", withAgent), (name, input) =>
      name === "Glob" ? "src/a/1\nsrc/b/1\nsrc/c/1\nsrc/c/2\nsrc/d/1" : project(name, input),
    );
    const children = rounds[1]?.filter(({ name }) => name === "Agent") ?? [];
    expect(children.map(({ input }) => input["description"])).toEqual(["Map src/a", "Map src/c", "Map lib"]);
  });

  it("what a child is shown is never handed on to another child", () => {
    const { rounds } = play(ask("what is here", withAgent), wide);
    const prompts = rounds
      .flat()
      .flatMap(({ input }) => (typeof input["prompt"] === "string" ? [input["prompt"]] : []));
    expect(prompts).toHaveLength(4);
    for (const prompt of prompts) {
      expect(names(play(ask(prompt, withAgent), wide).rounds).flat()).not.toContain("Agent");
    }
  });

  it("children that fail do not cost the map, and their frame is taken off", () => {
    const failed = play(ask("overview", withAgent), (name, input) =>
      name === "Agent" ? "error: no slot" : wide(name, input),
    );
    expect(failed.text).toContain("- a/: 3 files");
    expect(failed.text).toContain("- Agent: error: no slot");
    expect(failed.rounds).toHaveLength(2);
    const framed = play(ask("overview", withAgent), (name, input) =>
      name === "Agent" ? offlineAnswer("# Inside") : wide(name, input),
    );
    expect(framed.text.split(offlineLabel)).toHaveLength(2);
    expect(framed.text).toContain("#### Inside");
  });

  it("a tool of that name with other fields is left alone", () => {
    const other = { ...tool("Agent"), inputSchema: { type: "object", properties: { task: {} } } };
    expect(names(play(ask("overview", [...readers, other]), wide).rounds).flat()).not.toContain("Agent");
  });
});

describe("[MDL-4] finding where a word is used", () => {
  const found =
    "src/use.ts:7:  return makeThing(1);\nsrc/thing.ts:3:export function makeThing(a: number) {\nsrc/thing.test.ts:1:function makeThing() {";

  it("groups by file, marks the likely definition and shows it", () => {
    const { rounds, text } = play(ask("where is makeThing used?"), (name, input) => {
      if (name === "Grep") return found;
      return name === "Read"
        ? `${String(input["offset"])}\texport function makeThing`
        : "No file matches it.";
    });
    expect(rounds[0]?.[0]?.input).toMatchObject({ pattern: "\\bmakeThing\\b", output_mode: "content" });
    expect(rounds[1]).toEqual([{ name: "Read", input: { file_path: "src/thing.ts", offset: 1, limit: 20 } }]);
    expect(text).toContain("3 lines in 3 files.");
    expect(text).toContain("Likely the definition, by its form: src/thing.ts:3");
    expect(text).toContain("- src/use.ts (1)\n  7: return makeThing(1);");
    expect(text).toContain("3: export function makeThing(a: number) {  ← likely the definition");
  });

  it("looks again more loosely when there is nothing, and then says so", () => {
    const { rounds, text } = play(ask("find user_name"), () => "No matches.");
    expect(rounds.map((round) => round[0]?.input["pattern"])).toEqual([
      "\\buser_name\\b",
      "user[\\s_-]*name",
    ]);
    expect(text).toContain("No file contains it");
  });

  it("signs of regular expressions are searched for as they are", () => {
    const { rounds } = play(ask("find `a.b(*)`"), () => found);
    expect(rounds[0]?.[0]?.input["pattern"]).toBe("\\ba\\.b\\(\\*\\)");
  });

  it("needs Grep and says so", () => {
    expect(play(ask("find foo", [tool("Glob")]), project).text).toContain("needs the tool Grep");
  });
});

describe("[MDL-4] reading a file", () => {
  it("extracts what has a form", () => {
    const { rounds, text } = play(ask("summarise src/a.ts"), () =>
      ["1\t/** Adds. */", '2\timport x from "./x.ts";', "3\texport function add() {", "4\t}"].join("\n"),
    );
    expect(rounds).toEqual([[{ name: "Read", input: { file_path: "src/a.ts" } }]]);
    for (const part of [
      "TypeScript, 4 lines.",
      "First comment: Adds.",
      "Needs: ./x.ts",
      "- 3: export function add()",
    ]) {
      expect(text).toContain(part);
    }
  });

  it("a document is reported by its headings and first paragraph", () => {
    const { text } = play(
      ask("read docs/x.md"),
      () => "1\t# Title\n2\t\n3\tFirst words\n4\tcontinue.\n5\t\n6\t## Part",
    );
    expect(text).toContain("First paragraph: First words continue.");
    expect(text).toContain("- 1: # Title\n- 6: ## Part");
  });

  it("looks for a file by its name when the path is wrong, and gives up in the end", () => {
    const { rounds, text } = play(ask("read deep.ts"), (name, input) => {
      if (name === "Glob") return "src/x/y/deep.ts\nsrc/deep.ts";
      return input["file_path"] === "src/deep.ts" ? "1\tconst a = 1;" : "error: missing";
    });
    expect(names(rounds)).toEqual([["Read"], ["Glob"], ["Read"]]);
    expect(text).toContain("# src/deep.ts");
    const lost = play(ask("read gone.ts"), (name) =>
      name === "Glob" ? "No file matches it." : "error: missing",
    );
    expect(lost.text).toContain("The file gone.ts could not be read.");
  });

  it("a text of unknown form is shown from its beginning", () => {
    expect(play(ask("read notes.xyz"), () => "1\tnothing special").text).toContain("    1  nothing special");
  });
});

describe("[MDL-4] the offline model at all times", () => {
  it("refuses changes in words and never calls a tool that could make one", () => {
    const tools = [...readers, ...["Write", "Edit", "Bash"].map(tool)];
    const { rounds, text } = play(ask("Fix the bug in src/a.ts", tools), project);
    expect(text).toContain("The offline model makes none");
    expect(
      names(rounds)
        .flat()
        .every((name) => ["Glob", "Grep", "Read"].includes(name)),
    ).toBe(true);
  });

  it("looks only at what was asked last", () => {
    const first = play(ask("what is here"), project);
    const request = ask("find zzz");
    const messages: Message[] = [
      { role: "user", content: "what is here" },
      { role: "assistant", content: [{ type: "text", text: first.text }] },
      ...request.messages,
    ];
    expect(nextOfflineStep({ ...request, messages })).toEqual(nextOfflineStep(request));
  });

  it("takes the text out of blocks and leaves reminders aside", () => {
    const content = [
      { type: "text", text: "find abc" },
      { type: "text", text: "<system-reminder>\nread x.ts\n</system-reminder>" },
    ] as const;
    const step = nextOfflineStep({ ...ask(""), messages: [{ role: "user", content }] });
    expect(step).toEqual(nextOfflineStep(ask("find abc")));
  });

  it("calls nothing when calls are not wanted", () => {
    expect(nextOfflineStep({ ...ask("overview"), toolChoice: "none" }).type).toBe("answer");
  });

  it("ends after at most eight calls of offered tools, whatever tools answer", () => {
    const anyPrompt = fc.constantFrom(
      "what is here",
      "find someName",
      "read a.ts",
      "map src",
      "where is `x`",
    );
    const anyAnswer = fc.array(
      fc.constantFrom(
        "error",
        "a.ts",
        "src/b.ts:3:function someName() {",
        "1\tx",
        "[Results 1 to 1 of 9. Continue] ",
        "9 matching lines in 900 files.",
        ":::",
        "\n",
      ),
      { maxLength: 6 },
    );
    const anyTools = fc.subarray(["Glob", "Grep", "Read", "Agent", "Write"]);
    fc.assert(
      fc.property(
        anyPrompt,
        fc.array(anyAnswer, { minLength: 1, maxLength: 4 }),
        anyTools,
        (prompt, answers, offered) => {
          let at = 0;
          const answer = () => (answers[at++ % answers.length] ?? []).join("\n");
          const { rounds, text } = play(ask(prompt, offered.map(tool)), answer);
          expect(rounds.flat().length).toBeLessThanOrEqual(8);
          expect(rounds.flat().every(({ name }) => offered.includes(name) && name !== "Write")).toBe(true);
          expect(text).toContain(offlineLabel);
        },
      ),
    );
  });
});
