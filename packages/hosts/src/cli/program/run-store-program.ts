import { type Command, CommanderError } from "commander";
import type { CliHost } from "../../shared/cli-host.ts";
import { type CommandFlags, commandFlags, runFlags } from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import { addOptions } from "../../shared/option-entry.ts";
import type { StoreAddress, StoreContext } from "../../shared/with-store.ts";
import { createCommand, describe } from "./command-entry.ts";

export interface StoreOptions {
  readonly store?: string;
  readonly tenant?: string;
}

/** The commands for agents in a store; the same words as without one, as far as they mean the same. */
export async function runStoreProgram(arguments_: readonly string[], host: CliHost): Promise<number> {
  let code = 0;
  const program = createCommand(host)
    .option("--store <url>", "postgres://user@host/database, or file:///folder; or RETINUE_STORE")
    .option("--tenant <name>", "whose agents these are")
    .option("--workspace <type>", "with -p: shared, pinned or git")
    .option("--queue <name>", "a queue of workers; may be repeated with serve", collect)
    .option("--remote-children", "with -p: children are agents of the store, on any worker")
    .option("--detach", "with -p: only print the id")
    .option("--json", "print JSON");
  addOptions(program, [...Object.values(commandFlags), ...Object.values(runFlags)]);
  const run = async (task: (context: StoreContext) => Promise<number>): Promise<void> => {
    const options = program.opts<CommandFlags & StoreOptions>();
    code = await task({ host, session: options, store: storeOf(options, host) });
  };
  addAgentCommands(program, run);
  addApprovalCommands(program, run);
  addAdminCommands(program, run);
  program.action((words: readonly string[], options) =>
    run(async (context) =>
      (await import("../../commands/store/print-in-store.ts")).printInStore(context, words, options),
    ),
  );
  try {
    await program.parseAsync(arguments_, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw misuse(`${error.message.replace(/^error: /, "")}.`);
  }
  return code;
}

type Run = (task: (context: StoreContext) => Promise<number>) => Promise<void>;

function addAgentCommands(program: Command, run: Run): void {
  const load = () => import("../../commands/store/store-agents.ts");
  const tasks = describe(program.command("tasks"), "Lists the agents in the store.").action(
    (_, command: Command) =>
      run(async (context) => (await load()).listAgents(context, command.optsWithGlobals())),
  );
  describe(
    tasks.command("retry <id>"),
    "Gives an agent to the workers again that they could not run, a dead letter.",
  ).action((id: string) => run(async (context) => (await load()).retry(context, id)));
  describe(program.command("inspect <id>"), "Shows the status of an agent and what it waits for.").action(
    (id: string, _, command: Command) =>
      run(async (context) => (await load()).inspect(context, id, command.optsWithGlobals())),
  );
  describe(program.command("logs <id>"), "Shows what an agent said and did.")
    .option("-f, --follow", "follow until it ends")
    .action((id: string, options) => run(async (context) => (await load()).logs(context, id, options)));
  describe(
    program.command("plan <name>"),
    "Shows what a child agent would be, and which workers could run it.",
  )
    .option("--background", "as if it were started in the background")
    .option("--task <text>", "the task it would get")
    .action((name: string, _, command: Command) =>
      run(async (context) =>
        (await import("../../commands/store/plan-in-store.ts")).planInStore(
          context,
          name,
          command.optsWithGlobals(),
        ),
      ),
    );
  describe(
    program.command("run-plan <file>"),
    "Lets a worker carry out the plan of a child agent, written by plan --json.",
  )
    .option(
      "--accept-rights <list>",
      "where this process runs it: what counts of the plan beyond its own rights",
    )
    .action((file: string, _, command: Command) =>
      run(async (context) =>
        (await import("../../commands/store/print-in-store.ts")).runPlanInStore(
          context,
          file,
          command.optsWithGlobals(),
        ),
      ),
    );
  describe(
    program.command("studio"),
    "Serves a page for the browser that shows the sessions of the store live.",
  )
    .option("--port <n>", "the port; a free one when left out")
    .option("--host <address>", "listen on another address than 127.0.0.1; needs --token")
    .option("--token <text>", "the token of the link; a random one when left out")
    .action((options) =>
      run(async (context) => (await import("../../studio/studio.ts")).studioOfStore(context, options)),
    );
  describe(program.command("stop <id>"), "Ends an agent and its children, on whichever worker.").action(
    (id: string) => run(async (context) => (await load()).stop(context, id)),
  );
  describe(program.command("resume <id> <prompt...>"), "Sends an agent another prompt.").action(
    (id: string, words: readonly string[]) =>
      run(async (context) => (await load()).resume(context, id, words)),
  );
}

/** The same words as for sessions of this folder. */
function addApprovalCommands(program: Command, run: Run): void {
  const load = () => import("../../commands/store/approvals-in-store.ts");
  const approvals = describe(program.command("approvals"), "Lists the calls that wait for a person.")
    .option("--all", "also those that are answered and not taken up yet")
    .action((_, command: Command) =>
      run(async (context) => (await load()).approvalsInStore(context, command.optsWithGlobals())),
    );
  describe(approvals.command("list", { isDefault: true }), "Lists the calls that wait for a person.").action(
    (_, command: Command) =>
      run(async (context) => (await load()).approvalsInStore(context, command.optsWithGlobals())),
  );
  describe(approvals.command("show <id>"), "Shows one of them in full.").action(
    (id: string, _, command: Command) =>
      run(async (context) => (await load()).showInStore(context, id, command.optsWithGlobals())),
  );
  describe(program.command("approve <id>"), "Allows the call that an agent waits for.")
    .option("--for <scope>", "call, agent or session: whose further calls it covers", "call")
    .option("--rule <rule>", "with --for: the further calls; otherwise the same call again", collect)
    .option("--suggested", "with --for: the rules that the question suggests")
    .option("--until <time>")
    .option("--uses <n>")
    .option("--usd <amount>")
    .action((id: string, options) =>
      run(async (context) => (await load()).approveInStore(context, id, options)),
    );
  describe(program.command("deny <id> [message...]"), "Refuses it; the agent reads the message.").action(
    (id: string, words: readonly string[]) =>
      run(async (context) => (await load()).denyInStore(context, id, words.join(" "))),
  );
}

function addAdminCommands(program: Command, run: Run): void {
  describe(program.command("serve"), "Makes this process a worker until SIGTERM or Ctrl+C.")
    .option("--concurrency <n>", "how many agents run here concurrently", "4")
    .option("--has <need>", "something that agents may need, such as tool:deploy", collect)
    .option("--folder <path>", "a folder that is the same on every worker", collect)
    .option(
      "--accept-rights <list>",
      "what counts of plans beyond the rights of this worker: rules, mode, bypass, programs; all; none",
    )
    .option("--workspaces <folder>", "where copies of repositories go")
    .option("--grace <seconds>", "how long agents may take to reach the end of their turn", "20")
    .action((_, command: Command) =>
      run(async (context) =>
        (await import("../../commands/store/serve.ts")).serve(context, command.optsWithGlobals()),
      ),
    );
  const store = describe(program.command("store"), "Sets a store up and looks after it.");
  const load = () => import("../../commands/store/store-admin.ts");
  describe(store.command("setup"), "Makes or updates the tables; with an account that may create them.")
    .option("--role <name>", "an SQL role that gets what a worker needs, and no more")
    .action((options) => run(async (context) => (await load()).setUp(context, options)));
  describe(store.command("workers"), "Lists the workers.").action((_, command: Command) =>
    run(async (context) => (await load()).listWorkers(context, command.optsWithGlobals())),
  );
  describe(
    store.command("limit <n>"),
    'How many agents run concurrently over all workers; "none" for no limit.',
  ).action((text: string) => run(async (context) => (await load()).limit(context, text)));
  describe(
    program.command("doctor"),
    "Checks the store, its workers, and the workspaces this folder can be.",
  ).action((_, command: Command) =>
    run(async (context) =>
      (await import("../../commands/store/plan-in-store.ts")).doctorInStore(
        context,
        command.optsWithGlobals(),
      ),
    ),
  );
  describe(program.command("clean"), "Removes agents that ended long ago from the store.")
    .option("--days <n>", "older than this", "30")
    .option("--dry-run", "dry run: show what would be removed")
    .action((options) => run(async (context) => (await load()).clean(context, options)));
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

function storeOf({ store, tenant }: StoreOptions, { environment }: CliHost): StoreAddress {
  const url = store ?? environment["RETINUE_STORE"] ?? "";
  if (url === "")
    throw misuse("This needs a store.", "Write --store postgres://user@host/database, or set RETINUE_STORE.");
  return { url, ...(tenant === undefined ? {} : { tenant }) };
}
