import type { Command } from "commander";
import { nearestName } from "../../foundation/nearest-name.ts";
import { describe, type Invoke } from "./describe.ts";
import { misuse } from "./session-options.ts";

/** The commands about stored conversations. */
export function addSessionCommands(program: Command, invoke: Invoke): void {
  const sessions = describe(
    program.command("sessions"),
    "Lists the sessions of this folder, newest first; in a terminal, to resume, name and delete them.",
  )
    .argument("[command]")
    .usage("[list|search|resume|name|delete] [options]")
    .option("--json", "print JSON")
    .allowExcessArguments();
  const list = async () => import("./commands/sessions.ts");
  sessions.action((name: string | undefined, options: { json?: boolean }) => {
    if (name !== undefined)
      throw misuse(
        `There is no command \`sessions ${name}\`.`,
        `The commands are ${sessions.commands.map((command) => `sessions ${command.name()}`).join(", ")}.`,
      );
    return invoke(async (context) => (await list()).sessions(context, options));
  });
  describe(sessions.command("list"), "Lists the sessions of this folder, newest first.")
    .option("--json", "print JSON")
    .action((_, command: Command) =>
      invoke(async (context) => (await list()).sessionsList(context, command.optsWithGlobals())),
    );
  describe(
    sessions.command("search <text...>"),
    "Lists the sessions whose title, prompts or answers contain a text.",
  )
    .option("--json", "print JSON")
    .action((words: readonly string[], _, command: Command) =>
      invoke(async (context) =>
        (await list()).sessionsSearch(context, words.join(" "), command.optsWithGlobals()),
      ),
    );
  describe(
    sessions.command("resume <session>"),
    "Opens a session in the terminal: by id, the beginning of it, title, or part of it.",
  ).action((written: string, _, command: Command) =>
    invoke(async (context) => (await list()).sessionsResume(context, written, command.optsWithGlobals())),
  );
  describe(sessions.command("name <session> <title...>"), "Gives a session a title.").action(
    (written: string, words: readonly string[]) =>
      invoke(async (context) => (await list()).sessionsName(context, written, words.join(" "))),
  );
  describe(sessions.command("delete <session...>"), "Deletes sessions with their agents; none that is open.")
    .option("--yes", "without asking")
    .action((written: readonly string[], options: { yes?: boolean }) =>
      invoke(async (context) => (await list()).sessionsDelete(context, written, options)),
    );
}

/** The commands about skills: which there are, and what is wrong with them. */
export function addSkillCommands(program: Command, invoke: Invoke): void {
  const skills = describe(program.command("skills"), "Lists all skills, and what each does besides its text.")
    .argument("[command]")
    .usage("[list|check] [options]")
    .option("--json", "print JSON")
    .allowExcessArguments();
  skills.action((name: string | undefined, options: { json?: boolean }) => {
    if (name !== undefined) throw unknown(name);
    return invoke(async (context) =>
      (await import("./commands/skills-list.ts")).skillsList(context, options),
    );
  });
  describe(skills.command("list"), "Lists all skills, and what each does besides its text.")
    .option("--json", "print JSON")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/skills-list.ts")).skillsList(context, command.optsWithGlobals()),
      ),
    );
  describe(skills.command("check"), "Finds mistakes in skills and commands.")
    .option("--json", "print JSON")
    .option("--quiet", "only errors")
    .option("--strict", "exit code 1 on warnings too")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/skills-check.ts")).skillsCheck(context, command.optsWithGlobals()),
      ),
    );
}

function unknown(name: string) {
  const nearest = nearestName(name, ["list", "check"]);
  const advice =
    nearest === undefined
      ? "The commands are skills list, skills check."
      : `Did you mean \`retinue skills ${nearest}\`?`;
  return misuse(`There is no command \`skills ${name}\`.`, advice);
}
