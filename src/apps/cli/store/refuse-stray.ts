import { misuse } from "../session-options.ts";

/** The options that are part of what travels to a worker, or that say how the result is shown here. */
const understood: ReadonlySet<string> = new Set(
  `print outputFormat model effort agent tools allowedTools disallowedTools permissionMode dangerouslySkipPermissions
  maxTurns maxBudgetUsd maxTime systemPrompt systemPromptFile appendSystemPrompt appendSystemPromptFile sessionId
  sessionPersistence disableSlashCommands agents verbose store tenant workspace queue detach json`.split(
    /\s+/,
  ),
);

/** What was asked for and would not hold on a worker is refused. */
export function refuseStray(options: object): void {
  // Without `--no-ask`, the parser sets `ask` to true.
  const given = Object.entries(options).filter(([name, value]) => name !== "ask" || value === false);
  const stray = given.find(([name, value]) => value !== undefined && !understood.has(name));
  if (stray === undefined) return;
  const flag = `--${stray[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw misuse(
    `${flag} has no effect on agents that workers run.`,
    "Give it to `retinue serve` if it is about the worker; `retinue resume ID PROMPT` continues an agent.",
  );
}
