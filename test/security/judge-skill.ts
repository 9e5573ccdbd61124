import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineAgent } from "@retinue/config/agents/define-agent.ts";
import { lookUpSkill } from "@retinue/config/skills/look-up-skill.ts";
import { findNamedSkills } from "@retinue/config/skills/named-skills.ts";
import { readSkillFile } from "@retinue/config/skills/read-skill-file.ts";
import { type Skill, type SkillScope, skillGrants } from "@retinue/config/skills/skill.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { isTrusted } from "./case-settings.ts";
import { judgeCall } from "./judge-call.ts";
import { writeCaseSettings } from "./run-case-session.ts";
import { type Answer, type Fields, NotHonoured, type Roots, type SecurityCase } from "./security-case.ts";

/** Who asks for a skill, and which of the two ways that is. */
export const skillCallers: ReadonlyMap<string, "preload" | "call"> = new Map([
  ["agent frontmatter", "preload"],
  ["frontmatter", "preload"],
  ["agent", "preload"],
  ["definition", "preload"],
  ["model", "call"],
  ["tool", "call"],
  ["skill tool", "call"],
  ["Skill tool", "call"],
  ["Skill", "call"],
]);

type Judge = (testCase: SecurityCase, roots: Roots) => Promise<Answer>;

/** What is decided about skills, by the surface of the case. */
export const skillJudges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["skill_load", judgeLoad],
  ["skill_grant", judgeGrant],
]);

/** Allowed is what a call, or a definition that names the skill, would get; where the case says which, that one. */
async function judgeLoad(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {} } = testCase;
  const { name, from, registered } = context;
  if (typeof name !== "string") throw new NotHonoured("the case names no skill");
  const scope = String(context["scope"] ?? "project");
  const plugin = scope === "plugin" ? await writePlugin(context, roots) : undefined;
  if (registered === true) await writeSkill(name, { scope, plugin, roots });
  await writeCaseSettings(testCase, roots);
  await using runtime = createRuntime({
    cwd: testCase.cwd ?? roots.P,
    home: roots.H,
    managedDirectory: join(roots.W, "managed"),
    env: { PATH: process.env["PATH"], HOME: roots.H },
    trusted: await isTrusted(testCase, roots),
    pluginDirectories: plugin === undefined ? undefined : [plugin.root],
  });
  const catalog = await runtime.skills();
  const asked = plugin === undefined || name.includes(":") ? name : `${plugin.name}:${name}`;
  const called = lookUpSkill(catalog.list(), asked, "model").type === "found";
  const agent = defineAgent({ name: "a", description: "It works.", prompt: "Work.", skills: [asked] });
  const isPreloaded = findNamedSkills(agent, catalog).skills.length > 0;
  if (typeof from !== "string") return called || isPreloaded ? "allow" : "deny";
  const isUsed = skillCallers.get(from) === "preload" ? isPreloaded : called;
  return isUsed ? "allow" : "deny";
}

interface CasePlugin {
  readonly name: string;
  readonly root: string;
}

async function writePlugin({ plugin, name }: Fields, { W }: Roots): Promise<CasePlugin> {
  const [before, ...rest] = String(name).split(":");
  const own = rest.length > 0 ? (before ?? "p") : "p";
  const found = { name: typeof plugin === "string" ? plugin : own, root: join(W, "plugin") };
  await mkdir(join(found.root, ".claude-plugin"), { recursive: true });
  await writeFile(join(found.root, ".claude-plugin/plugin.json"), JSON.stringify({ name: found.name }));
  return found;
}

async function writeSkill(
  name: string,
  {
    scope,
    plugin,
    roots,
  }: { readonly scope: string; readonly plugin: CasePlugin | undefined; readonly roots: Roots },
): Promise<void> {
  const places: Readonly<Record<string, string>> = {
    managed: join(roots.W, "managed/.claude/skills"),
    user: join(roots.H, ".claude/skills"),
    project: join(roots.P, ".claude/skills"),
    plugin: join(plugin?.root ?? "", "skills"),
  };
  const folder = join(places[scope] ?? "", name.split(":").at(-1) ?? name);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await writeFile(join(folder, "SKILL.md"), "---\ndescription: It helps.\n---\nDo it.\n", { mode: 0o644 });
}

/** The rules of a skill beside those of the session. A question to a person is one the one that has granted it. */
async function judgeGrant(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {}, tool } = testCase;
  const skill = skillOf(context);
  if (skill === undefined) return "deny";
  const trusted = await isTrusted(testCase, roots);
  const grants = skillGrants(skill, { trusted, directory: roots.P });
  const answer = await judgeCall(testCase, roots, { rights: grants });
  const effect = builtinTools.find(({ name }) => name === tool)?.effect;
  const isGranted = grants.allow.some(({ rule }) => rule.canonicalTool === tool);
  return answer === "allow" && effect === "interact" && !isGranted ? "ask" : answer;
}

function skillOf(context: Fields): Skill | undefined {
  const { allowedTools, disallowedTools } = context;
  // The schema of cases says that it is one of these.
  const scope = (context["scope"] ?? "project") as SkillScope;
  const name = String(context["name"] ?? context["skill"] ?? "s");
  const front = {
    description: "It helps.",
    ...(allowedTools === undefined ? {} : { "allowed-tools": allowedTools }),
    ...(disallowedTools === undefined ? {} : { "disallowed-tools": disallowedTools }),
  };
  const lines = Object.entries(front).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return readSkillFile(`---\n${lines.join("\n")}\n---\nDo it.\n`, {
    file: `/s/${name}/SKILL.md`,
    scope,
    kind: "skill",
    ...(scope === "plugin" ? { plugin: { name: "p", root: "/s" } } : {}),
  }).skill;
}
