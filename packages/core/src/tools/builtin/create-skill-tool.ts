import * as t from "../input-type.ts";
import type { SkillToolSource, Tool } from "../tool.ts";
import { builtinTool, optionalText } from "./builtin-tool.ts";

/** Rules match the name alone, so it is read before they see the call: people and models write a slash before it. */
const name = t.preprocess(
  (value) => (typeof value === "string" ? value.trim().replace(/^\//, "") : value),
  t.string().min(1),
);

const input = t.object({
  skill: name.describe("The name of the skill, as listed."),
  args: optionalText("What it is to work on, as a person would write it behind the name."),
});

/** Loads a skill's instructions, or runs the skill in an agent of its own where it says so. */
export function createSkillTool({ list, call }: SkillToolSource): Tool {
  return builtinTool<t.Infer<typeof input>>({
    name: "Skill",
    description: `Loads the instructions of a skill: a way of working that somebody wrote down for a kind of task.

- When a skill in the list fits the task, load it before you begin, and follow what it says.
- Use only names from the list, or that you learn later. A person who writes /name means the skill of that name.
- Do not load one twice; its text stays in this conversation.

Skills:
${list === "" ? "(none yet; some are named when you use files that they are for)" : list}`,
    input,
    call: ({ skill, args = "" }, context) => call({ name: skill, arguments: args }, context),
  });
}
