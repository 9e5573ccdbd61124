import { commandFlags, runFlags } from "../../shared/flags.ts";
import type { OptionEntry } from "../../shared/option-entry.ts";

/** The help of the program itself; it fits a screen of 24 lines and 80 columns. */
export const helpText = `Usage: retinue [options] ["prompt"]    talk in the terminal; with -p: one answer
       retinue <command> [options]

Commands:
  agents, skills         list them; also: agents show NAME, agents|skills check
  sessions, tasks        inspect|replay|logs|stop|resume ID, plan, eval, studio
  mcp, plugin, acp       list MCP servers, plugins; mcp serve; acp: for editors
  permissions, teams     list rules, teams; permissions test 'Bash(git push)'
  trust [FOLDER]         let a folder's hooks and settings count; --remove
  doctor, clean, serve   check the set-up; remove old sessions; serve a --store

Running:
${briefLines(Object.values(runFlags))}

Everywhere:
${briefLines(Object.values(commandFlags), ["-v, --version"])}
  -h, --help, also after a command; retinue run --help: all options of a run
`;

/** In the order of the table, each in the first line that has room for it. */
function briefLines(options: readonly OptionEntry[], more: readonly string[] = []): string {
  const lines: string[] = [];
  for (const brief of [...options.flatMap((option) => option.brief ?? []), ...more]) {
    const at = lines.findIndex((line) => line.length + 2 + brief.length <= 80);
    if (at === -1) lines.push(`  ${brief}`);
    else lines[at] += `  ${brief}`;
  }
  return lines.join("\n");
}
