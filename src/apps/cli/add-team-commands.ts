import type { Command } from "commander";
import { describe, type Invoke } from "./describe.ts";
import { misuse } from "./session-options.ts";

const load = () => import("./commands/teams.ts");

/** The commands about teams: which there are, what they do, and how to end them. */
export function addTeamCommands(program: Command, invoke: Invoke): void {
  const teams = describe(program.command("teams"), "Lists all teams, their members and tasks.")
    .argument("[command]")
    .usage("[list|show|board|messages|send|watch|stop|clean] [options]")
    .option("--json", "print JSON")
    .allowExcessArguments();
  teams.action((name: string | undefined, options) => {
    if (name !== undefined) throw unknown(name, teams);
    return invoke(async (context) => (await load()).teamsList(context, options));
  });
  // Started by the lead of a team, not by people.
  program
    .command("run-teammate", { hidden: true })
    .action(() =>
      invoke(async (context) => (await import("./commands/run-teammate.ts")).runTeammate(context)),
    );
  const add = (usage: string, about: string): Command =>
    describe(teams.command(usage), about).option("--json", "print JSON");
  add("list", "Lists all teams, their members and tasks.").action((_, command: Command) =>
    invoke(async (context) => (await load()).teamsList(context, command.optsWithGlobals())),
  );
  add("show <name>", "Shows a team: lead, members and board.").action((name: string, _, command: Command) =>
    invoke(async (context) => (await load()).teamsShow(context, name, command.optsWithGlobals())),
  );
  add("board <name>", "Shows the tasks of a team.").action((name: string, _, command: Command) =>
    invoke(async (context) => (await load()).teamsBoard(context, name, command.optsWithGlobals())),
  );
  add("messages <name> [member]", "Shows the mail of a team, or of one member.").action(
    (name: string, member: string | undefined, _, command: Command) =>
      invoke(async (context) =>
        (await load()).teamsMessages(context, { name, member }, command.optsWithGlobals()),
      ),
  );
  describe(teams.command("send <name> <member> <text...>"), "Sends a message of yours to a member.").action(
    (name: string, member: string, words: readonly string[]) =>
      invoke(async (context) => (await load()).teamsSend(context, { name, member, words })),
  );
  describe(
    teams.command("watch <name> <member>"),
    "Shows what a member does until it ends; what you type is sent to it.",
  ).action((name: string, member: string) =>
    invoke(async (context) =>
      (await import("./commands/teams-watch.ts")).teamsWatch(context, { name, member }),
    ),
  );
  describe(teams.command("stop <name> [member]"), "Ends one member, or all of them.").action(
    (name: string, member: string | undefined) =>
      invoke(async (context) => (await load()).teamsStop(context, { name, member })),
  );
  describe(teams.command("clean [name]"), "Removes teams that no process leads, with their mail and tasks.")
    .option("--dry-run", "only show what would be removed")
    .option("--force", "with a name: also when its config cannot be read")
    .action((name: string | undefined, options) =>
      invoke(async (context) => (await load()).teamsClean(context, name, options)),
    );
}

function unknown(name: string, teams: Command) {
  const commands = teams.commands.map((command) => `teams ${command.name()}`).join(", ");
  return misuse(`There is no command \`teams ${name}\`.`, `The commands are ${commands}.`);
}
