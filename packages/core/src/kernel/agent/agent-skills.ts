import { relative, sep } from "node:path";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { matchesGlob } from "@retinue/config/instructions/matches-glob.ts";
import { lookUpSkill } from "@retinue/config/skills/look-up-skill.ts";
import { describePowers, type Skill } from "@retinue/config/skills/skill.ts";
import { fillSkill, skillText, skillVariables } from "@retinue/config/skills/skill-text.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import { type CommandAuthorization, runSkillCommands } from "../../skills/run-skill-commands.ts";
import { createSkillTool } from "../../tools/builtin/create-skill-tool.ts";
import type { SkillRequest, Tool, ToolContext, ToolOutcome } from "../../tools/tool.ts";
import type { SessionHooks } from "../hooks/session-hooks.ts";
import type { FolderContext } from "../runtime-context.ts";
import type { TurnRights } from "./create-authorize.ts";
import {
  type ForkSkill,
  givePowers,
  noteForText,
  powersRequest,
  registeredHooks,
  type SkillPowers,
  skillPowers,
} from "./fork-skill.ts";
import type { AgentAuthorization, Capability } from "./open-agent.ts";
import { findSlashCommand, type SessionSkills, type SlashCommand } from "./session-skills.ts";

/** Informs one agent of the skills that fit the files it uses. */
interface SkillOffers {
  touch(paths: readonly string[]): Promise<void>;
  takeMessages(): readonly UserMessage[];
  /** All that it was informed of so far; empty when nothing. */
  offered(): string;
}

/**
 * What the Skill tool lists stays the same, so that the provider's cache holds: skills with `paths`, and those in folders
 * below, are described in a message once a file was used that they are for.
 */
function createSkillOffers(
  skills: Pick<SessionSkills, "conditional" | "listOf" | "touch">,
  projectRoot: string,
): SkillOffers {
  const offered = new Map<string, Skill>();
  const mail: UserMessage[] = [];
  return {
    async touch(paths) {
      await skills.touch(paths);
      const fresh = skills
        .conditional()
        .filter((skill) => !offered.has(skill.name) && paths.some((path) => suits(skill, path, projectRoot)));
      if (fresh.length === 0) return;
      for (const skill of fresh) offered.set(skill.name, skill);
      mail.push({ role: "user", content: [{ type: "text", text: offerText(skills.listOf(fresh)) }] });
    },
    takeMessages: () => mail.splice(0),
    offered: () => (offered.size === 0 ? "" : skills.listOf([...offered.values()])),
  };
}

function offerText(list: string): string {
  return `<system-reminder>\nSkills for files you have used; the Skill tool loads them too, when one fits the task:\n${list}\n</system-reminder>`;
}

/** Whether a skill is for a file: its patterns count from the folder that it belongs to, those without `/` at any depth. */
export function suits(skill: Pick<Skill, "paths" | "source">, path: string, projectRoot: string): boolean {
  const base = folderOf(skill, projectRoot);
  const way = relative(base, path).split(sep).join("/");
  if (way === "" || way === ".." || way.startsWith("../")) return false;
  const { paths = [] } = skill;
  return paths.length === 0 || paths.some((pattern) => matchesGlob(fromBase(pattern), way));
}

function fromBase(pattern: string): string {
  const bare = pattern.replace(/^\.?\//, "").replace(/\/$/, "/**");
  return bare.includes("/") || bare === "**" ? bare : `**/${bare}`;
}

/** The folder whose `.claude` holds the skill; those of people and plugins are for the whole project. */
function folderOf({ source }: Pick<Skill, "source">, projectRoot: string): string {
  if (source.scope !== "project") return projectRoot;
  const at = source.directory.lastIndexOf(`${sep}.claude${sep}`);
  return at === -1 ? projectRoot : source.directory.slice(0, at);
}

export interface AgentSkillsParts {
  readonly skills: SessionSkills;
  readonly runtime: Pick<FolderContext, "trusted" | "discovered">;
  readonly plan: AgentPlan;
  readonly isSubagent: boolean;
  /** The session's shell; the agent's own rights decide about each command. */
  readonly bash: Tool | undefined;
  readonly hooks: Pick<SessionHooks, "add"> | undefined;
  /** Runs a skill in an agent of its own; absent for agents that can start none. */
  readonly fork?: ForkSkill;
  readonly findModel: (name: string) => Promise<Model>;
}

/** The skills of one agent: the tool that loads them, and what they change while its turn lasts. */
export interface AgentSkills
  extends Pick<SkillTurn, "rights" | "model">,
    Pick<SkillOffers, "touch" | "takeMessages" | "offered"> {
  readonly tool: Tool;
  readonly all: readonly Skill[];
  attach(authorization: AgentAuthorization): void;
  findCommand(content: UserMessage["content"]): Promise<SlashCommand | undefined>;
  /** The text that is in the place of a person's call. */
  expand(command: Extract<SlashCommand, { type: "call" }>, context: ToolContext): Promise<string>;
  endTurn(): void;
  /** Those whose text the agent has read, the latest last; for when its conversation is compacted. */
  called(): readonly { readonly name: string; readonly text: string }[];
}

/** What skills add to an agent: their tool, what a loaded one changes, and notices of those for the files it has used. */
export function skillsCapability(
  skills: AgentSkills,
  {
    plan,
    directory,
    isGranted,
  }: { readonly plan: AgentPlan; readonly directory: () => string; readonly isGranted: boolean },
): Capability {
  return {
    ...(isGranted ? { tools: [skills.tool] } : {}),
    model: skills.model,
    rights: skills.rights,
    messages: skills.takeMessages,
    attach: skills.attach,
    ...(isGranted
      ? {
          async afterCall({ tool, input }, outcome) {
            if (outcome.isError !== true)
              await skills.touch(tool.pathsOf?.(input, directory(), plan.policy.home) ?? []);
            return outcome;
          },
        }
      : {}),
  };
}

export function createAgentSkills(parts: AgentSkillsParts): AgentSkills {
  const { skills } = parts;
  const turn = createSkillTurn();
  const offers = createSkillOffers(skills, parts.runtime.discovered.paths.projectRoot);
  const tool = createSkillTool({
    list: skills.list,
    async call(request, context) {
      const lookup = lookUpSkill(await skills.current(), request.name, "model");
      if (lookup.type === "refused") return { content: lookup.reason, isError: true };
      const { skill } = lookup;
      const asked = () => askFor(state, skill, { request, context });
      const powers = await givePowers(skill, powersOf(parts, skill), asked);
      if (powers.type === "refused") return { content: powers.reason, isError: true };
      return useSkill(state, skill, { request, context, powers: powers.powers });
    },
  });
  const state: SkillState = {
    parts,
    turn,
    tool,
    registered: new Set(),
    called: new Map(),
    authorization: undefined,
  };
  return {
    ...offers,
    tool,
    all: skills.all,
    rights: turn.rights,
    model: turn.model,
    endTurn: turn.end,
    called: () => [...state.called].map(([name, text]) => ({ name, text })),
    // The ports of the agent's own run come first; others that a program takes for its loop must not replace them.
    attach(next) {
      state.authorization ??= next;
    },
    findCommand: (content) => findSlashCommand(content, skills.current),
    async expand({ skill, arguments: given }, context) {
      const request = { name: skill.name, arguments: given };
      const { content } = await useSkill(state, skill, { request, context, powers: powersOf(parts, skill) });
      const text = typeof content === "string" ? content : "";
      return `The person called /${skill.name}${given === "" ? "" : ` ${given}`}.\n\n${text}`;
    },
  };
}

interface SkillState {
  readonly parts: AgentSkillsParts;
  readonly turn: ReturnType<typeof createSkillTurn>;
  readonly tool: Tool;
  /** Skills whose hooks are registered. */
  readonly registered: Set<string>;
  /** The texts of skills that were called, by name. */
  readonly called: Map<string, string>;
  authorization: AgentAuthorization | undefined;
}

function powersOf({ runtime, plan, bash }: AgentSkillsParts, skill: Skill): SkillPowers {
  return skillPowers(skill, { runtime, directory: plan.directory, hasShell: bash !== undefined });
}

/** The person or program that is asked sees what the skill would do. */
function askFor(
  { authorization, tool }: SkillState,
  skill: Skill,
  { request, context }: Omit<Use, "powers">,
) {
  if (authorization === undefined) return Promise.resolve(notReady);
  const { name, arguments: args } = request;
  const { callId, signal } = context;
  const input = { skill: name, ...(args === "" ? {} : { args }), does: describePowers(skill) };
  const call = { type: "tool_use", id: callId, name: tool.name, input } as const;
  return authorization.ask(powersRequest({ call, tool, input }), { signal });
}

async function useSkill(
  state: SkillState,
  skill: Skill,
  { request, context, powers }: Use,
): Promise<ToolOutcome> {
  const { parts, turn, called, authorization } = state;
  const { fork } = parts;
  const inChild = skill.context === "fork" && fork?.refusal === undefined ? fork : undefined;
  const model = inChild === undefined ? await modelOf(skill, parts) : {};
  // A call that continues after its run was stopped must not grant anything to the next one.
  context.signal.throwIfAborted();
  const release = turn.take({ allow: powers.allow, deny: powers.deny, ...model.changes });
  try {
    const text = await textFor(state, skill, { request, context, powers });
    if (inChild !== undefined)
      return await inChild.run({ skill, text, powers }, context, authorization?.authorize);
    called.delete(skill.name);
    called.set(skill.name, text);
    const notes = [
      ...powers.notes,
      ...registerHooks(state, skill, powers),
      ...(model.notes ?? []),
      ...noteForText(skill, fork),
    ];
    return { content: withNotes(text, notes), data: { success: true, commandName: skill.name } };
  } finally {
    // What runs in an agent of its own changes nothing for its caller.
    if (inChild !== undefined) release();
  }
}

function registerHooks(
  { parts, registered }: SkillState,
  skill: Skill,
  { hooks }: SkillPowers,
): readonly string[] {
  if (hooks.length === 0 || registered.has(skill.name)) return [];
  if (parts.hooks === undefined)
    return [`The hooks of ${skill.name} are registered only in sessions that start after it was added.`];
  registered.add(skill.name);
  const agent = { id: parts.plan.agent.id, isSubagent: parts.isSubagent };
  parts.hooks.add(registeredHooks({ name: skill.name, hooks, plugin: skill.source.plugin }, agent));
  return [];
}

async function textFor(
  { parts, authorization }: SkillState,
  skill: Skill,
  { request, context, powers }: Use,
): Promise<string> {
  const { skills, plan, bash } = parts;
  const facts = skills.factsOf(skill, skill.effort ?? plan.effort?.value);
  const call = { skill, facts, arguments: request.arguments };
  const shell = bash && {
    bash,
    context,
    variables: skillVariables(call),
    authorize: (command: string, callId: string) =>
      authorizeCommand(authorization, command, { bash, callId, signal: context.signal }),
  };
  const commands = { refusal: powers.commandRefusal, shell };
  return skillText(skill, await runSkillCommands(fillSkill(call), commands));
}

async function authorizeCommand(
  authorization: AgentAuthorization | undefined,
  command: string,
  { bash, callId, signal }: { readonly bash: Tool; readonly callId: string; readonly signal: AbortSignal },
): Promise<CommandAuthorization> {
  if (authorization === undefined) return notReady;
  const input = { command };
  const call = { type: "tool_use", id: callId, name: bash.name, input } as const;
  const authorized = await authorization.authorize({ call, tool: bash, input }, { signal });
  if (authorized.type === "denied") return authorized;
  const changed = bash.input?.safeParse(authorized.input);
  // Only the shell's own schema has this shape; a hook may have changed the command.
  const fields = changed?.success === true ? (changed.data as { readonly command: string }) : input;
  const { allowedBy, run } = authorized;
  return {
    type: "allowed",
    command: fields.command,
    allowedBy,
    judged: run,
  };
}

interface Use {
  readonly request: SkillRequest;
  readonly context: ToolContext;
  readonly powers: SkillPowers;
}

const notReady = { type: "denied", reason: "the agent is not ready yet" } as const;

/** The model and effort that a skill asks for, or why they do not count. */
async function modelOf(
  { name, model, effort }: Skill,
  { findModel, plan }: AgentSkillsParts,
): Promise<{
  readonly changes?: { readonly model?: Model; readonly effort?: string | number };
  readonly notes?: readonly string[];
}> {
  const own = effort === undefined ? {} : { effort };
  if (model === undefined || model === "inherit") return { changes: own };
  try {
    const found = await findModel(model);
    if (found.facts.id !== plan.model.value) return { changes: { ...own, model: found } };
    return { changes: own };
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    return {
      changes: own,
      notes: [`The model ${JSON.stringify(model)} of ${name} was ignored: ${error.message}`],
    };
  }
}

function withNotes(text: string, notes: readonly string[]): string {
  if (notes.length === 0) return text;
  return `${text}\n\n<skill-notes>\n${notes.map((note) => `- ${note}`).join("\n")}\n</skill-notes>`;
}

interface TurnChanges extends TurnRights {
  readonly model?: Model;
  readonly effort?: string | number;
}

/** What the skills of one agent change until its current prompt is done. */
interface SkillTurn {
  /** Returns how to take it back before the end of the turn. */
  take(changes: TurnChanges): () => void;
  rights(): TurnRights;
  /** The agent's model, or the one that the latest skill asks for. */
  model(own: Model): Model;
  end(): void;
}

function createSkillTurn(): SkillTurn {
  let taken: readonly TurnChanges[] = [];
  return {
    take(changes) {
      taken = [...taken, changes];
      return () => {
        taken = taken.filter((other) => other !== changes);
      };
    },
    rights: () => ({
      allow: taken.flatMap(({ allow }) => allow),
      deny: taken.flatMap(({ deny }) => deny),
    }),
    model(own) {
      const current = (): Model => taken.findLast(({ model }) => model !== undefined)?.model ?? own;
      return {
        get facts() {
          return current().facts;
        },
        stream(request, options) {
          const effort = taken.findLast((changes) => changes.effort !== undefined)?.effort;
          return current().stream(effort === undefined ? request : { ...request, effort }, options);
        },
      };
    },
    end() {
      taken = [];
    },
  };
}
