import { commandFlags, runFlags } from "../../shared/flags.ts";
import type { OptionEntry } from "../../shared/option-entry.ts";
import { wrap } from "../../shared/strip-control-characters.ts";

const allOptions: readonly OptionEntry[] = [...Object.values(runFlags), ...Object.values(commandFlags)];

/** What most people use, in the order in which they meet it. */
const commonOptions: readonly OptionEntry[] = [
  runFlags.print,
  runFlags.continue,
  runFlags.resume,
  runFlags.model,
  runFlags.permissionMode,
  runFlags.allowedTools,
  runFlags.agent,
  runFlags.outputFormat,
  runFlags.maxBudgetUsd,
  commandFlags.addDir,
];

/** The help of the program itself; with the next prompt below it, it fits a screen of 24 lines and 80 columns. */
export const helpText = `Usage: retinue [options] ["prompt"]    start a conversation; -p: one answer
       retinue <command> [options]     -h after a command shows its options

  agents, skills         list them; agents show NAME; agents|skills check; plan
  sessions, tasks        list them; inspect|replay|logs|stop|resume ID; worth
  workflow, mcp, plugin  list them; workflow run NAME|resume RUN; mcp serve, acp
  permissions, teams     list rules, teams; permissions test 'Bash(git push)'
  auth login, trust      save an API key; trust a folder; clean: delete old data
  merge, doctor, serve   merge agents' changes; check the set-up; eval, studio

${optionLines()}

${wrap(`All ${allOptions.length} options: retinue --help all (${groupNames().join(", ")}). -v shows the version.`, 80).join("\n")}
`;

/** Each with what it does; the flags and the text are those of the table. */
function optionLines(): string {
  return commonOptions
    .map(({ flags, description }) => `  ${shortFlags(flags)}`.padEnd(30) + description)
    .join("\n");
}

/** The one spelling that people write most. */
function shortFlags(flags: string): string {
  return flags.replace(/^--[a-z-]+, (?=--)/, "");
}

/** The headings of `retinue run --help`. */
function groupNames(): readonly string[] {
  const names = new Set(allOptions.flatMap(({ group }) => group?.replace(":", "").toLowerCase() ?? []));
  return [...names];
}
