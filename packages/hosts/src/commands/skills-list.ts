import { countBySeverity, plural } from "@retinue/base/foundation/diagnostic.ts";
import type { ListedSkill } from "@retinue/core/kernel/project/project-skills.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { type Column, renderTable } from "./views/render-table.ts";

/** `retinue skills`: which there are, from where, and what each does besides its text. */
export async function skillsList(
  context: CommandContext,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context.host;
  const { skills, diagnostics: found } = await openProject(context).skills.list();
  if (options.json === true) {
    const { error: errors, warning: warnings, note: notes } = countBySeverity(found);
    const diagnostics = { errors, warnings, notes };
    const view = { version: 1, skills: skills.map(asJson), diagnostics };
    stdout.write(`${JSON.stringify(view, undefined, 2)}\n`);
    return 0;
  }
  const dim = createPaint(stderr.isColourAllowed).dim;
  if (skills.length > 0) {
    const rows = skills.map(rowOf);
    stdout.write(
      renderTable({ columns, rows, width: stdout.columns, paint: createPaint(stdout.isColourAllowed) }),
    );
  }
  const remarks = [
    ...(skills.length === 0
      ? ["There are no skills. One is a folder .claude/skills/NAME with a SKILL.md."]
      : []),
    ...(found.some(({ severity }) => severity !== "note")
      ? [`${plural(found.length, "problem")}: run \`retinue skills check\`.`]
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

function rowOf({ skill, title, about, powers, mayGrant }: ListedSkill): string[] {
  const does = powers.join("; ");
  const held = does === "" || mayGrant ? "" : " (not trusted)";
  return [
    title,
    skill.source.kind === "command" ? `${skill.source.scope} command` : skill.source.scope,
    callersOf(skill),
    does === "" ? "-" : `${does}${held}`,
    about,
  ];
}

function callersOf({ userInvocable, disableModelInvocation }: ListedSkill["skill"]): string {
  if (disableModelInvocation) return userInvocable ? "people" : "nobody";
  return userInvocable ? "all" : "agents";
}

function asJson({ skill, mayGrant, runsCommands }: ListedSkill) {
  const { name, description, source, allowedTools = [], disallowedTools = [], hooks = [] } = skill;
  return {
    name,
    scope: source.scope,
    kind: source.kind,
    file: source.file,
    plugin: source.plugin?.name,
    description,
    userInvocable: skill.userInvocable,
    modelInvocable: !skill.disableModelInvocation,
    allowedTools,
    disallowedTools,
    runsCommands,
    hooks: hooks.length,
    mayGrant,
    ...(skill.context === undefined
      ? {}
      : { context: skill.context, agent: skill.agent ?? "general-purpose" }),
    model: skill.model,
  };
}
