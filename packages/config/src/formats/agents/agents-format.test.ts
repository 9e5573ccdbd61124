import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { definitionOf } from "../definition-of.ts";
import { agentsFormat } from "./agents-format.ts";

/** What the test files of the specification are expected to mean. */
interface Case {
  readonly file: string;
  readonly loads: boolean | "either";
  readonly name?: string;
  readonly description?: string;
  readonly tools?: "all" | readonly string[];
  readonly not?: readonly string[];
  readonly model?: string;
  readonly prompt?: string;
}

const folder = "examples/agents-folder";
const { cases } = JSON.parse(readFileSync(`${folder}/cases.json`, "utf8")) as {
  readonly cases: readonly Case[];
};

function read(file: string) {
  const text = readFileSync(`${folder}/${file}`, "utf8");
  const relative = file.replace(/^cases\//, "");
  const { agents, diagnostics } = agentsFormat.read(text, {
    file: `/p/.agents/agents/${relative}`,
    relative,
  });
  const [agent] = agents;
  const definition = agent === undefined ? undefined : definitionOf(agent, { scope: "project" }).definition;
  return { definition, diagnostics, agents };
}

describe("the specification of .agents/agents", () => {
  test.each(
    cases.map((each) => [each.file, each] as const),
  )("%s means what the specification says [PRT-1, PRT-2]", (file, expected) => {
    const { definition, diagnostics } = read(file);
    if (expected.loads === false) {
      expect(definition).toBeUndefined();
      expect(diagnostics.some(({ severity }) => severity !== "note")).toBe(true);
      return;
    }
    if (definition === undefined && expected.loads === "either") return;
    // A word that names no tool grants nothing, whether a reader keeps it or not.
    const granted = definition?.tools?.filter((tool) => tool !== "Teleport").toSorted();
    expect({
      name: definition?.name,
      tools: granted ?? "all",
      not: definition?.disallowedTools?.toSorted() ?? [],
      model: definition?.model === "inherit" ? undefined : definition?.model,
    }).toEqual({
      name: expected.name ?? definition?.name,
      tools: expected.tools,
      not: expected.not ?? [],
      model: expected.model,
    });
    if (expected.description !== undefined) expect(definition?.description).toBe(expected.description);
    if (expected.prompt !== undefined) expect(definition?.prompt).toBe(expected.prompt);
  });

  test("every test file is in the list, and what was read is written back as the same agent [PRT-2]", () => {
    const files = readdirSync(`${folder}/cases`, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .map((file) => `cases/${file.replaceAll("\\", "/")}`);
    expect(files.sort()).toEqual(cases.map(({ file }) => file).sort());
    for (const { file } of cases) {
      const [first] = read(file).agents;
      if (first === undefined) continue;
      const text = agentsFormat.write(first.agent);
      const again = agentsFormat.read(text, { file: "a.md", relative: "a.md" }).agents[0];
      const tools = (agent: typeof first | undefined) =>
        agent && definitionOf(agent, { scope: "project" }).definition;
      expect(tools(again)?.tools).toEqual(tools(first)?.tools);
      expect(tools(again)?.disallowedTools).toEqual(tools(first)?.disallowedTools);
    }
  });
});
