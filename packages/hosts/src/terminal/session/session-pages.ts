import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { aliasTable } from "@retinue/core/kernel/model-choices.ts";
import type { CliOutput } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import type { Choice, ReportTopic } from "./terminal-session.ts";

export interface SessionPagesOptions {
  readonly context: CommandContext;
  readonly session: TreeFacts;
  readonly mode: string;
}

/** Pages for a person about the session; most are the same that the command line prints. */
export interface SessionPages {
  report(topic: ReportTopic, words: readonly string[]): Promise<string>;
  models(): readonly Choice[];
}

export function createSessionPages({ context, session, mode }: SessionPagesOptions): SessionPages {
  const { plan } = session;
  const printed = (run: (context: CommandContext) => Promise<number>): Promise<string> =>
    captureOutput(context, run);
  return {
    models: () => listModels(context, session),
    async report(topic, words) {
      switch (topic) {
        case "agents":
          return printed(async (own) =>
            (await import("../../commands/agents/agents-list.ts")).agentsList(own, {}),
          );
        case "approvals":
          return printed(async (own) =>
            (await import("../../commands/approvals.ts")).listApprovals(own, {
              all: words.includes("all"),
            }),
          );
        case "tasks":
          return printed(async (own) => (await import("../../commands/tasks/tasks.ts")).tasks(own, {}));
        case "permissions": {
          const rules = await printed(async (own) =>
            (await import("../../commands/permissions-list.ts")).permissionsList(own, {}),
          );
          return `The mode is ${mode}; shift+tab changes it.\n\n${rules.replace(/\n*^Mode: .*$/m, "")}`;
        }
        case "mcp":
          return printed(async (own) => (await import("../../commands/mcp/mcp-list.ts")).mcpList(own, {}));
        case "doctor":
          return printed(async (own) => (await import("../../commands/doctor.ts")).doctor(own, {}));
        case "workflows": {
          const { workflowList } = await import("../../commands/workflow.ts");
          const runs = await printed((own) => workflowList(own, { runs: true }));
          return `Runs\n\n${runs}\nSaved workflows\n\n${await printed((own) => workflowList(own, {}))}`;
        }
        case "cost": {
          const [{ openFolder }, { renderCost }] = await Promise.all([
            import("../../shared/open-project.ts"),
            import("../../commands/views/render-cost.ts"),
          ]);
          const written = words.length === 0 ? plan.sessionId : words.join(" ");
          const source = await openFolder(context.host).sessions.inspect(written);
          return printed(async ({ host: { stdout } }) => {
            stdout.write(renderCost(await source.load(), stdout.columns ?? pageWidth));
            return 0;
          });
        }
        case "inspect":
          return printed(async (own) =>
            (await import("../../commands/tasks/inspect.ts")).inspect(
              own,
              words.length === 0 ? [plan.sessionId] : words,
              {},
            ),
          );
        case "context":
          return (await import("./describe-context.ts")).describeContext(session);
        case "memory": {
          const isMemory = (await import("./describe-context.ts")).isMemory;
          const text = plan.system.filter(isMemory).join("\n\n");
          const what =
            text === "" ? "No instructions of the project or of yours are in the system prompt." : text;
          return `${what}\n\n\`#\` and a note at the prompt adds to the project's CLAUDE.md.`;
        }
      }
    },
  };
}

const pageWidth = 100;

/** What a command of the command line prints, as text. */
export async function captureOutput(
  context: CommandContext,
  run: (context: CommandContext) => Promise<number>,
): Promise<string> {
  let text = "";
  const output: CliOutput = {
    write: (more) => {
      text += more;
    },
    isTerminal: false,
    // A page leaves the last column free.
    columns: Math.min(pageWidth, (context.host.stdout.columns ?? pageWidth + 1) - 1),
    isColourAllowed: false,
  };
  await run({ ...context, host: { ...context.host, stdout: output, stderr: output, canAsk: false } });
  return text;
}

function listModels({ host }: CommandContext, { model }: TreeFacts): readonly Choice[] {
  const aliases = [...aliasTable({ environment: host.environment })];
  const others = [
    ...aliases.map(([alias, target]) => ({
      value: alias,
      label: alias,
      description:
        typeof target === "string" ? target : `${target.planning} when planning, else ${target.otherwise}`,
    })),
    {
      value: "offline",
      label: "offline",
      description: "a small built-in program, no language model; needs no key",
    },
  ];
  const current = { value: model.id, label: model.id, description: "in use" };
  return [current, ...others.filter(({ value }) => value !== model.id)];
}
