import { oneLine } from "../../../definitions/describe-agents.ts";
import { firstSentence } from "../../../definitions/first-sentence.ts";
import { describePowers, mayGrant, type Skill } from "../../../skills/skill.ts";
import { hasCommands } from "../../../skills/skill-pieces.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint } from "../views/paint.ts";
import { countBySeverity, plural } from "../views/render-diagnostics.ts";
import { type Column, renderTable } from "../views/render-table.ts";
import { gatherSkills } from "./gather-skills.ts";

/** `retinue skills`: which there are, from where, and what each does besides its text. */
export async function skillsList(
  context: CommandContext,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context.host;
  const { session, catalog } = await gatherSkills(context);
  const { trusted } = session.trust;
  const skills = catalog.list();
  if (options.json === true) {
    const { error: errors, warning: warnings, note: notes } = countBySeverity(catalog.diagnostics);
    const diagnostics = { errors, warnings, notes };
    const view = { version: 1, skills: skills.map((skill) => asJson(skill, trusted)), diagnostics };
    stdout.write(`${JSON.stringify(view, undefined, 2)}\n`);
    return 0;
  }
  const dim = createPaint(stderr.isColourAllowed).dim;
  if (skills.length > 0) {
    const rows = skills.map((skill) => rowOf(skill, trusted));
    stdout.write(
      renderTable({ columns, rows, width: stdout.columns, paint: createPaint(stdout.isColourAllowed) }),
    );
  }
  const remarks = [
    ...(skills.length === 0
      ? ["There are no skills. One is a folder .claude/skills/NAME with a SKILL.md."]
      : []),
    ...(catalog.diagnostics.some(({ severity }) => severity !== "note")
      ? [`${plural(catalog.diagnostics.length, "problem")}: run \`retinue skills check\`.`]
      : []),
  ];
  for (const remark of remarks) stderr.write(`${dim(remark)}\n`);
  return 0;
}

const columns: readonly Column[] = [
  { heading: "NAME", atLeast: 10, atMost: 34, style: "name" },
  { heading: "SCOPE", atLeast: 8, atMost: 16 },
  { heading: "CALLED BY", atLeast: 9, atMost: 14 },
  { heading: "DOES MORE", atLeast: 10, atMost: 30 },
  { heading: "DESCRIPTION", atLeast: 16, elseBelow: 44, style: "dim" },
];

function rowOf(skill: Skill, trusted: boolean): string[] {
  const does = describePowers(skill).join("; ");
  const held = does === "" || mayGrant(skill, trusted) ? "" : " (not trusted)";
  return [
    oneLine(skill.name),
    skill.source.kind === "command" ? `${skill.source.scope} command` : skill.source.scope,
    callersOf(skill),
    oneLine(does === "" ? "-" : `${does}${held}`),
    firstSentence(oneLine(skill.description)),
  ];
}

function callersOf({ userInvocable, disableModelInvocation }: Skill): string {
  if (disableModelInvocation) return userInvocable ? "people" : "nobody";
  return userInvocable ? "all" : "agents";
}

function asJson(skill: Skill, trusted: boolean) {
  const { name, description, source, allowedTools = [], disallowedTools = [], hooks = [] } = skill;
  return {
    name,
    scope: source.scope,
    kind: source.kind,
    file: source.file,
    ...(source.plugin === undefined ? {} : { plugin: source.plugin.name }),
    description,
    userInvocable: skill.userInvocable,
    modelInvocable: !skill.disableModelInvocation,
    allowedTools,
    disallowedTools,
    runsCommands: hasCommands(skill.body),
    hooks: hooks.length,
    mayGrant: mayGrant(skill, trusted),
    ...(skill.context === undefined
      ? {}
      : { context: skill.context, agent: skill.agent ?? "general-purpose" }),
    ...(skill.model === undefined ? {} : { model: skill.model }),
  };
}
