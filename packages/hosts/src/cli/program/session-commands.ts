import { amount, count, type OptionEntry, port } from "../../shared/option-entry.ts";
import type { CommandEntry } from "./command-entry.ts";

const json: OptionEntry = { flags: "--json", description: "print JSON" };
const follow: OptionEntry = { flags: "-f, --follow", description: "follow until it ends" };

const loadSessions = () => import("../../terminal/sessions.ts");

const sessionList: readonly CommandEntry[] = [
  {
    usage: "sessions",
    description:
      "Lists the sessions of this folder, newest first; in a terminal, to resume, name and delete them.",
    options: [json],
    run: async (context, options) => (await loadSessions()).sessions(context, options),
  },
  {
    usage: "sessions list",
    description: "Lists the sessions of this folder, newest first.",
    options: [json],
    run: async (context, options) => (await loadSessions()).sessionsList(context, options),
  },
  {
    usage: "sessions search <text...>",
    description: "Lists the sessions whose title, prompts or answers contain a text.",
    options: [json],
    run: async (context, options, [words]) =>
      (await loadSessions()).sessionsSearch(context, words.join(" "), options),
  },
  {
    usage: "sessions resume <session>",
    description: "Opens a session in the terminal: by id, the beginning of it, title, or part of it.",
    run: async (context, options, [written]) =>
      (await loadSessions()).sessionsResume(context, written, options),
  },
  {
    usage: "sessions name <session> <title...>",
    description: "Gives a session a title.",
    run: async (context, _, [written, words]) =>
      (await loadSessions()).sessionsName(context, written, words.join(" ")),
  },
  {
    usage: "sessions delete <session...>",
    description: "Deletes sessions with their agents; none that is open.",
    options: [{ flags: "--yes", description: "without asking" }],
    run: async (context, options, [written]) =>
      (await loadSessions()).sessionsDelete(context, written, options),
  },
];

const planCommands: readonly CommandEntry[] = [
  {
    usage: "plan [name]",
    description: "Shows what a child agent would be, and why. Starts nothing.",
    options: [
      { flags: "--tree", description: "every agent that may be started, level by level" },
      { flags: "--background", description: "as if it were started in the background" },
      { flags: "--task <text>", description: "the task it would get" },
      {
        flags: "--cost",
        description: "also what it would take in money, tokens and time, and what it may do",
      },
      json,
    ],
    run: async (context, options, [name]) =>
      options["tree"] === true
        ? (await import("../../commands/plan-tree.ts")).planTree(context, name, options)
        : (await import("../../commands/plan.ts")).plan(context, name, options),
  },
  {
    usage: "run-plan <file>",
    description: "Carries out the plan of a child agent, written by plan --json.",
    options: [
      {
        flags: "--accept-rights <list>",
        description: "what counts of the plan beyond your own rights: rules, mode, bypass, programs; all",
      },
    ],
    run: async (context, options, [file]) =>
      (await import("../../commands/run-plan.ts")).runPlan(context, file, options),
  },
];

const taskCommands: readonly CommandEntry[] = [
  {
    usage: "tasks",
    description: "Lists the child agents of this folder's sessions.",
    options: [
      { flags: "--all", description: "also those that ended long ago" },
      { flags: "--interrupted", description: "only what died with its process, with what was in flight" },
      json,
    ],
    run: async (context, options) => (await import("../../commands/tasks/tasks.ts")).tasks(context, options),
  },
  {
    usage: "attach <session>",
    description:
      "Opens a session of --bg in the terminal: follows one that runs, continues one that has ended.",
    run: async (context, options, [written]) =>
      (await import("../../terminal/attach.ts")).attach(context, written, options),
  },
  {
    usage: "rm <session>",
    description: "Forgets a session of --bg that has ended, with its worktree where that is unchanged.",
    run: async (context, _, [written]) =>
      (await import("../../commands/background/background-actions.ts")).removeBackground(context, written),
  },
  {
    usage: "logs <id>",
    description: "Shows what a session of --bg or a child agent said and did.",
    options: [follow],
    run: async (context, options, [id]) =>
      (await import("../../commands/tasks/logs.ts")).logs(context, id, options),
  },
  {
    usage: "inspect [id...]",
    description: "Shows what a session or agent did, and what it cost.",
    options: [
      { flags: "--html <file>", description: "write it as a page of its own" },
      { ...follow, description: "paint it again until it ends" },
      { flags: "--steps", description: "also every step of every agent" },
      json,
    ],
    run: async (context, options, [words]) =>
      (await import("../../commands/tasks/inspect.ts")).inspect(context, words, options),
  },
  {
    usage: "worth [id...]",
    description: "Shows what each child of a session cost and brought, and whether it paid.",
    options: [json],
    run: async (context, options, [words]) =>
      (await import("../../commands/tasks/worth.ts")).worth(context, words, options),
  },
  {
    usage: "replay [id...]",
    description: "Goes through a recorded session again without a model, and shows what differs.",
    shownUsage: "[id] [--tools recorded|real] [--from MESSAGE] [--agent NAME] [--model M] [options]",
    options: [
      { flags: "--from <message>", description: "ask the model from this answer or message on" },
      { flags: "--prompt <text>", description: "with --from: in place of the recorded prompt" },
      { flags: "--save <folder>", description: "write it as a test that retinue/testing runs" },
      {
        flags: "--runner <name>",
        description: "with --save: node (node:test, the default) or vitest",
        value: { type: "word", words: ["node", "vitest"] },
        needs: [{ option: "--save" }],
      },
      json,
    ],
    run: async (context, options, [words]) =>
      (await import("../../commands/replay.ts")).replay(context, words, options),
  },
  {
    usage: "stop <id>",
    description: "Ends a session of --bg, or a running child agent, also one of another process.",
    run: async (context, _, [id]) => (await import("../../commands/tasks/stop.ts")).stop(context, id),
  },
  {
    usage: "resume [id] [prompt...]",
    description: "Continues with a child agent that has ended.",
    options: [
      {
        flags: "--interrupted",
        description: "all that died with their process, of the newest session that has any",
      },
      {
        flags: "--waiting",
        description: "all that waited for a new quota when their process ended",
      },
      {
        flags: "--json",
        description: "with --interrupted or --waiting: print JSON",
        needs: [{ option: "--interrupted" }, { option: "--waiting" }],
      },
    ],
    run: async (context, options, [id, words]) =>
      (await import("../../commands/tasks/resume.ts")).resume(context, id, { words, options }),
  },
  {
    usage: "merge [session...]",
    description: "Brings the changes of agents in worktrees back, checked and in order.",
    note: "Of the newest session that has any when none is named. Your branch is left as it is without --apply.",
    shownUsage: "[session] [--check COMMAND] [--apply] [options]",
    options: [
      {
        flags: "--check <command>",
        description: "what must pass on each commit; may be repeated",
        isRepeatable: true,
      },
      { flags: "--unchecked", description: "run no checks, also none that settings or agents name" },
      {
        flags: "--apply",
        description: "bring your branch forward when all is in and nothing here is changed",
      },
      { flags: "--into <branch>", description: "advance this branch instead of one made for the session" },
      {
        flags: "--only <agent>",
        description: "only this agent, by id, name or branch; may be repeated",
        isRepeatable: true,
      },
      {
        flags: "--resolver <agent>",
        description: "who resolves conflicts: merge-resolver, another agent, or none",
      },
      {
        flags: "--discard <agent>",
        description: "remove its worktree and branch, and merge nothing; may be repeated",
        isRepeatable: true,
      },
      { flags: "--dry-run", description: "only show the queue" },
      json,
    ],
    run: async (context, options, [words]) =>
      (await import("../../commands/merge.ts")).merge(context, words, options),
  },
  {
    usage: "clean",
    description: "Removes old sessions of all folders, and unchanged worktrees; nothing in use.",
    options: [
      { flags: "--dry-run", description: "dry run: show what would be removed" },
      { flags: "--days <n>", description: "older than this; otherwise as set in the settings, or 30" },
      json,
    ],
    run: async (context, options) => (await import("../../commands/clean.ts")).clean(context, options),
  },
];

const loadApprovals = () => import("../../commands/approvals.ts");
const approvalLists: readonly OptionEntry[] = [
  { flags: "--all", description: "of all folders; and what was answered and used long ago" },
  json,
];

const approvalCommands: readonly CommandEntry[] = [
  {
    usage: "approvals",
    description: "Lists the questions of agents that wait for an answer, and what was granted.",
    options: approvalLists,
    run: async (context, options) => (await loadApprovals()).listApprovals(context, options),
  },
  {
    usage: "approvals list",
    description: "Lists the questions that wait, and grants that hold.",
    options: approvalLists,
    run: async (context, options) => (await loadApprovals()).listApprovals(context, options),
  },
  {
    usage: "approvals show <id>",
    description: "Shows a question in full, with its answer and every use of it.",
    options: [json],
    run: async (context, options, [id]) => (await loadApprovals()).showApproval(context, id, options),
  },
  {
    usage: "approvals revoke <id>",
    description: "Takes a grant back.",
    run: async (context, _, [id]) => (await loadApprovals()).revokeApproval(context, id),
  },
  {
    usage: "approvals listen",
    description: "Takes signed answers over HTTP on this machine, until it is interrupted.",
    options: [{ flags: "--port <n>", description: "the port; otherwise one that is free", value: port }],
    run: async (context, options) =>
      (await import("../../commands/listen-for-answers.ts")).listenForAnswers(context, options),
  },
  {
    usage: "approve <id>",
    description: "Allows what an agent asks for, at all its places.",
    options: [
      {
        flags: "--for <scope>",
        description: "call, agent, tree or session: whose further calls it covers",
        value: { type: "word", words: ["call", "agent", "tree", "session"] },
        default: "call",
      },
      {
        flags: "--rule <rule>",
        description: "with --for: the further calls; otherwise the same call again",
        isRepeatable: true,
      },
      { flags: "--suggested", description: "with --for: the rules that the question suggests" },
      { flags: "--until <time>", description: "such as 30m, 2h, 1d, or 2030-01-31T12:00Z" },
      { flags: "--uses <n>", description: "at most so many calls", value: count },
      { flags: "--usd <amount>", description: "until the session has spent so much more", value: amount },
      {
        flags: "--answer <text>",
        description: "the answer to a question; repeat it for each, in their order",
        isRepeatable: true,
      },
    ],
    run: async (context, options, [id]) =>
      (await loadApprovals()).approve(context, id, { ...options, for: options["for"] }),
  },
  {
    usage: "deny <id> [message...]",
    description: "Refuses what an agent asks for; the agent reads the message.",
    run: async (context, _, [id, words]) => (await loadApprovals()).deny(context, id, words.join(" ")),
  },
];

const workCommands: readonly CommandEntry[] = [
  {
    usage: "eval <file>",
    description: "Runs tasks with several agents and models, scores the answers, and shows a table.",
    options: [
      { flags: "--results <file>", description: "where results are kept; FILE.results.jsonl when left out" },
      { flags: "--fresh", description: "forget earlier results and run everything" },
      { flags: "--html <file>", description: "also write a page" },
      json,
    ],
    run: async (context, options, [file]) =>
      (await import("../../commands/evaluate.ts")).evaluate(context, file, options),
  },
  {
    usage: "studio",
    description:
      "Serves a page for the browser that shows sessions live, and can stop, resume and write to agents.",
    options: [
      { flags: "--all", description: "the sessions of all folders, not only of this one" },
      { flags: "--open", description: "open the page in the browser" },
      { flags: "--port <n>", description: "the port; a free one when left out", value: port },
      { flags: "--host <address>", description: "listen on another address than 127.0.0.1; needs --token" },
      { flags: "--token <text>", description: "the token of the link; a random one when left out" },
      { flags: "--store <url>", description: "the sessions of a store instead of this folder's" },
    ],
    run: async (context, options) => (await import("../../studio/studio.ts")).studio(context, options),
  },
];

const loadTeams = () => import("../../commands/teams.ts");
const listsTeams = "Lists all teams, their members and tasks.";

const loadWorkflows = () => import("../../commands/workflow.ts");
const workflowCommands: readonly CommandEntry[] = [
  ...["workflow", "workflow list"].map(
    (usage): CommandEntry => ({
      usage,
      description: "Lists the saved workflows, or with --runs what has run here.",
      options: [{ flags: "--runs", description: "runs instead of workflows" }, json],
      run: async (context, options) => (await loadWorkflows()).workflowList(context, options),
    }),
  ),
  {
    usage: "workflow plan <name>",
    description: "Shows what a saved workflow or a script file would do and take, without starting it.",
    options: [
      { flags: "--args <json>", description: "what the script would read as args: JSON, a text, or @FILE" },
      json,
    ],
    run: async (context, options, [name]) => (await loadWorkflows()).workflowPlan(context, name, options),
  },
  {
    usage: "workflow run <name>",
    description: "Runs a saved workflow or a script file to its end, without a model to start it.",
    options: [
      { flags: "--args <json>", description: "what the script reads as args: JSON, a text, or @FILE" },
      json,
    ],
    run: async (context, options, [name]) => (await loadWorkflows()).workflowRun(context, name, options),
  },
  {
    usage: "workflow resume <run>",
    description: "Continues a run; finished steps are not run again.",
    options: [
      { flags: "--args <json>", description: "other args than those of the run" },
      { flags: "--script <file>", description: "another script than the one of the run" },
      { flags: "--fresh <labels...>", description: "steps that run again although they are finished" },
      json,
    ],
    run: async (context, options, [run]) => (await loadWorkflows()).workflowResume(context, run, options),
  },
  {
    usage: "workflow show <run>",
    description: "Shows each step of a run: done, taken, running, failed, and why it was not taken.",
    options: [json],
    run: async (context, options, [run]) => (await loadWorkflows()).workflowShow(context, run, options),
  },
  {
    usage: "workflow stop <run>",
    description: "Ends a run, also one of another process.",
    run: async (context, _, [run]) => (await loadWorkflows()).workflowStop(context, run),
  },
];

const teamCommands: readonly CommandEntry[] = [
  ...["teams", "teams list"].map(
    (usage): CommandEntry => ({
      usage,
      description: listsTeams,
      options: [json],
      run: async (context, options) => (await loadTeams()).teamsList(context, options),
    }),
  ),
  {
    usage: "teams show <name>",
    description: "Shows a team: lead, members and board.",
    options: [json],
    run: async (context, options, [name]) => (await loadTeams()).teamsShow(context, name, options),
  },
  {
    usage: "teams board <name>",
    description: "Shows the tasks of a team.",
    options: [json],
    run: async (context, options, [name]) => (await loadTeams()).teamsBoard(context, name, options),
  },
  {
    usage: "teams messages <name> [member]",
    description: "Shows the mail of a team, or of one member.",
    options: [json],
    run: async (context, options, [name, member]) =>
      (await loadTeams()).teamsMessages(context, { name, member }, options),
  },
  {
    usage: "teams send <name> <member> <text...>",
    description: "Sends a message of yours to a member.",
    run: async (context, _, [name, member, words]) =>
      (await loadTeams()).teamsSend(context, { name, member, words }),
  },
  {
    usage: "teams watch <name> <member>",
    description: "Shows what a member does until it ends; what you type is sent to it.",
    run: async (context, _, [name, member]) =>
      (await import("../../commands/teams.ts")).teamsWatch(context, { name, member }),
  },
  {
    usage: "teams stop <name> [member]",
    description: "Ends one member, or all of them.",
    run: async (context, _, [name, member]) => (await loadTeams()).teamsStop(context, { name, member }),
  },
  {
    usage: "teams clean [name]",
    description: "Removes teams that no process leads, with their mail and tasks.",
    options: [
      { flags: "--dry-run", description: "only show what would be removed" },
      { flags: "--force", description: "with a name: also when its config cannot be read" },
    ],
    run: async (context, options, [name]) => (await loadTeams()).teamsClean(context, name, options),
  },
  {
    // Started by the lead of a team, not by people.
    usage: "run-teammate",
    description: "Runs a member of a team.",
    isHidden: true,
    run: async (context) => (await import("../../commands/run-teammate.ts")).runTeammate(context),
  },
];

/** The commands about what was run, runs, or waits: sessions, child agents, questions, teams. */
export const sessionCommands: readonly CommandEntry[] = [
  ...sessionList,
  ...planCommands,
  ...taskCommands,
  ...approvalCommands,
  ...workCommands,
  ...workflowCommands,
  ...teamCommands,
];
