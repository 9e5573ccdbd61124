import type { Command } from "commander";
import { addApprovalCommands } from "./add-approval-commands.ts";
import { describe, type Invoke } from "./describe.ts";

/** The commands about child agents: what one would be, which there are, and what can be done with them. */
export function addTaskCommands(program: Command, invoke: Invoke): void {
  addPlanCommands(program, invoke);
  addLookCommands(program, invoke);
  addControlCommands(program, invoke);
}

function addPlanCommands(program: Command, invoke: Invoke): void {
  describe(program.command("plan <name>"), "Shows what a child agent would be, and why. Starts nothing.")
    .option("--background", "as if it were started in the background")
    .option("--task <text>", "the task it would get")
    .option("--json", "print JSON")
    .action((name: string, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/plan.ts")).plan(context, name, command.optsWithGlobals()),
      ),
    );
  describe(
    program.command("run-plan <file>"),
    "Carries out the plan of a child agent, written by plan --json.",
  ).action((file: string, _, command: Command) =>
    invoke(async (context) =>
      (await import("./commands/run-plan.ts")).runPlan(context, file, command.optsWithGlobals()),
    ),
  );
}

function addLookCommands(program: Command, invoke: Invoke): void {
  describe(program.command("tasks"), "Lists the child agents of this folder's sessions.")
    .option("--all", "also those that ended long ago")
    .option("--interrupted", "only what died with its process, with what was in flight")
    .option("--json", "print JSON")
    .action((options) =>
      invoke(async (context) => (await import("./commands/tasks/tasks.ts")).tasks(context, options)),
    );
  describe(program.command("logs <id>"), "Shows what a child agent said and did.")
    .option("-f, --follow", "follow until it ends")
    .action((id: string, options) =>
      invoke(async (context) => (await import("./commands/tasks/logs.ts")).logs(context, id, options)),
    );
  describe(program.command("inspect [id...]"), "Shows what a session or agent did, and what it cost.")
    .option("--html <file>", "write it as a page of its own")
    .option("-f, --follow", "paint it again until it ends")
    .option("--steps", "also every step of every agent")
    .option("--json", "print JSON")
    .action((words: readonly string[], options) =>
      invoke(async (context) =>
        (await import("./commands/tasks/inspect.ts")).inspect(context, words, options),
      ),
    );
  addReplay(program, invoke);
  addApprovalCommands(program, invoke);
  addEval(program, invoke);
  addStudio(program, invoke);
}

function addControlCommands(program: Command, invoke: Invoke): void {
  describe(program.command("stop <id>"), "Ends a running child agent, also one of another process.").action(
    (id: string) => invoke(async (context) => (await import("./commands/tasks/stop.ts")).stop(context, id)),
  );
  describe(program.command("resume [id] [prompt...]"), "Continues with a child agent that has ended.")
    .option("--interrupted", "all that died with their process, of the newest session that has any")
    .option("--json", "with --interrupted: print JSON")
    .action((id: string | undefined, words: readonly string[], _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/tasks/resume.ts")).resume(context, id, {
          words,
          options: command.optsWithGlobals(),
        }),
      ),
    );
  describe(
    program.command("clean"),
    "Removes old sessions of all folders, and unchanged worktrees; nothing in use.",
  )
    .option("--dry-run", "dry run: show what would be removed")
    .option("--days <n>", "older than this; otherwise what settings say, or 30")
    .option("--json", "print JSON")
    .action((options) =>
      invoke(async (context) => (await import("./commands/clean.ts")).clean(context, options)),
    );
}

function addReplay(program: Command, invoke: Invoke): void {
  describe(
    program.command("replay [id...]"),
    "Goes through a recorded session again without a model, and shows what differs.",
  )
    .usage("[id] [--tools recorded|real] [--from MESSAGE] [--agent NAME] [--model M] [options]")
    .option("--from <message>", "ask the model from this answer or message on")
    .option("--prompt <text>", "with --from: in place of the recorded prompt")
    .option("--save <folder>", "write it as a test that retinue/testing runs")
    .option("--runner <name>", "with --save: node (node:test, the default) or vitest")
    .option("--json", "print JSON")
    .action((words: readonly string[], _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/replay.ts")).replay(context, words, command.optsWithGlobals()),
      ),
    );
}

function addEval(program: Command, invoke: Invoke): void {
  describe(
    program.command("eval <file>"),
    "Runs tasks with several agents and models, scores the answers, and shows a table.",
  )
    .option("--results <file>", "where results are kept; FILE.results.jsonl when left out")
    .option("--fresh", "forget earlier results and run everything")
    .option("--html <file>", "also write a page")
    .option("--json", "print JSON")
    .action((file: string, _, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/eval.ts")).evaluate(context, file, command.optsWithGlobals()),
      ),
    );
}

function addStudio(program: Command, invoke: Invoke): void {
  describe(
    program.command("studio"),
    "Serves a page for the browser that shows sessions live, and can stop, resume and write to agents.",
  )
    .option("--all", "the sessions of all folders, not only of this one")
    .option("--port <n>", "the port; a free one when left out")
    .option("--host <address>", "listen on another address than 127.0.0.1; needs --token")
    .option("--token <text>", "the token of the link; a random one when left out")
    .option("--store <url>", "the sessions of a store instead of this folder's")
    .action((options) =>
      invoke(async (context) => (await import("../studio/studio.ts")).studio(context, options)),
    );
}
