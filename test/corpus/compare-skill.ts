import { readSkillFile } from "@retinue/config/skills/read-skill-file.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import { type CorpusEntry, compareFields, type Expectation, type Mismatch } from "./corpus-manifest.ts";

type Reading = ReturnType<typeof readSkillFile>;

/** Reads a SKILL.md the way discovery does and compares it with its expectation. */
export function compareSkill(entry: CorpusEntry, text: string): Mismatch[] {
  const reading = readSkillFile(text, { file: entry.file, scope: "project", kind: "skill" });
  const { skill } = reading;
  const expect = withEither(entry.expect);
  if (skill === undefined) {
    const reason = reading.diagnostics.find((diagnostic) => diagnostic.severity === "error")?.code;
    const { loads, reason: expected } = expect;
    return compareFields({ loads, reason: expected, soft: expect.soft ?? [] }, { loads: false, reason });
  }
  if (expect["loads"] === false && expect.soft?.includes("loads")) return [];
  return compareFields(expect, describe(skill, reading, expect));
}

/** With `either` a file without frontmatter may load or not; then its description is its loader's choice too. */
function withEither(expect: Expectation): Expectation {
  if (expect["loads"] !== "either") return expect;
  return { ...expect, soft: [...(expect.soft ?? []), "loads", "reason", "descriptionHead"] };
}

function describe(
  skill: Skill,
  { diagnostics, written }: Reading,
  expect: Expectation,
): Record<string, unknown> {
  const hasCode = (code: string): boolean => diagnostics.some((diagnostic) => diagnostic.code === code);
  const isDescribed = !hasCode("no-frontmatter") && !hasCode("no-description");
  const { reason } = expect;
  const isMissing = (reason === "no-name" && !written.has("name")) || hasCode(String(reason));
  return {
    ...skill,
    loads: true,
    // A file that loads in spite of a have no may carry the have no as its reason.
    reason: isMissing ? reason : null,
    // The manifest names a skill as its file does, and by its folder where the file has no name.
    name: skill.displayName ?? skill.name,
    descriptionHead: isDescribed ? skill.description.trim().slice(0, 60) : null,
    // A context that is not known has no effect, but it is what is in the file.
    context: skill.context ?? (written.get("context")?.value || null),
  };
}
