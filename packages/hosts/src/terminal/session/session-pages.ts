import {
  estimateMessageTokens,
  estimateTextTokens,
} from "@retinue/core/conversation/estimate-request-tokens.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { aliasTable } from "@retinue/core/kernel/model-choices.ts";
import type { CliOutput } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { formatTokens, plural } from "../../shared/format.ts";
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
          return describeServers(session);
        case "doctor":
          return printed(async (own) => (await import("../../commands/doctor.ts")).doctor(own, {}));
        case "inspect":
        case "cost":
          return printed(async (own) =>
            (await import("../../commands/tasks/inspect.ts")).inspect(
              own,
              words.length === 0 ? [plan.sessionId] : words,
              {},
            ),
          );
        case "context":
          return describeContext(session);
        case "memory":
          return describeMemory(session);
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
  return [
    { value: model.id, label: model.id, description: "in use" },
    ...aliases.map(([alias, target]) => ({
      value: alias,
      label: alias,
      description:
        typeof target === "string" ? target : `${target.planning} when planning, else ${target.otherwise}`,
    })),
    { value: "offline", label: "offline", description: "answers without a network" },
  ];
}

function describeServers(session: TreeFacts): string {
  const servers = session.mcpServers();
  if (servers.length === 0) return "No MCP servers are configured. `retinue mcp add` adds one.";
  return servers.map((server) => `${server.name}  ${JSON.stringify(server.status)}`).join("\n");
}

function describeContext(session: TreeFacts): string {
  const { plan, model } = session;
  const messages = session.messages();
  const system = plan.system.reduce((sum, text) => sum + estimateTextTokens(text), 0);
  const talk = messages.reduce((sum, message: Message) => sum + estimateMessageTokens(message), 0);
  const share = (tokens: number): string =>
    `${formatTokens(tokens)} tokens, ${((tokens / model.contextWindow) * 100).toFixed(1)} %`;
  return [
    `The window of ${model.id} holds ${formatTokens(model.contextWindow)} tokens. Estimates:`,
    "",
    `system prompt   ${share(system)}`,
    `conversation    ${share(talk)} in ${plural(messages.length, "message")}`,
    `tools           ${plural(plan.tools.length, "tool")}`,
    "",
    "/compact replaces the older part of the conversation by a summary.",
  ].join("\n");
}

function describeMemory({ plan }: TreeFacts): string {
  const text = plan.system.filter((part) => /^#\s.*(instruction|memory)/im.test(part)).join("\n\n");
  const what = text === "" ? "No instructions of the project or of yours are in the system prompt." : text;
  return `${what}\n\n\`#\` and a note at the prompt adds to the project's CLAUDE.md.`;
}
