import type { OptionValues } from "commander";
import type { CliHost } from "../../shared/cli-host.ts";
import type { StoreAddress, StoreContext } from "../../shared/command-context.ts";
import type { FlagValues, storeFlags } from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import type { OptionEntry } from "../../shared/option-entry.ts";
import { type CommandEntry, splitUsage, type Words } from "./command-entry.ts";

/** A command for agents in a store. */
interface StoreCommand extends Omit<CommandEntry, "run"> {
  readonly run: (context: StoreContext, options: OptionValues, words: Words) => Promise<number>;
}

const loadAgents = () => import("../../commands/store/store-agents.ts");
const loadPlans = () => import("../../commands/store/plan-in-store.ts");
const loadPrint = () => import("../../commands/store/print-in-store.ts");
const loadApprovals = () => import("../../commands/store/approvals-in-store.ts");
const loadWorkflows = () => import("../../commands/store/workflow-in-store.ts");
const loadAdmin = () => import("../../commands/store/store-admin.ts");

const agentCommands: readonly StoreCommand[] = [
  {
    usage: "tasks",
    description: "Lists the agents in the store.",
    run: async (context, options) => (await loadAgents()).listAgents(context, options),
  },
  {
    usage: "tasks retry <id>",
    description: "Gives an agent to the workers again that they could not run, a dead letter.",
    run: async (context, _, [id]) => (await loadAgents()).retry(context, id),
  },
  {
    usage: "inspect <id>",
    description: "Shows the status of an agent and what it waits for.",
    run: async (context, options, [id]) => (await loadAgents()).inspect(context, id, options),
  },
  {
    usage: "logs <id>",
    description: "Shows what an agent said and did.",
    options: [{ flags: "-f, --follow", description: "follow until it ends" }],
    run: async (context, options, [id]) => (await loadAgents()).logs(context, id, options),
  },
  {
    usage: "plan <name>",
    description: "Shows what a child agent would be, and which workers could run it.",
    options: [
      { flags: "--background", description: "as if it were started in the background" },
      { flags: "--task <text>", description: "the task it would get" },
    ],
    run: async (context, options, [name]) => (await loadPlans()).planInStore(context, name, options),
  },
  {
    usage: "run-plan <file>",
    description: "Lets a worker carry out the plan of a child agent, written by plan --json.",
    options: [
      {
        flags: "--accept-rights <list>",
        description: "where this process runs it: what counts of the plan beyond its own rights",
      },
    ],
    run: async (context, options, [file]) => (await loadPrint()).runPlanInStore(context, file, options),
  },
  {
    usage: "studio",
    description: "Serves a page for the browser that shows the sessions of the store live.",
    options: [
      { flags: "--open", description: "open the page in the browser" },
      { flags: "--port <n>", description: "the port; a free one when left out" },
      { flags: "--host <address>", description: "listen on another address than 127.0.0.1; needs --token" },
      { flags: "--token <text>", description: "the token of the link; a random one when left out" },
    ],
    run: async (context, options) => (await import("../../studio/studio.ts")).studioOfStore(context, options),
  },
  {
    usage: "stop <id>",
    description: "Ends an agent and its children, on whichever worker.",
    run: async (context, _, [id]) => (await loadAgents()).stop(context, id),
  },
  {
    usage: "resume <id> <prompt...>",
    description: "Sends an agent another prompt.",
    run: async (context, _, [id, words]) => (await loadAgents()).resume(context, id, words),
  },
];

const allApprovals: OptionEntry = {
  flags: "--all",
  description: "also those that are answered and not taken up yet",
};

const approvalCommands: readonly StoreCommand[] = [
  ...["approvals", "approvals list"].map(
    (usage): StoreCommand => ({
      usage,
      description: "Lists the calls that wait for a person.",
      options: [allApprovals],
      run: async (context, options) => (await loadApprovals()).approvalsInStore(context, options),
    }),
  ),
  {
    usage: "approvals show <id>",
    description: "Shows one of them in full.",
    run: async (context, options, [id]) => (await loadApprovals()).showInStore(context, id, options),
  },
  {
    usage: "approve <id>",
    description: "Allows the call that an agent waits for.",
    options: [
      {
        flags: "--for <scope>",
        description: "call, agent or session: whose further calls it covers",
        default: "call",
      },
      {
        flags: "--rule <rule>",
        description: "with --for: the further calls; otherwise the same call again",
        isRepeatable: true,
      },
      { flags: "--suggested", description: "with --for: the rules that the question suggests" },
      // Known, so that their refusal can say what to do instead.
      { flags: "--until <time>", description: "" },
      { flags: "--uses <n>", description: "" },
      { flags: "--usd <amount>", description: "" },
    ],
    run: async (context, options, [id]) =>
      (await loadApprovals()).approveInStore(context, id, { ...options, for: options["for"] }),
  },
  {
    usage: "deny <id> [message...]",
    description: "Refuses it; the agent reads the message.",
    run: async (context, _, [id, words]) => (await loadApprovals()).denyInStore(context, id, words.join(" ")),
  },
];

const args: OptionEntry = {
  flags: "--args <json>",
  description: "what the script reads as args: JSON, a text, or @FILE",
};

/** Alone it lists those of this folder, which are in no store. */
const workflowGroup = "workflow";

const workflowCommands: readonly StoreCommand[] = [
  {
    usage: workflowGroup,
    description: "Runs workflows on the workers of a store.",
    run: async () => {
      throw misuse(
        "What about workflows in a store?",
        "Write workflow run NAME, workflow resume ID or workflow show ID.",
      );
    },
  },
  {
    usage: "workflow run <name>",
    description: "Gives a workflow to the workers: any of them continues its script and takes its steps.",
    options: [args],
    run: async (context, options, [name]) =>
      (await loadWorkflows()).runWorkflowInStore(context, name, options),
  },
  {
    usage: "workflow resume <id>",
    description: "Starts a run that takes the finished steps of an earlier one.",
    options: [args, { flags: "--script <file>", description: "another script than the one of the run" }],
    run: async (context, options, [id]) =>
      (await loadWorkflows()).resumeWorkflowInStore(context, id, options),
  },
  {
    usage: "workflow show <id>",
    description: "Shows the steps of a run.",
    run: async (context, options, [id]) => (await loadWorkflows()).showWorkflowInStore(context, id, options),
  },
];

/** Commands that only make sense with a store. */
const workerCommands: readonly StoreCommand[] = [
  {
    usage: "serve",
    description: "Makes this process a worker until SIGTERM or Ctrl+C.",
    options: [
      {
        flags: "--concurrency <n>",
        description: "how many agents run here concurrently",
        default: "4",
      },
      {
        flags: "--has <need>",
        description: "something that agents may need, such as tool:deploy",
        isRepeatable: true,
      },
      {
        flags: "--folder <path>",
        description: "a folder that is the same on every worker",
        isRepeatable: true,
      },
      {
        flags: "--accept-rights <list>",
        description:
          "what counts of plans beyond the rights of this worker: rules, mode, bypass, programs; all; none",
      },
      { flags: "--workspaces <folder>", description: "where copies of repositories go" },
      {
        flags: "--grace <seconds>",
        description: "how long agents may take to reach the end of their turn",
        default: "20",
      },
    ],
    run: async (context, options) =>
      (await import("../../commands/store/serve.ts")).serve(context, {
        ...options,
        concurrency: options["concurrency"],
        grace: options["grace"],
      }),
  },
  {
    usage: "store",
    description: "Sets a store up and looks after it.",
    run: async () => {
      throw misuse("What about the store?", "Write store setup, store workers or store limit.");
    },
  },
  {
    usage: "store setup",
    description: "Makes or updates the tables; with an account that may create them.",
    options: [
      { flags: "--role <name>", description: "an SQL role that gets what a worker needs, and no more" },
    ],
    run: async (context, options) => (await loadAdmin()).setUp(context, options),
  },
  {
    usage: "store workers",
    description: "Lists the workers.",
    run: async (context, options) => (await loadAdmin()).listWorkers(context, options),
  },
  {
    usage: "store limit <n>",
    description: 'How many agents run concurrently over all workers; "none" for no limit.',
    run: async (context, _, [max]) => (await loadAdmin()).limit(context, max),
  },
];

const careCommands: readonly StoreCommand[] = [
  {
    usage: "doctor",
    description: "Checks the store, its workers, and the workspaces this folder can be.",
    run: async (context, options) => (await loadPlans()).doctorInStore(context, options),
  },
  {
    usage: "clean",
    description: "Removes agents that ended long ago from the store.",
    options: [
      { flags: "--days <n>", description: "older than this", default: "30" },
      { flags: "--dry-run", description: "dry run: show what would be removed" },
    ],
    run: async (context, options) =>
      (await loadAdmin()).clean(context, { ...options, days: options["days"] }),
  },
];

/** The commands for agents in a store: the same words as without one, as far as they mean the same. */
export const storeCommands: readonly CommandEntry[] = [
  ...agentCommands,
  ...approvalCommands,
  ...workflowCommands,
  ...workerCommands,
  ...careCommands,
].map(({ run, ...entry }) => ({
  ...entry,
  isForStores: true,
  run: (context, options, words) =>
    run({ ...context, store: storeOf(options, context.host) }, options, words),
}));

/** The address that options or the environment name. */
export function storeOf(
  { store, tenant }: FlagValues<typeof storeFlags>,
  { environment }: Pick<CliHost, "environment">,
): StoreAddress {
  const url = store ?? environment["RETINUE_STORE"] ?? "";
  if (url === "")
    throw misuse("This needs a store.", "Write --store postgres://user@host/database, or set RETINUE_STORE.");
  return { url, tenant };
}

const firstWords = (commands: readonly Pick<StoreCommand, "usage">[]): ReadonlySet<string> =>
  new Set(commands.map(({ usage }) => splitUsage(usage).path[0] ?? ""));
const ofStoresAlone = firstWords(workerCommands);
const ofStores = storeCommands
  .filter(({ usage }) => usage !== workflowGroup)
  .map(({ usage }) => splitUsage(usage).path);

/** Whether arguments are about agents in a store rather than in this process. */
export function namesStore(
  arguments_: readonly string[],
  { environment }: Pick<CliHost, "environment">,
): boolean {
  const end = arguments_.indexOf("--");
  const own = end === -1 ? arguments_ : arguments_.slice(0, end);
  const [first = ""] = own;
  if (ofStoresAlone.has(first)) return true;
  if (own.some((word) => word === "--store" || word.startsWith("--store="))) return true;
  // Of some words only a part is about stores: the workflows of this folder are listed and planned without one.
  const isCommand = ofStores.some((path) => path.every((word, at) => own[at] === word));
  const isShared = isCommand || own.includes("-p") || own.includes("--print");
  return isShared && (environment["RETINUE_STORE"] ?? "") !== "";
}
