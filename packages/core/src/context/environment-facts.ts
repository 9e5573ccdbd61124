import { escapeNames } from "@retinue/base/foundation/escape-control-tags.ts";

/** What an agent should know of the machine it works on. Gathered once per session, so that prompts stay the same. */
export interface EnvironmentFacts {
  readonly directory: string;
  readonly additionalDirectories: readonly string[];
  readonly isRepository: boolean;
  readonly platform: string;
  readonly systemVersion: string;
  readonly shell?: string;
  /** Year, month and day where the person is. */
  readonly date: string;
  readonly model?: string;
}

/** The facts as lines for a prompt. */
export function environmentText(facts: EnvironmentFacts): string {
  const lines = [
    ["Working directory", facts.directory],
    ["Further directories", facts.additionalDirectories.join(", ")],
    ["Git repository", facts.isRepository ? "yes" : "no"],
    ["Platform", facts.platform],
    ["System", facts.systemVersion],
    ["Shell", facts.shell ?? ""],
    ["Date at the start of the session", facts.date],
    ["Model", facts.model ?? ""],
  ] as const;
  const known = lines.filter(([, value]) => value !== "");
  const values = escapeNames(known.map(([, value]) => value));
  const shown = known.map(([name], at) => `${name}: ${values[at]}`);
  return ["# Environment", ...shown].join("\n");
}

/** The day by the clock on the wall, as year-month-day. */
export function localDate(now: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}
