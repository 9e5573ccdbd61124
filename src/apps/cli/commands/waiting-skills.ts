import type { Skill } from "../../../skills/skill.ts";
import { splitSkill } from "../../../skills/skill-pieces.ts";
import { hookText, valueText } from "./trust-values.ts";

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
      value: valueText(command),
    })),
    ...hooks.map(({ event, handler }) => ({
      kind: "runs" as const,
      name: `skill ${name}, hooks.${event}`,
      value: hookText(handler),
    })),
    ...(allowedTools.length === 0
      ? []
      : [{ kind: "right" as const, name: `skill ${name}, allowed-tools`, value: allowedTools.join(", ") }]),
  ];
}
