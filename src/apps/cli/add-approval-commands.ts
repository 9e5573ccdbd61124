import type { Command } from "commander";
import { describe, type Invoke } from "./describe.ts";
import { misuse } from "./session-options.ts";

/** The commands about questions that wait for an answer, and what was granted. */
export function addApprovalCommands(program: Command, invoke: Invoke): void {
  const load = async () => import("./commands/approvals.ts");
  const approvals = describe(
    program.command("approvals"),
    "Lists the questions of agents that wait for an answer, and what was granted.",
  )
    .argument("[command]")
    .usage("[list|show|revoke|listen] [options]")
    .option("--all", "of all folders; and what was answered and used long ago")
    .option("--json", "print JSON")
    .allowExcessArguments();
  approvals.action((name: string | undefined, options) => {
    if (name !== undefined)
      throw misuse(
        `There is no command \`approvals ${name}\`.`,
        "The commands are approvals list, show, revoke and listen.",
      );
    return invoke(async (context) => (await load()).listApprovals(context, options));
  });
  describe(approvals.command("list"), "Lists the questions that wait, and grants that hold.")
    .option("--all", "of all folders; and what was answered and used long ago")
    .option("--json", "print JSON")
    .action((_, command: Command) =>
      invoke(async (context) => (await load()).listApprovals(context, command.optsWithGlobals())),
    );
  describe(approvals.command("show <id>"), "Shows a question in full, with its answer and every use of it.")
    .option("--json", "print JSON")
    .action((id: string, _, command: Command) =>
      invoke(async (context) => (await load()).showApproval(context, id, command.optsWithGlobals())),
    );
  describe(approvals.command("revoke <id>"), "Takes a grant back.").action((id: string) =>
    invoke(async (context) => (await load()).revokeApproval(context, id)),
  );
  describe(
    approvals.command("listen"),
    "Takes signed answers over HTTP on this machine, until it is interrupted.",
  )
    .option("--port <n>", "the port; otherwise one that is free")
    .action((_, command: Command) =>
      invoke(async (context) =>
        (await import("./commands/approvals-listen.ts")).listenForAnswers(context, command.optsWithGlobals()),
      ),
    );
  addAnswers(program, invoke);
}

function addAnswers(program: Command, invoke: Invoke): void {
  const load = async () => import("./commands/approvals.ts");
  const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];
  describe(program.command("approve <id>"), "Allows what an agent asks for, at all its places.")
    .option("--for <scope>", "call, agent, tree or session: whose further calls it covers", "call")
    .option("--rule <rule>", "with --for: the further calls; otherwise the same call again", collect)
    .option("--suggested", "with --for: the rules that the question suggests")
    .option("--until <time>", "such as 30m, 2h, 1d, or 2030-01-31T12:00Z")
    .option("--uses <n>", "at most so many calls")
    .option("--usd <amount>", "until the session has spent so much more")
    .option("--answer <text>", "the answer to a question; repeat it for each, in their order", collect)
    .action((id: string, _, command: Command) =>
      invoke(async (context) => (await load()).approve(context, id, command.optsWithGlobals())),
    );
  describe(
    program.command("deny <id> [message...]"),
    "Refuses what an agent asks for; the agent reads the message.",
  ).action((id: string, words: readonly string[]) =>
    invoke(async (context) => (await load()).deny(context, id, words.join(" "))),
  );
}
