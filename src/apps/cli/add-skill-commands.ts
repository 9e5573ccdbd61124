import type { Command } from "commander";
import { nearestName } from "../../foundation/nearest-name.ts";
import { describe, type Invoke } from "./describe.ts";
import { misuse } from "./session-options.ts";

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
