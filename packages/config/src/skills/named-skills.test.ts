import { expect, test } from "vitest";
import { parseAgentDefinition } from "../agents/parse-agent-definition.ts";
import { findNamedSkills, lintAgentSkills } from "./named-skills.ts";
import { readSkillFile } from "./read-skill-file.ts";
import { createSkillCatalog } from "./skill-catalog.ts";

function skill(name: string, frontmatter = "", plugin?: string) {
  const reading = readSkillFile(`---\ndescription: d\n${frontmatter}\n---\nText.`, {
    file: `/skills/${name}/SKILL.md`,
    scope: plugin === undefined ? "user" : "plugin",
    kind: "skill",
    plugin: plugin === undefined ? undefined : { name: plugin, root: "/plugins" },
  });
  return reading.skill === undefined ? [] : [reading.skill];
}

const catalog = createSkillCatalog({
  skills: [
    ...skill("house-style"),
    ...skill("deploy", "disable-model-invocation: true"),
    ...skill("forms"),
    ...skill("forms", "", "kit"),
  ],
});

function agent(skills: string, plugin?: string) {
  const text = `---\nname: a\ndescription: Does a thing.\nskills: ${skills}\n---\nPrompt.`;
  const { definition } = parseAgentDefinition(text, {
    file: "/agents/a.md",
    ...(plugin === undefined ? {} : { scope: "plugin", plugin }),
  });
  if (definition === undefined) throw new Error("the definition must load");
  return definition;
}

test("[SKL-1] skills come in the order named, each once", () => {
  const { skills, diagnostics } = findNamedSkills(agent("forms, house-style, forms"), catalog);
  expect(skills.map(({ name }) => name)).toEqual(["forms", "house-style"]);
  expect(diagnostics).toEqual([]);
});

test("[SKL-1] an agent of a plugin means its own plugin's skills first", () => {
  const named = (plugin?: string) => findNamedSkills(agent("forms", plugin), catalog).skills[0]?.name;
  expect([named(), named("kit"), named("other")]).toEqual(["forms", "kit:forms", "forms"]);
});

test("[SKL-2] an unknown name is a warning with the nearest, at its place, and the others still count", () => {
  const { skills, diagnostics } = findNamedSkills(agent("house-stile, ../../evil, forms"), catalog);
  expect(skills.map(({ name }) => name)).toEqual(["forms"]);
  expect(diagnostics).toMatchObject([
    {
      severity: "warning",
      code: "unknown-skill",
      file: "/agents/a.md",
      line: 4,
      advice: "Did you mean `house-style`?",
    },
    { severity: "warning", code: "unknown-skill" },
  ]);
});

test("[SKL-1] a skill that only a person may call is not preloaded", () => {
  expect(lintAgentSkills([agent("deploy"), agent("forms")], catalog)).toMatchObject([
    { code: "skill-not-preloadable", line: 4 },
  ]);
});
