import { isAbsolute, join, resolve } from "node:path";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { createRegistry } from "@retinue/config/agents/agent-registry.ts";
import { builtinAgents } from "@retinue/config/agents/builtin/builtin-agents.ts";
import { shippedAliases } from "@retinue/config/models/select-subagent-model.ts";
import type { MergedSettings, SourcedRule } from "@retinue/config/settings/settings-layer.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import type { AgentPlan } from "@retinue/core/planning/agent-plan.ts";
import { inWorktree } from "@retinue/core/planning/in-worktree.ts";
import { planAgent } from "@retinue/core/planning/plan-agent.ts";
import { makeWorktree } from "@retinue/core/tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "@retinue/core/tasks/worktree/read-worktree-settings.ts";
import { sandboxRights } from "@retinue/core/tools/sandbox/sandbox-settings.ts";
import type { McpIdentity } from "@retinue/gate/call-facts.ts";
import type { PolicyRule } from "@retinue/gate/decide.ts";
import { parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import { caseAgent, findCaseMemory } from "./case-agent.ts";
import { fieldsOf, isTrusted, texts } from "./case-settings.ts";
import type { Fields, Roots, SecurityCase } from "./security-case.ts";

/** A run as the product plans it, or why there is none. */
export type CasePlan = { readonly type: "plan"; readonly plan: AgentPlan } | { readonly type: "refused" };

/** Plans the run whose call a case is about: that of the main agent, or of a child of it. */
export async function planCase(
  testCase: SecurityCase,
  settings: MergedSettings,
  roots: Roots,
): Promise<CasePlan> {
  const trusted = await isTrusted(testCase, roots);
  const main = planMain(testCase, settings, { roots, trusted });
  if (main.type === "refused" || testCase.surface !== "subagent_tool_call") return main;
  return planChild(testCase, main.plan, { settings, roots, trusted });
}

interface Place {
  readonly roots: Roots;
  readonly trusted: boolean;
}

function planMain(testCase: SecurityCase, settings: MergedSettings, { roots, trusted }: Place): CasePlan {
  const { context = {}, cwd = roots.P } = testCase;
  const { permissions, sources, plain } = settings;
  const { mainAgent } = context;
  // What the session has at all; a lead that starts a child has the tool for that too.
  const tools =
    context["parentTools"] === undefined ? {} : { tools: [...texts(context["parentTools"]), "Agent"] };
  const definition =
    mainAgent === undefined ? undefined : caseAgent(fieldsOf(mainAgent), { name: "lead", scope: "user" });
  if (mainAgent !== undefined && definition === undefined) return { type: "refused" };
  const wished = parsePermissionMode(String(context["parentMode"] ?? testCase.mode));
  const isLaunched = wished === "bypassPermissions" && context["hostAllowsBypass"] === false;
  const asked = wished === "default" || isLaunched ? undefined : wished;
  const sandbox = sandboxRights(plain.sandbox);
  const planned = planAgent(
    { origin: "program", ...tools, ...(asked === undefined ? {} : { mode: asked }) },
    {
      sessionId: "s",
      agentId: "main",
      chosenModel: { id: "claude-opus-4-8" },
      definition,
      model: { value: "claude-opus-4-8", from: "the call" },
      available: availableTools(testCase),
      rules: {
        allow: permissions.allow.map(fromSettings),
        ask: permissions.ask.map(fromSettings),
        deny: permissions.deny.map(fromSettings),
      },
      settingsMode:
        permissions.defaultMode === undefined
          ? undefined
          : {
              mode: permissions.defaultMode,
              from: sources.get("permissions.defaultMode")?.file ?? "settings",
            },
      bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
      directory: cwd,
      workingDirectories: workingDirectories(testCase, settings, roots),
      home: roots.H,
      platform: testCase.platform ?? "linux",
      sandbox,
      system: [],
      trusted,
    },
  );
  return planned.type === "planned" ? { type: "plan", plan: planned.plan } : { type: "refused" };
}

/** The project, where the call starts in it; as at a start, also what was added. */
function workingDirectories(
  { cwd, additionalDirectories = [] }: SecurityCase,
  { permissions }: MergedSettings,
  { P, H }: Roots,
): readonly string[] {
  const start = cwd === undefined || cwd === P || cwd.startsWith(`${P}/`) ? P : cwd;
  const added = permissions.additionalDirectories.map(({ directory, source }) =>
    directory === "~" || directory.startsWith("~/")
      ? join(H, directory.slice(1))
      : resolve(source.anchor, directory),
  );
  return [start, ...additionalDirectories, ...added].filter(isAbsolute);
}

function fromSettings({ rule, source }: SourcedRule): PolicyRule {
  return { rule, anchor: source.anchor, from: source.file };
}

async function planChild(
  testCase: SecurityCase,
  parent: AgentPlan,
  { settings, roots, trusted }: Place & { readonly settings: MergedSettings },
): Promise<CasePlan> {
  const { context = {} } = testCase;
  const spawn = fieldsOf(context["spawnInput"]);
  const definition = childDefinition(context, spawn);
  if (definition === undefined) return { type: "refused" };
  const memory = await findCaseMemory(definition, trusted, roots);
  const background = spawn["run_in_background"] ?? context["background"];
  const planned = planAgent(
    {
      description: "d",
      prompt: "p",
      origin: "model",
      ...requestOf(spawn),
      ...(typeof background === "boolean" ? { background } : {}),
    },
    {
      definition,
      agentId: "a1b2c3",
      parent,
      aliases: shippedAliases,
      available: availableTools(testCase),
      system: [],
      memory,
      trusted,
      backgroundAllowed: true,
    },
  );
  if (planned.type === "refused") return { type: "refused" };
  if (planned.plan.task.isolation === undefined) return { type: "plan", plan: planned.plan };
  const wished = readWorktreeSettings(settings.plain.worktree);
  if (wished.type === "refused") return { type: "refused" };
  const made = await makeWorktree({
    directory: parent.directory,
    agentId: planned.plan.agent.id,
    agentName: planned.plan.agent.name,
    settings: wished.settings,
    environment: { PATH: process.env["PATH"], HOME: roots.H },
    trusted: true,
    signal: AbortSignal.timeout(60_000),
  });
  if (made.type === "refused") return { type: "refused" };
  return { type: "plan", plan: inWorktree(planned.plan, { ...made.worktree, root: roots.P }) };
}

function childDefinition(context: Fields, spawn: Fields): AgentDefinition | undefined {
  const { agent } = context;
  if (agent !== undefined) return caseAgent(fieldsOf(agent), { name: "worker", scope: "project" });
  const type = typeof spawn["subagent_type"] === "string" ? spawn["subagent_type"] : "general-purpose";
  const found = registryOf(context).find(type);
  return found.type === "found" ? found.agent.definition : undefined;
}

function requestOf(spawn: Fields) {
  const mode = parsePermissionMode(String(spawn["mode"] ?? ""));
  const value = <T>(key: string, name: string, is: (given: unknown) => given is T) =>
    is(spawn[key]) ? { [name]: spawn[key] } : {};
  const isText = (given: unknown): given is string => typeof given === "string";
  const isNumber = (given: unknown): given is number => typeof given === "number";
  return {
    mode,
    ...value("isolation", "isolation", isText),
    ...value("model", "model", isText),
    ...value("effort", "effort", isText),
    ...value("resume", "resume", isText),
    ...value("max_turns", "maxTurns", isNumber),
  };
}

/** The agents there are: those of the product, and those that a case names. */
export function registryOf(context: Fields) {
  const written = Array.isArray(context["agents"]) ? context["agents"] : [];
  const named = written.flatMap((agent: unknown) => {
    const fields = typeof agent === "string" ? { name: agent } : fieldsOf(agent);
    return caseAgent(fields, { name: "worker", scope: "user" }) ?? [];
  });
  return createRegistry({ definitions: [...builtinAgents(), ...named] });
}

/** The tools of a session: those of the product, and the one of the server that the call is for. */
export function availableTools({ tool, context = {} }: SecurityCase): readonly AvailableTool[] {
  const builtin = builtinTools.map(({ name, effect }) => ({ name, effect, origin: "builtin" as const }));
  const mcp = mcpOf(context["mcp"]);
  if (mcp === undefined || tool === null) return builtin;
  return [...builtin, { name: tool, effect: mcpEffect(context["mcp"]), origin: "mcp", server: mcp.server }];
}

/** What a server declares about its tool. */
export function mcpEffect(written: unknown): "read" | "execute" {
  const { readOnlyHint, annotations } = fieldsOf(written);
  return readOnlyHint === true || fieldsOf(annotations)["readOnlyHint"] === true ? "read" : "execute";
}

export function mcpOf(written: unknown): McpIdentity | undefined {
  const { server, tool, definitionHash, approvedHash } = fieldsOf(written);
  if (typeof server !== "string" || typeof tool !== "string") return undefined;
  const isChanged = approvedHash !== undefined && approvedHash !== definitionHash;
  return { server, tool, ...(isChanged ? { isChanged } : {}) };
}
