import { join } from "node:path";
import type { McpServer as AcpServer } from "@agentclientprotocol/sdk";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { startedByRetinue } from "@retinue/base/foundation/started-by-retinue.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import type { runAgentLoop } from "../../loop/run-agent-loop.ts";
import { passedEnvironment } from "../../mcp/server-environment.ts";
import { type AgentPlan, type ChildPlan, type PlannedRunner, startOf } from "../../planning/agent-plan.ts";
import { openRules } from "../../planning/plan-runner.ts";
import { otherTool } from "../../runners/describe-request.ts";
import type { PreparedRunner, RunnerSetup } from "../../runners/run-runner.ts";
import type { AgentBudget } from "../../tasks/tree-budget.ts";
import type { TypedOutput } from "../options/typed-output.ts";
import type { FolderContext, RuntimeContext } from "../runtime-context.ts";
import type { ChildServers } from "../servers/session-servers.ts";
import type { AgentServices } from "./agent-services.ts";
import { openSandboxes } from "./assemble-tools.ts";

interface RunnerParts {
  readonly runtime: RuntimeContext;
  readonly servers: Pick<ChildServers, "configured"> | undefined;
  readonly budget: AgentBudget;
  /** Set where a result of a certain form was asked for. */
  readonly output: TypedOutput | undefined;
}

/** What a program of another vendor asks for and no other tool describes; only its agents are granted that. */
export const runnerTool: AvailableTool = { name: otherTool, effect: "execute", origin: "builtin" };

/** What carries out an agent whose definition names a program of another vendor; loaded when it is first used. */
export function openRunner(
  plan: ChildPlan,
  runner: PlannedRunner,
  { runtime, servers, budget, output }: RunnerParts,
): typeof runAgentLoop {
  if (output !== undefined)
    throw new RetinueError(
      "runner-output",
      `${runner.name} cannot return output that matches a schema, because it does not have the tool for that.`,
      { advice: "Ask for text, or for JSON in the prompt." },
    );
  let { session } = runner;
  const setup: RunnerSetup = {
    runner,
    directory: startOf(plan),
    prepare: (signal) => prepare(plan, { runner, runtime, signal }),
    servers: serversOf(plan, servers),
    budget,
  };
  return async function* runInRunner(input, ports, signal) {
    const { runRunner } = await import("../../runners/run-runner.ts");
    const own = { ...setup, runner: session === undefined ? runner : { ...runner, session } };
    for await (const event of runRunner(input, ports, { setup: own, signal })) {
      // A teammate gets one piece of work after the other in the same conversation.
      if (event.type === "runner-opened") session = event.session;
      yield event;
    }
  };
}

/** What another vendor's program does without asking is shown before its first start. */
export function reportRunner(
  { runner, notes, definition }: ChildPlan,
  { runtime, shownRunners }: Pick<AgentServices, "runtime" | "shownRunners">,
): void {
  if (runner === undefined || shownRunners.has(definition.name)) return;
  shownRunners.add(definition.name);
  const own = notes.filter((note) => note.includes(runner.name));
  if (own.length > 0) runtime.notice?.(`${definition.name}: ${own.join(" ")}`);
}

interface Preparing {
  readonly runner: PlannedRunner;
  readonly runtime: RuntimeContext;
  readonly signal: AbortSignal;
}

/** The program as it is started: with the variables that are named for it, and in the sandbox where the plan counts on one. */
async function prepare(plan: ChildPlan, { runner, runtime, signal }: Preparing): Promise<PreparedRunner> {
  const [file = "", ...words] = runner.command;
  const environment = environmentOf(plan, runner, runtime);
  const plain: PreparedRunner = { file, arguments: words, environment };
  if (runner.sandboxed !== true) {
    // Of a plan that was made elsewhere, the rules of this process may limit more.
    const [open] = runner.unguarded === true ? [] : openRules(plan, false);
    if (open === undefined) return plain;
    throw unsafe(runner.name, `It could get around ${open} where it does not ask.`);
  }
  const { paths } = runtime.discovered;
  const { sandbox } = openSandboxes(runtime, plan.policy.deny);
  const state = (runner.state ?? []).map((name) => join(paths.home, name));
  const invocation = { file: "/bin/sh", arguments: ["-c", 'exec "$0" "$@"', file, ...words] };
  const wrapped = await sandbox?.wrap(invocation, {
    signal,
    // The settings take commands out of the sandbox, not programs that act by themselves.
    command: "",
    workingDirectories: plan.policy.workingDirectories,
    alsoWrite: state,
  });
  if (wrapped?.type === "wrapped") return { ...wrapped.invocation, environment, ended: wrapped.ended };
  if (wrapped?.type === "refused") throw unsafe(runner.name, wrapped.reason);
  // Without the sandbox that the plan counts on it is the same as where there never was one.
  if (runner.unguarded === true || openRules(plan, false).length === 0) return plain;
  throw unsafe(runner.name, wrapped?.note ?? "The settings no longer ask for a sandbox.");
}

function unsafe(name: string, why: string): RetinueError {
  return new RetinueError(
    "runner-unguarded",
    `${name} was not started, because nothing would enforce the rules on it here. ${why}`,
  );
}

function environmentOf(
  { env = {} }: Pick<AgentPlan, "env">,
  { name, env: names }: PlannedRunner,
  { environment }: Pick<FolderContext, "environment">,
): Record<string, string> {
  const missing = names.find((variable) => environment[variable] === undefined);
  if (missing !== undefined)
    throw new RetinueError(
      "runner-variable",
      `The variable ${missing}, which \`runner.env\` names for ${name}, is not set.`,
      { advice: "Set it where you start Retinue, or remove its name from the definition." },
    );
  return {
    ...passedEnvironment(environment),
    ...Object.fromEntries(Object.entries(env).map(([variable, { value }]) => [variable, value])),
    ...Object.fromEntries(names.map((variable) => [variable, environment[variable] ?? ""])),
    [startedByRetinue]: "1",
  };
}

/** Those that its definition names and that the plan lets it have something of. */
function serversOf(
  { mcpServers = [], runner }: Pick<AgentPlan, "mcpServers" | "runner">,
  servers: Pick<ChildServers, "configured"> | undefined,
): readonly AcpServer[] {
  const granted = new Set(mcpServers.map(({ name }) => name));
  return (servers?.configured ?? [])
    .filter(({ name }) => granted.has(name))
    .map((server) => portable(server, runner?.name ?? ""));
}

function portable({ name, transport }: McpServer, runner: string): AcpServer {
  const entries = (values: Readonly<Record<string, string>>) =>
    Object.entries(values).map(([key, value]) => ({ name: key, value }));
  const unusable = (why: string): RetinueError =>
    new RetinueError("runner-servers", `The MCP server ${name} cannot be passed to ${runner}: ${why}.`, {
      advice: "Leave it out of `mcpServers` of the definition.",
    });
  switch (transport.type) {
    case "stdio":
      if (transport.cwd !== undefined) throw unusable("it starts in a folder of its own");
      return { name, command: transport.command, args: [...transport.args], env: entries(transport.env) };
    case "http":
    case "sse":
      if (transport.headersHelper !== undefined) throw unusable("its headers come from a command");
      if (transport.oauth !== undefined) throw unusable("Retinue holds its login");
      return { type: transport.type, name, url: transport.url, headers: entries(transport.headers) };
    case "sdk":
      throw unusable("it runs inside this program");
  }
}
