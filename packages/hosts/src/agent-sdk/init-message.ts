import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { version } from "@retinue/base/foundation/version.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { modelChoices } from "@retinue/core/kernel/model-choices.ts";
import { programCommands, skillCommands } from "../shared/slash-commands.ts";
import type { SdkMessage } from "./sdk-messages.ts";

/** The version of the protocol's other engine whose behaviour is followed; hosts compare it. */
export const followedVersion = "2.1.325";

/** What the protocol can do here beyond its first version. */
const capabilities = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"];

export interface InitFacts {
  readonly mode: string;
  readonly model: string;
  readonly apiKeySource: string;
  readonly uuid: string;
  /** The ids that the host gave the prompts of this turn. */
  readonly promptIds?: readonly string[];
  /** Commands besides those of the session and its skills. */
  readonly commands?: readonly { readonly name: string }[];
}

/** The message that begins each turn: what the session is now. */
export function initMessage(session: TreeFacts, facts: InitFacts): SdkMessage {
  const { plan, discovered, skills } = session;
  return {
    type: "system",
    subtype: "init",
    cwd: plan.directory,
    session_id: plan.sessionId,
    tools: toolNames(session),
    mcp_servers: session.mcpServers().map((server) => ({
      name: server.name,
      status: serverStatus(server.status),
      source: serverSource(server),
      ...("reason" in server.status ? { error: server.status.reason } : {}),
    })),
    model: facts.model,
    model_provider: session.model.provider,
    model_reason: plan.model.from,
    permissionMode: facts.mode,
    slash_commands: [
      ...programCommands.map(({ name }) => name),
      ...skillCommands(skills).map(({ name }) => name),
      ...(facts.commands ?? []).map(({ name }) => name),
    ],
    terminal_slash_commands: [],
    apiKeySource: facts.apiKeySource,
    claude_code_version: followedVersion,
    retinue_version: version,
    output_style: "default",
    agents: discovered.registry.list().map(({ id }) => id),
    skills: skills.filter(({ source }) => source.kind === "skill").map(({ name }) => name),
    plugins: discovered.plugins
      .filter(({ enabled }) => enabled)
      .map(({ name, root, manifest: { version: own } }) => ({
        name,
        path: root,
        version: own,
      })),
    capabilities,
    additional_directories: plan.policy.workingDirectories.filter((folder) => folder !== plan.directory),
    original_cwd: plan.directory,
    analytics_disabled: true,
    product_feedback_disabled: true,
    fast_mode_state: "off",
    fast_mode_disabled_reason: "sdk_opt_in_required",
    per_turn_effort_active: false,
    ultrathink_available: false,
    ultrathink_typed_raises: false,
    view_mode: "default",
    effort: plan.effort?.value ?? null,
    ...(facts.promptIds === undefined || facts.promptIds.length === 0
      ? {}
      : { user_message_uuids: facts.promptIds }),
    uuid: facts.uuid,
  };
}

/** What a host gave itself, by an option or later, is dynamic; everything else has a place. */
export function serverScope(scope: string): string {
  return scope === "program" || scope === "flag" ? "dynamic" : scope;
}

/** The same, except that a server in the host's own process is named as such. */
export function serverSource({
  scope,
  transport,
}: Pick<ReturnType<TreeFacts["mcpServers"]>[number], "scope" | "transport">): string {
  return transport?.type === "sdk" ? "sdk" : serverScope(scope);
}

type ServerStatus = ReturnType<TreeFacts["mcpServers"]>[number]["status"];

export function serverStatus(status: ServerStatus): string {
  return status.type === "failed" && status.needsAuth === true ? "needs-auth" : statusWords[status.type];
}

const statusWords = {
  connected: "connected",
  connecting: "pending",
  planned: "pending",
  failed: "failed",
  closed: "failed",
  held: "disabled",
} as const;

/** The tool that starts children is listed under its older name, which programs look for. */
function toolNames({ plan }: Pick<TreeFacts, "plan">): readonly string[] {
  return plan.tools.map(({ name }) => (name === "Agent" ? "Task" : name));
}

/** What `initialize` is answered with, and what asks for parts of it later. */
export function describeCommands(skills: TreeFacts["skills"]): readonly JsonRecord[] {
  const builtin = programCommands.map(({ name, description, argumentHint }) => ({
    name,
    description,
    argumentHint,
    builtin: true,
  }));
  const own = skillCommands(skills).map(({ argumentHint = "", ...skill }) => ({ ...skill, argumentHint }));
  return [...builtin, ...own];
}

export function describeAgents({ discovered }: Pick<TreeFacts, "discovered">): readonly JsonRecord[] {
  return discovered.registry.list().map(({ id, definition }) => ({
    name: id,
    description: definition.description,
    model: definition.model,
  }));
}

/** The models a host may offer for choosing: the one in use, and the aliases. */
export function describeModels({ plan, model }: Pick<TreeFacts, "plan" | "model">): readonly JsonRecord[] {
  const efforts = {
    supportsEffort: true,
    supportedEffortLevels: ["low", "medium", "high", "xhigh", "max"],
    supportsAdaptiveThinking: true,
    supportsFastMode: false,
    supportsAutoMode: false,
  };
  return modelChoices({ plan, model }).map((choice) => ({ ...choice, ...efforts }));
}
