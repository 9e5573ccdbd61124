import type { Skill } from "../../../skills/skill.ts";
import { splitSkill } from "../../../skills/skill-pieces.ts";

/** What of a project's skill waits for trust: its commands, its hooks, and the calls it allows. */
export function waitingOfSkill({ name, body, hooks = [], allowedTools = [] }: Skill): readonly {
  readonly kind: "runs" | "right";
  readonly name: string;
  readonly value?: string;
}[] {
  const commands = splitSkill(body).flatMap((piece) => (piece.type === "command" ? [piece.command] : []));
  return [
    ...commands.map((command) => ({
      kind: "runs" as const,
      name: `skill ${name}, command`,
      value: command.replace(/\s*\n\s*/g, "; "),
    })),
    ...hooks.map(({ event, handler }) => {
      const value = handler.command ?? handler.url ?? handler.prompt ?? handler.tool;
      return {
        kind: "runs" as const,
        name: `skill ${name}, hooks.${event}`,
        ...(value === undefined ? {} : { value }),
      };
    }),
    ...(allowedTools.length === 0
      ? []
      : [{ kind: "right" as const, name: `skill ${name}, allowed-tools`, value: allowedTools.join(", ") }]),
  ];
}
