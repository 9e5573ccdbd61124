import { parsePermissionMode, permissionModes } from "@retinue/base/foundation/option-words.ts";
import { type OptionEntry, port } from "../../shared/option-entry.ts";
import type { CommandEntry, RefusedCommand } from "./command-entry.ts";

const json: OptionEntry = { flags: "--json", description: "print JSON" };
const checkOptions: readonly OptionEntry[] = [
  json,
  { flags: "--quiet", description: "only errors" },
  { flags: "--strict", description: "exit code 1 on warnings too" },
];
const listOptions: readonly OptionEntry[] = [
  { flags: "--all", description: "also what is shadowed or hidden by a deny rule" },
  json,
];

const conversionOptions: readonly OptionEntry[] = [
  { flags: "--to <format>", description: "the format to write; claude for import" },
  { flags: "--from <format>", description: "the format of PATH, if its path does not show it" },
  { flags: "--dry-run", description: "write nothing" },
  { flags: "--allow-wider", description: "write agents that get more rights too, with a note in the file" },
  { flags: "--force", description: "replace files that are there" },
  json,
];

const agentCommands: readonly CommandEntry[] = [
  {
    usage: "agents",
    description: "Lists all agents, highest scope first; with --json the sessions that are open.",
    note: "In a terminal: a browser of the agents, to look at, create, edit, check and try.",
    options: [
      {
        flags: "--all",
        description: "also hidden agents; --json: ended sessions",
      },
      { flags: "--json", description: "print the sessions that are open now" },
      {
        flags: "--cwd <folder>",
        description: "with --json: those below this folder",
        needs: [{ option: "--json" }],
      },
    ],
    run: async (context, options) => (await import("../agents.ts")).agents(context, options),
  },
  {
    usage: "agents list",
    description: "Lists all agents, highest scope first.",
    options: listOptions,
    run: async (context, options) =>
      (await import("../../commands/agents/agents-list.ts")).agentsList(context, options),
  },
  {
    usage: "agents show <name>",
    description: "Shows one agent, and where fields came from.",
    options: [{ flags: "--prompt", description: "the whole prompt instead of its first lines" }, json],
    run: async (context, options, [name]) =>
      (await import("../../commands/agents/agents-show.ts")).agentsShow(context, name, options),
  },
  {
    usage: "agents new [name]",
    description: "Writes a new agent file.",
    note: "In a terminal it asks for what is not given.",
    // `--tools` and `--model` are also options of a run, and the program takes them first wherever they are.
    options: [
      {
        flags: "--name <name>",
        description: "the name as an option: lower-case letters, digits and hyphens",
      },
      { flags: "--description <text>", description: "what it does, when to use it, what it is not for" },
      { flags: "--tools <list>", description: "such as Read,Grep,Glob; all tools when left out" },
      { flags: "--model <model>", description: "sonnet, opus, haiku, inherit, an id, or provider/model" },
      {
        flags: "--scope <scope>",
        description: "project (this folder, the default) or user (all your folders)",
        value: { type: "word", words: ["project", "user"] },
      },
      { flags: "--prompt <text>", description: "the system prompt; a starter is written when left out" },
      {
        flags: "--runner <runner>",
        description: "claude, codex, gemini, qwen, opencode, or the command line of another ACP agent",
      },
      { flags: "--force", description: "replace a file that is there" },
    ],
    run: async (context, options, [name]) =>
      (await import("../../commands/agents/agents-new.ts")).agentsNew(context, name, options),
  },
  {
    usage: "agents import [source]",
    description: "Converts agent files of other products.",
    note: "The source is a format, a file or a folder. No agent gets more rights than it was written for.",
    options: conversionOptions,
    run: async (context, options, [source]) =>
      (await import("../../commands/agents/agents-convert.ts")).agentsImport(context, source, options),
  },
  {
    usage: "agents export [target]",
    description: "Converts agents to another format.",
    note: "The target is a format, for the agents of .claude/agents; or a file or folder, with --to.",
    options: conversionOptions,
    run: async (context, options, [target]) =>
      (await import("../../commands/agents/agents-convert.ts")).agentsExport(context, target, options),
  },
  {
    usage: "agents diff <before> <after>",
    description: "Compares the rights of two agent files.",
    note: "The exit code is 1 when the second file allows more than the first.",
    options: [json],
    run: async (context, options, [before, after]) =>
      (await import("../../commands/agents/agents-convert.ts")).agentsDiff(
        context,
        { before, after },
        options,
      ),
  },
  {
    usage: "agents check [path...]",
    description: "Finds mistakes in definitions and settings.",
    options: [
      ...checkOptions,
      {
        flags: "--locked",
        description: "compare what it may do with retinue.lock; exit code 1 if it differs",
      },
      {
        flags: "--sarif",
        description: "with --locked: print SARIF, for code scanning",
        needs: [{ option: "--locked" }],
        conflicts: ["--json"],
      },
      {
        flags: "--comment",
        description: "with --locked: print Markdown, for a comment on a pull request",
        needs: [{ option: "--locked" }],
        conflicts: ["--json", "--sarif"],
      },
    ],
    run: async (context, options, [paths]) =>
      options["locked"] === true
        ? (await import("../../commands/agents/agents-lock.ts")).checkLocked(context, paths, options)
        : (await import("../../commands/agents/agents-check.ts")).agentsCheck(context, paths, options),
  },
  {
    usage: "agents lock",
    description: "Writes retinue.lock, the accepted rights.",
    options: [{ flags: "--dry-run", description: "write nothing" }, json],
    run: async (context, options) =>
      (await import("../../commands/agents/agents-lock.ts")).agentsLock(context, options),
  },
];

const listsSkills = "Lists all skills, and what each does besides its text.";

const skillCommands: readonly CommandEntry[] = [
  ...["skills", "skills list"].map(
    (usage): CommandEntry => ({
      usage,
      description: listsSkills,
      options: [json],
      run: async (context, options) =>
        (await import("../../commands/skills-list.ts")).skillsList(context, options),
    }),
  ),
  {
    usage: "skills check",
    description: "Finds mistakes in skills and commands.",
    options: checkOptions,
    run: async (context, options) =>
      (await import("../../commands/skills-check.ts")).skillsCheck(context, options),
  },
];

const checkAll: OptionEntry = {
  flags: "--check",
  description: "connect all that a run with -p would connect; exit code 1 when one fails",
};
const checkNone: OptionEntry = { flags: "--no-check", description: "connect none" };
const scopes = ["local", "project", "user"];
const writeScope: OptionEntry = {
  flags: "-s, --scope <scope>",
  description: "local (you, this project; the default), project or user",
  value: { type: "word", words: scopes },
};
const replaceServer: OptionEntry = { flags: "--force", description: "replace a server of this name" };

const mcpCommands: readonly CommandEntry[] = [
  {
    usage: "mcp",
    description: "Lists MCP servers; serves agents to MCP clients.",
    options: [json, checkAll],
    run: async (context, options) =>
      (await import("../../commands/mcp/mcp-list.ts")).mcpList(context, options),
  },
  {
    usage: "mcp list",
    description: "Lists the MCP servers of every place, and connects them to see how they do.",
    options: [json, { ...checkAll, default: "approved" }, checkNone],
    run: async (context, options) =>
      (await import("../../commands/mcp/mcp-list.ts")).mcpList(context, options),
  },
  {
    usage: "mcp get <name>",
    description: "Shows one server as it is written, and connects it to see how it does.",
    options: [json, checkNone],
    run: async (context, options, [name]) =>
      (await import("../../commands/mcp/mcp-get.ts")).mcpGet(context, name, options),
  },
  {
    usage: "mcp add <name> [words...]",
    description: "Adds a server: NAME -- COMMAND ARGS, or NAME URL.",
    options: [
      {
        flags: "-t, --transport <kind>",
        description: "stdio (the default), http or sse",
        value: { type: "word", words: ["stdio", "http", "sse"] },
      },
      writeScope,
      { flags: "-e, --env <name=value>", description: "a variable for the command", isRepeatable: true },
      { flags: "-H, --header <name: value>", description: "a header for the URL", isRepeatable: true },
      replaceServer,
    ],
    run: async (context, options, [name, words]) =>
      (await import("../../commands/mcp/mcp-add.ts")).mcpAdd(context, { name, words }, options),
  },
  {
    usage: "mcp add-json <name> <json>",
    description: "Adds a server from its configuration as JSON.",
    options: [writeScope, replaceServer],
    run: async (context, options, [name, text]) =>
      (await import("../../commands/mcp/mcp-add.ts")).mcpAddJson(context, { name, json: text }, options),
  },
  {
    usage: "mcp remove <name>",
    description: "Takes a server out of its file.",
    options: [{ ...writeScope, description: "local, project or user; the first that has it when left out" }],
    run: async (context, options, [name]) =>
      (await import("../../commands/mcp/mcp-add.ts")).mcpRemove(context, name, options),
  },
  {
    usage: "mcp login <name>",
    description: "Logs you in at a server, in your browser.",
    options: [
      { flags: "--no-browser", description: "show the address, and take the one the browser ends at" },
      { flags: "--scopes <list>", description: "ask for these, separated by spaces" },
    ],
    run: async (context, options, [name]) =>
      (await import("../../commands/mcp/mcp-login.ts")).mcpLogin(context, name, options),
  },
  {
    usage: "mcp logout <name>",
    description: "Forgets your login at a server.",
    run: async (context, _, [name]) =>
      (await import("../../commands/mcp/mcp-login.ts")).mcpLogout(context, name),
  },
  {
    usage: "mcp approve [name]",
    description: "Lets a server of the project start, as it is written now.",
    options: [{ flags: "--all", description: "all servers of the project" }],
    run: async (context, options, [name]) =>
      (await import("../../commands/mcp/mcp-approve.ts")).mcpApprove(context, name, options),
  },
  {
    usage: "mcp reject <name>",
    description: "Keeps a server of the project from starting.",
    run: async (context, _, [name]) =>
      (await import("../../commands/mcp/mcp-approve.ts")).mcpReject(context, name),
  },
  {
    usage: "mcp reset-project-choices",
    description: "Forgets which servers of the project were approved or rejected.",
    run: async (context) => (await import("../../commands/mcp/mcp-approve.ts")).mcpResetChoices(context),
  },
  {
    usage: "mcp serve",
    description: "Gives any MCP client the agents of this folder, over stdin and stdout.",
    options: [
      {
        flags: "--http [port]",
        description: "over HTTP on this machine instead; a free port when none is given",
        value: port,
      },
      { flags: "--cwd <folder>", description: "serve this folder instead of the one it is started in" },
      {
        flags: "--token-file <file>",
        description: "with --http: the token that clients must send",
        needs: [{ option: "--http" }],
      },
    ],
    run: async (context, options) =>
      (await import("../../mcp-server/mcp-serve.ts")).mcpServe(context, options),
  },
];

const permissionCommands: readonly CommandEntry[] = [
  {
    usage: "permissions",
    description: "Lists all rules and where each is.",
    options: [json],
    run: async (context, options) =>
      (await import("../../commands/permissions-list.ts")).permissionsList(context, options),
  },
  {
    usage: "permissions list",
    description: "Lists all rules, where each is, and what is held back.",
    options: [json],
    run: async (context, options) =>
      (await import("../../commands/permissions-list.ts")).permissionsList(context, options),
  },
  {
    usage: "permissions test [call]",
    description: "Shows what would happen to a call, and by which rule.",
    options: [
      { flags: "--tool <name>", description: "the tool, in place of a call such as 'Bash(git push)'" },
      { flags: "--input <json>", description: "its whole input", needs: [{ option: "--tool" }] },
      {
        flags: "--mode <mode>",
        description: "as if this permission mode were chosen",
        value: {
          type: "word",
          words: permissionModes,
          accepts: (text) => parsePermissionMode(text) !== undefined,
        },
      },
      { flags: "--explain", description: "everything that was looked at" },
      json,
    ],
    run: async (context, options, [call]) =>
      (await import("../../commands/permissions-test.ts")).permissionsTest(context, call, options),
  },
  ...(["add", "remove"] as const).map(
    (action): CommandEntry => ({
      usage: `permissions ${action} <rule>`,
      description:
        action === "add" ? "Writes a rule to a settings file." : "Takes a rule out of a settings file.",
      options: [
        {
          flags: "--list <list>",
          description: "allow, ask or deny; allow unless given",
          value: { type: "word", words: ["allow", "ask", "deny"] },
        },
        {
          flags: "--scope <scope>",
          description: "local (yours, here), project (shared) or user; local unless given",
          value: { type: "word", words: ["local", "project", "user"] },
        },
        json,
      ],
      run: async (context, options, [rule]) =>
        (await import("../../commands/permissions-change.ts")).permissionsChange(
          context,
          action,
          rule,
          options,
        ),
    }),
  ),
  {
    usage: "trust [folder]",
    description: "Lets the files of a folder run programs and widen rights.",
    options: [
      { flags: "--show", description: "only show what waits for trust, or has it" },
      { flags: "--yes", description: "trust it without asking" },
      { flags: "--remove", description: "take trust back" },
      { flags: "--json", description: "print JSON, and change nothing" },
    ],
    run: async (context, options, [folder]) =>
      (await import("../../commands/trust.ts")).trust(context, folder, options),
  },
];

const pluginCommands: readonly CommandEntry[] = [
  {
    usage: "plugin",
    alias: "plugins",
    description: "Lists plugins and switches them.",
    run: async (context) => (await import("../../commands/plugins.ts")).pluginList(context, {}),
  },
  {
    usage: "plugin list",
    description: "Lists the plugins there are, with those that are switched off.",
    options: [json],
    run: async (context, options) => (await import("../../commands/plugins.ts")).pluginList(context, options),
  },
  ...(["enable", "disable"] as const).map(
    (verb): CommandEntry => ({
      usage: `plugin ${verb} <plugin>`,
      description: `Writes to settings that a plugin is ${verb}d.`,
      options: [
        {
          flags: "-s, --scope <scope>",
          description: "user (the default), project or local",
          value: { type: "word", words: ["user", "project", "local"] },
        },
      ],
      run: async (context, options, [name]) =>
        (await import("../../commands/plugins.ts")).pluginSwitch(context, { name, verb }, options),
    }),
  ),
  {
    usage: "plugin validate <path>",
    description: "Finds mistakes in the manifest of a plugin or marketplace.",
    run: async (context, _, [path]) =>
      (await import("../../commands/plugins.ts")).pluginValidate(context, path),
  },
];

const hostCommands: readonly CommandEntry[] = [
  {
    usage: "doctor",
    description: "Checks the set-up and says what to do.",
    options: [json],
    run: async (context, options) => (await import("../../commands/doctor.ts")).doctor(context, options),
  },
  {
    usage: "schema [name]",
    description: "Prints the JSON Schema of a kind of file; without a name, lists them.",
    run: async (context, _, [name]) => (await import("../../commands/schema.ts")).schema(context, name),
  },
  {
    usage: "acp",
    description: "Serves an editor over stdin and stdout by the Agent Client Protocol.",
    run: async (context, options) => (await import("../../acp/serve-acp.ts")).serveAcp(context, options),
  },
  {
    usage: "auth",
    description: "Shows which keys are set.",
    run: async (context) => (await import("../../commands/auth-status.ts")).authStatus(context, {}),
  },
  {
    usage: "auth status",
    description: "Shows as JSON whether there is a key; exit code 1 without one.",
    options: [
      { flags: "--json", description: "print JSON, as without it" },
      { flags: "--text", description: "print a sentence instead of JSON" },
    ],
    run: async (context, options) =>
      (await import("../../commands/auth-status.ts")).authStatus(context, options),
  },
  ...["auth login", "login"].map(
    (usage): CommandEntry => ({
      usage,
      description: "Takes a key for the model, tries it, and keeps it for you alone; never in a project.",
      options: [
        {
          flags: "--keep <place>",
          description: "settings (yours, mode 0600) or keychain",
          value: { type: "word", words: ["settings", "keychain"] },
        },
        { flags: "--from-variable <name>", description: "keep no key: take it from this variable each time" },
      ],
      run: async (context, options) =>
        (await import("../../commands/auth-login.ts")).authLogin(context, options),
    }),
  ),
  ...["auth logout", "logout"].map(
    (usage): CommandEntry => ({
      usage,
      description: "Forgets the key that `retinue auth login` has kept.",
      run: async (context) => (await import("../../commands/auth-login.ts")).authLogout(context),
    }),
  ),
];

/** The commands about a folder and its files: agents, skills, servers, rules, plugins, keys. */
export const projectCommands: readonly CommandEntry[] = [
  ...agentCommands,
  ...skillCommands,
  ...mcpCommands,
  ...permissionCommands,
  ...hostCommands,
  ...pluginCommands,
];

const noAccount = "there is no account here; `retinue auth login` keeps a key";

/** Commands that scripts know from elsewhere and that cannot work here. */
export const refusedCommands: readonly RefusedCommand[] = [
  ...["install", "i", "uninstall", "remove", "update", "marketplace", "init", "prune"].map((name) => ({
    path: `plugin ${name}`,
    reason: "plugins are used as they are installed; install them by hand or use --plugin-dir",
  })),
  { path: "setup-token", reason: noAccount },
  { path: "install", reason: "it is installed with npm: npm install -g retinue" },
  { path: "update", reason: "it is updated with npm: npm install -g retinue@latest" },
  { path: "upgrade", reason: "it is updated with npm: npm install -g retinue@latest" },
  { path: "config", reason: "settings are changed in their files; docs/settings.md names them" },
  { path: "remote-control", reason: "sessions cannot be controlled from elsewhere" },
  { path: "auto-mode", reason: "the rules of this mode are not configurable" },
  { path: "gateway", reason: "there is no gateway here; set ANTHROPIC_BASE_URL to use one" },
  { path: "ultrareview", reason: "there are no sessions in the cloud here" },
  {
    path: "respawn",
    reason: "`retinue attach ID` continues a session, `retinue resume ID` an agent",
  },
  { path: "project", reason: "`retinue clean` removes old sessions" },
];
