import { join } from "node:path";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import { Fault } from "../foundation/fault.ts";
import { version } from "../foundation/version.ts";
import type { IdSource } from "../journal/id-source.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Model } from "../model/model.ts";
import { aliasTable } from "../model/model-aliases.ts";
import type { ModelFactory } from "../model/model-factory.ts";
import { type ModelSelection, selectMainModel } from "../model/select-model.ts";
import { decide } from "../permissions/decide.ts";
import { planSession } from "../planning/plan-session.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { createSessionFiles } from "../tools/file-ledger.ts";
import { findRealPath } from "../tools/find-real-path.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import type { ToolHost } from "../tools/tool-host.ts";
import type { CanUseTool } from "./admit.ts";
import { assembleTools } from "./assemble-tools.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { chooseSession, noTranscript, openTranscript } from "./open-transcript.ts";
import type { SessionOptions } from "./runtime-options.ts";
import { createSession, type Session } from "./session.ts";
import { refuseBrokenRestrictions, sessionRules } from "./session-rules.ts";
import { createTypedOutput } from "./typed-output.ts";

/** What all sessions of a runtime share. */
export interface SessionWorld {
  readonly discovered: DiscoveredAgents;
  readonly trusted: boolean;
  /** The process's variables with those of settings over them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly models: ModelFactory;
  /** Serves every session, where the program brought one. */
  readonly model?: Model;
  readonly extraTools: readonly Tool[];
  readonly additionalDirectories: readonly string[];
  readonly host: ToolHost;
  readonly canUseTool?: CanUseTool;
  readonly keepsTranscripts: boolean;
  readonly entrypoint: string;
  readonly ids: IdSource;
  readonly now: () => number;
  readonly today: () => Date;
}

/** Finds everything out, decides the plan, and puts a session together that obeys it. */
export async function openSession(world: SessionWorld, options: SessionOptions): Promise<Session> {
  const { paths, settings } = world.discovered;
  refuseBrokenRestrictions(settings);
  const definition = findMainAgent(world.discovered, options.agent ?? settings.settings.plain.agent);
  const selection = selectModel(world, options, definition);
  const model = world.model ?? (await world.models.model(selection.model));
  const chosen = await chooseSession(options, paths.transcripts, world.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const built = assembleTools({ world, model });
  const system = await gatherSystemPrompt({
    world,
    options,
    modelId: model.facts.id,
    ...(definition === undefined ? {} : { definition }),
  });
  const plan = decidePlan(world, options, {
    sessionId: chosen.sessionId,
    model: { value: model.facts.id, from: world.model === undefined ? selection.origin : "the program" },
    available: built.available,
    system: system.parts,
    ...(definition === undefined ? {} : { definition }),
  });
  const transcript = world.keepsTranscripts
    ? await openTranscript({
        ...chosen,
        transcripts: paths.transcripts,
        ids: world.ids,
        now: () => world.today().getTime(),
        facts: () => transcriptFacts(world, plan, system.branch),
      })
    : noTranscript;
  const granted = new Set(plan.tools.map(({ name }) => name));
  return createSession({
    plan,
    model,
    tools: built.tools.filter(({ name }) => granted.has(name)),
    ...(built.webSearch === undefined || !maySearch(plan) ? {} : { serverTools: [built.webSearch] }),
    history: transcript.history,
    toolContext: createToolContext(world, plan, {
      outputDirectory: files.toolResults,
      directory: built.directory,
    }),
    ...(world.canUseTool === undefined ? {} : { canUseTool: world.canUseTool }),
    pathForms: async (path) => [...new Set([path, await findRealPath(path)])],
    directory: () => built.directory(plan.agent.id) ?? plan.directory,
    now: world.now,
    record: transcript.record,
    ...(options.output === undefined ? {} : { output: createTypedOutput(options.output) }),
    dispose: async () => {
      try {
        await built.dispose();
      } finally {
        transcript.close();
      }
    },
  });
}

function findMainAgent(
  { registry }: DiscoveredAgents,
  name: string | undefined,
): AgentDefinition | undefined {
  if (name === undefined || name === "") return undefined;
  const found = registry.find(name);
  if (found.type === "found") return found.agent.definition;
  if (found.type === "denied") {
    throw new Fault("agent-denied", `The agent ${JSON.stringify(name)} is denied by the rule ${found.rule}.`);
  }
  const near = found.nearest === undefined ? "" : ` Did you mean ${found.nearest}?`;
  throw new Fault("unknown-agent", `There is no agent ${JSON.stringify(name)}.${near}`, {
    advice: `Available: ${found.available.join(", ")}.`,
  });
}

function selectModel(
  world: SessionWorld,
  options: SessionOptions,
  definition: AgentDefinition | undefined,
): ModelSelection {
  const { plain } = world.discovered.settings.settings;
  const selection = selectMainModel({
    flag: options.model,
    definition: definition?.model,
    variable: world.environment["ANTHROPIC_MODEL"],
    settings: plain.model,
    aliases: aliasTable({ environment: world.environment }),
    isPlanning: options.permissionMode === "plan",
  });
  const [unclear] = selection.unclear;
  if (unclear?.origin !== "flag") return selection;
  const near = unclear.nearest === undefined ? {} : { advice: `Did you mean ${unclear.nearest}?` };
  throw new Fault(
    "unclear-model",
    `--model ${JSON.stringify(unclear.written)} is not clear: ${unclear.why}.`,
    near,
  );
}

function decidePlan(
  world: SessionWorld,
  options: SessionOptions,
  decided: {
    readonly sessionId: string;
    readonly model: RunPlan["model"];
    readonly available: readonly AvailableTool[];
    readonly system: readonly string[];
    readonly definition?: AgentDefinition;
  },
): RunPlan {
  const { paths, settings } = world.discovered;
  const { permissions, sources } = settings.settings;
  const planned = planSession(
    { ...options, sessionId: decided.sessionId, agentId: "main" },
    {
      ...(decided.definition === undefined ? {} : { definition: decided.definition }),
      model: decided.model,
      available: decided.available,
      rules: sessionRules(settings, options, paths.cwd),
      ...(permissions.defaultMode === undefined
        ? {}
        : {
            settingsMode: {
              mode: permissions.defaultMode,
              from: sources.get("permissions.defaultMode")?.file ?? "settings",
            },
          }),
      bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
      directory: paths.cwd,
      workingDirectories: [
        paths.cwd,
        ...world.additionalDirectories,
        ...permissions.additionalDirectories.map(({ directory, source }) => join(source.anchor, directory)),
      ],
      home: paths.home,
      system: decided.system,
    },
  );
  if (planned.type === "planned") return planned.plan;
  throw new Fault(
    "plan-refused",
    planned.because,
    planned.advice === undefined ? {} : { advice: planned.advice },
  );
}

/** The provider runs the search itself, so there is no call to decide about: it is offered only where it is allowed. */
function maySearch({ tools, policy }: RunPlan): boolean {
  const isGranted = tools.some(({ name }) => name === "WebSearch");
  const call = { tool: "WebSearch", effect: "network", paths: [], input: {} };
  return isGranted && decide(call, policy).type === "allow";
}

function transcriptFacts(world: SessionWorld, plan: RunPlan, branch: string | undefined) {
  return {
    sessionId: plan.sessionId,
    cwd: plan.directory,
    version,
    entrypoint: world.entrypoint,
    permissionMode: plan.policy.mode,
    ...(branch === undefined ? {} : { gitBranch: branch }),
  };
}

function createToolContext(
  world: SessionWorld,
  plan: RunPlan,
  places: { readonly outputDirectory: string; readonly directory: (agentId: string) => string | undefined },
) {
  const files = createSessionFiles().forAgent();
  return (call: Pick<ToolContext, "callId" | "signal" | "progress">): ToolContext => ({
    ...call,
    directory: places.directory(plan.agent.id) ?? plan.directory,
    workingDirectories: plan.policy.workingDirectories,
    agent: plan.agent,
    files,
    host: world.host,
    environment: world.environment,
    outputDirectory: places.outputDirectory,
  });
}
