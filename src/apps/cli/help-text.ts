/** The help of the program itself, written by hand so that it fits a screen of 24 lines and 80 columns. */
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
  --model M  --agent NAME  --effort LEVEL  --system-prompt TEXT
  --output-format text|json|stream-json        what is printed
  --tools LIST  --allowedTools LIST  --disallowedTools LIST
  --permission-mode MODE  --dangerously-skip-permissions  --no-ask  --plain
  --max-turns N  --max-budget-usd X  --max-time 10m  --json-schema JSON|FILE
  -c, --continue  -r, --resume ID  --take-over  --fork-session  --session-id ID

Everywhere:
  --agents JSON|FILE  --plugin-dir DIR  --add-dir DIR  --settings FILE|JSON
  --setting-sources LIST  --mcp-config JSON  --trust  --verbose  -v, --version
  -h, --help, also after a command; retinue run --help: all options of a run
`;
