/** The help of the program itself, written by hand so that it fits a screen of 24 lines and 80 columns. */
export const helpText = `Usage: retinue [options] <command>

See, check and write the agents of your .claude folders and plugins.

Commands:
  agents              list all agents: whence, model, tools (--all, --json)
  agents show NAME    everything about one agent, and where each field came from
  agents new          write a new agent file
  agents check [PATH] find mistakes and weak descriptions (--json, --strict)
  doctor              check the set-up and say what to do

Options:
  --agents JSON|FILE         agents for this run, keyed by name
  --settings FILE|JSON       more settings, above those of the user and project
  --setting-sources LIST     which settings to read: user,project,local
  --plugin-dir FOLDER        use the plugin in this folder (may be repeated)
  --add-dir FOLDER           also read .claude/agents of this folder (ditto)
  --disallowedTools LIST     deny rules, such as "Task(Explore)" (ditto)
  --trust                    trust the working folder for this run
  --verbose                  show stack traces of errors
  -v, --version    -h, --help (also after a command)
`;
