import { isMapping } from "../../src/definitions/read-frontmatter.ts";
import { readSkillFile } from "../../src/skills/parse-skill.ts";
import type { Skill } from "../../src/skills/skill.ts";
import { type CorpusEntry, compareFields, type Expectation, type Mismatch } from "./corpus-manifest.ts";

type Reading = ReturnType<typeof readSkillFile>;

/** Reads a SKILL.md the way discovery does and compares it with its expectation. */
export function compareSkill(entry: CorpusEntry, text: string): Mismatch[] {
  const reading = readSkillFile(text, { file: entry.file, scope: "project", kind: "skill" });
  const { skill } = reading;
  const expect = withSoft(entry.expect, reading);
  if (skill === undefined) {
    const reason = reading.problems.find((problem) => problem.severity === "error")?.code;
    const { loads, reason: expected } = expect;
    const narrowed = { loads, reason: expected, soft: expect.soft ?? [] };
    return compareFields(narrowed, { loads: false, reason });
  }
  if (expect["loads"] === false && expect.soft?.includes("loads")) return [];
  return compareFields(expect, describe(skill, reading, expect));
}

/**
 * What a file without frontmatter says, what stands under a misspelt key, a mapping where a list belongs and a list where
 * a text belongs: reasonable loaders read these differently.
 */
function withSoft(expect: Expectation, { written }: Reading): Expectation {
  const soft = new Set(expect.soft ?? []);
  if (expect["loads"] === "either")
    for (const field of ["loads", "reason", "descriptionHead"]) soft.add(field);
  for (const [key, property] of properties) {
    const field = written.get(key);
    if (field !== undefined && field.key !== key) soft.add(property);
  }
  if (isMapping(written.get("allowed-tools")?.value)) soft.add("allowedTools");
  const hint = written.get("argument-hint");
  if (Array.isArray(hint?.value) && /["'\n]/.test(hint.text)) soft.add("argumentHint");
  return { ...expect, soft: [...soft] };
}

const properties = [
  ["allowed-tools", "allowedTools"],
  ["disable-model-invocation", "disableModelInvocation"],
  ["user-invocable", "userInvocable"],
  ["argument-hint", "argumentHint"],
] as const;

function describe(
  skill: Skill,
  { problems, written }: Reading,
  expect: Expectation,
): Record<string, unknown> {
  const lacks = (code: string): boolean => problems.some((problem) => problem.code === code);
  const isWritten = !lacks("no-frontmatter") && !lacks("no-description");
  const { reason } = expect;
  const isLack = (reason === "no-name" && !written.has("name")) || lacks(String(reason));
  return {
    ...skill,
    loads: true,
    reason: isLack ? reason : null,
    name: expect["name"] === skill.name ? skill.name : (skill.displayName ?? skill.name),
    descriptionHead: isWritten ? skill.description.trim().slice(0, 60) : null,
    allowedTools: isEverything(skill.allowedTools) ? (expect["allowedTools"] ?? null) : skill.allowedTools,
    // A context that is not known has no effect, but it is what the file says.
    context: skill.context ?? written.get("context")?.value,
  };
}

/** A lone `*` is a list of one or no list, as one likes. */
function isEverything(tools: readonly string[] | undefined): boolean {
  return tools?.length === 1 && tools[0] === "*";
}
