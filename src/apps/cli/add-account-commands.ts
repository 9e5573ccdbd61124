import type { Command } from "commander";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { describe, type Invoke } from "./describe.ts";
import { misuse } from "./session-options.ts";

/** Commands for editors, about keys and plugins, and those that scripts know from elsewhere and that cannot work here. */
export function addAccountCommands(program: Command, invoke: Invoke): void {
  addAcp(program, invoke);
  addAuth(program, invoke);
  addPlugins(program, invoke);
  for (const [name, reason] of refused) refuse(program, name, reason);
}

function addAcp(program: Command, invoke: Invoke): void {
  describe(
    program.command("acp"),
    "Serves an editor over stdin and stdout by the Agent Client Protocol.",
  ).action((_, command: Command) =>
    invoke(async (context) =>
      (await import("../acp/serve-acp.ts")).serveAcp(context, command.optsWithGlobals()),
    ),
  );
}

function addAuth(program: Command, invoke: Invoke): void {
  const auth = describe(program.command("auth"), "Shows which keys are set.").argument("[command]");
  auth.action((name: string | undefined) => {
    refuseUnknown(auth, name);
    return invoke(async (context) => (await import("./commands/auth-status.ts")).authStatus(context, {}));
  });
  describe(auth.command("status"), "Shows as JSON whether there is a key; exit code 1 without one.")
    .option("--json", "print JSON, as without it")
    .option("--text", "print a sentence instead of JSON")
    .action((options) =>
      invoke(async (context) => (await import("./commands/auth-status.ts")).authStatus(context, options)),
    );
  const reason = "there is no account here; set ANTHROPIC_API_KEY or the key of another provider";
  refuse(auth, "login", reason);
  refuse(auth, "logout", "there is no account here; unset the variable that holds the key");
}

function addPlugins(program: Command, invoke: Invoke): void {
  const plugin = describe(
    program.command("plugin").alias("plugins"),
    "Lists plugins and switches them.",
  ).argument("[command]");
  plugin.action((name: string | undefined) => {
    refuseUnknown(plugin, name);
    return invoke(async (context) => (await import("./commands/plugins.ts")).pluginList(context, {}));
  });
  describe(plugin.command("list"), "Lists the plugins there are, with those that are switched off.")
    .option("--json", "print JSON")
    .action((options) =>
      invoke(async (context) => (await import("./commands/plugins.ts")).pluginList(context, options)),
    );
  for (const verb of ["enable", "disable"] as const)
    describe(plugin.command(`${verb} <plugin>`), `Writes to settings that a plugin is ${verb}d.`)
      .option("-s, --scope <scope>", "user (the default), project or local")
      .action((name: string, options) =>
        invoke(async (context) =>
          (await import("./commands/plugins.ts")).pluginSwitch(context, { name, verb }, options),
        ),
      );
  describe(
    plugin.command("validate <path>"),
    "Finds mistakes in the manifest of a plugin or marketplace.",
  ).action((path: string) =>
    invoke(async (context) => (await import("./commands/plugins.ts")).pluginValidate(context, path)),
  );
  const reason = "plugins are used as they are installed; install them by hand or use --plugin-dir";
  for (const name of ["install", "i", "uninstall", "remove", "update", "marketplace", "init", "prune"])
    refuse(plugin, name, reason);
}

function refuseUnknown(parent: Command, name: string | undefined): void {
  if (name === undefined) return;
  const known = parent
    .createHelp()
    .visibleCommands(parent)
    .map((command) => `${parent.name()} ${command.name()}`);
  throw misuse(`There is no command \`${parent.name()} ${name}\`.`, `The commands are ${known.join(", ")}.`);
}

/** Commands that exist elsewhere. */
const refused: readonly (readonly [name: string, reason: string])[] = [
  ["setup-token", "there is no account here; set ANTHROPIC_API_KEY or the key of another provider"],
  ["install", "it is installed with npm: npm install -g retinue"],
  ["update", "it is updated with npm: npm install -g retinue@latest"],
  ["upgrade", "it is updated with npm: npm install -g retinue@latest"],
  ["config", "settings are changed in their files; docs/settings.md names them"],
  ["remote-control", "sessions cannot be controlled from elsewhere"],
  ["auto-mode", "the rules of this mode are not configurable"],
  ["gateway", "there is no gateway here; set ANTHROPIC_BASE_URL to use one"],
  ["ultrareview", "there are no sessions in the cloud here"],
  ["attach", "sessions do not run detached here; `retinue tasks` lists agents, `retinue logs ID` shows one"],
  ["respawn", "sessions do not run detached here; `retinue resume ID` continues an agent"],
  ["rm", "`retinue clean` removes old sessions"],
  ["project", "`retinue clean` removes old sessions"],
];

function refuse(parent: Command, name: string, reason: string): void {
  parent
    .command(name, { hidden: true })
    .helpCommand(false)
    .argument("[words...]")
    .allowUnknownOption()
    .action(() => {
      const path = parent.parent === null ? name : `${parent.name()} ${name}`;
      throw new RetinueError("not-supported", `\`${path}\` is not supported: ${reason}.`);
    });
}
