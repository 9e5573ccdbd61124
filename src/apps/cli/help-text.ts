/** The help of the program itself, written by hand so that it fits a screen of 24 lines and 80 columns. */
export const helpText = `Usage: retinue [options] <command>

See, check and write the agents of your .claude folders and plugins.

Commands:
  agents                 list all agents with scope, model and tools
  agents show NAME       everything about one, and where each field came from
  agents new             write a new agent file
  agents check [PATH…]   find mistakes and weak descriptions
  doctor                 check the set-up and say what to do

Options:
  --agents JSON|FILE         agents for this run, keyed by name
  --settings FILE|JSON       more settings, above those of the user and project
  --setting-sources LIST     which settings to read: user,project,local
  --plugin-dir FOLDER        use the plugin in this folder (repeatable)
  --add-dir FOLDER           also read its .claude/agents (repeatable)
  --disallowedTools LIST     deny rules, such as "Task(Explore)"
  --trust                    trust the working folder for this run
  --verbose                  show stack traces of errors
  -v, --version    -h, --help, also after a command: retinue agents check --help
`;
