import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineAgent } from "../../src/definitions/define-agent.ts";
import { type DecideOptions, decide } from "../../src/permissions/decide.ts";
import { gatherCallFacts } from "../../src/permissions/gather-call-facts.ts";
import { createPaths } from "../../src/settings/paths.ts";
import { discoverSkills } from "../../src/skills/discover-skills.ts";
import { lookUpSkill } from "../../src/skills/look-up-skill.ts";
import { findNamedSkills } from "../../src/skills/named-skills.ts";
import type { Skill } from "../../src/skills/skill.ts";
import { skillGrants } from "../../src/skills/skill-grants.ts";
import { builtinTools } from "../../src/tools/builtin-tools.ts";
import { mainPolicy, mergeCaseSettings, texts } from "./case-policy.ts";
import type { Answer, Roots, SecurityCase } from "./security-case.ts";

type Judge = (testCase: SecurityCase, roots: Roots) => Promise<Answer>;

/** What is decided about skills, by the surface of the case. */
export const skillJudges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["skill_load", judgeLoad],
  ["skill_grant", judgeGrant],
]);

/** Allowed is what both a call and a definition that names the skill would get. */
async function judgeLoad({ context = {} }: SecurityCase, { P, H }: Roots): Promise<Answer> {
  const name = String(context["name"]);
  if (context["registered"] === true) {
    const folder = join(P, ".claude/skills", name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "SKILL.md"), "---\ndescription: It helps.\n---\nDo it.\n");
  }
  const paths = createPaths({ home: H, cwd: P, environment: {}, platform: "linux" });
  const catalog = await discoverSkills({ paths });
  const called = lookUpSkill(catalog.list(), name, "model").type === "found";
  const agent = defineAgent({ name: "a", description: "It works.", prompt: "Work.", skills: [name] });
  const isPreloaded = findNamedSkills(agent, catalog).skills.length > 0;
  return called || isPreloaded ? "allow" : "deny";
}

/** The rules of a skill beside those of the session. A question to a person is one whoever has granted it. */
async function judgeGrant(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {}, trusted = true, interactive } = testCase;
  const policy = mainPolicy(testCase, mergeCaseSettings(testCase, roots), roots);
  const grants = skillGrants(skillOf(context), { trusted, directory: roots.P });
  const tool = testCase.tool ?? "";
  const effect = builtinTools.find(({ name }) => name === tool)?.effect ?? "execute";
  const cwd = testCase.cwd ?? roots.P;
  const whole = {
    ...policy,
    allow: [...policy.allow, ...grants.allow],
    deny: [...policy.deny, ...grants.deny],
  };
  const request = await gatherCallFacts(
    { tool, effect, input: testCase.input },
    { policy: whole, directory: cwd },
  );
  const options: DecideOptions = { attended: interactive !== false };
  const { type } = decide(request, whole, options);
  const isGranted = grants.allow.some(({ rule }) => rule.canonicalTool === tool);
  return type === "allow" && effect === "interact" && !isGranted ? "ask" : type;
}

function skillOf(context: Readonly<Record<string, unknown>>): Skill {
  const scope = (["managed", "user", "project", "plugin"] as const).find((each) => each === context["scope"]);
  return {
    name: "s",
    description: "It helps.",
    disableModelInvocation: false,
    userInvocable: true,
    allowedTools: texts(context["allowedTools"]),
    ...(context["disallowedTools"] === undefined
      ? {}
      : { disallowedTools: texts(context["disallowedTools"]) }),
    body: "Do it.",
    source: { scope: scope ?? "project", kind: "skill", file: "/s/SKILL.md", directory: "/s" },
  };
}
