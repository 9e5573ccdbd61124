// @io

import { access } from "node:fs/promises";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { pluginDataDirectory } from "@retinue/config/plugins/plugin-data-directory.ts";
import { lookUpSkill } from "@retinue/config/skills/look-up-skill.ts";
import { findNamedSkills } from "@retinue/config/skills/named-skills.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import { createNestedFolders, listSkills, type SkillCatalog } from "@retinue/config/skills/skill-catalog.ts";
import { preloadedText, type SkillFacts } from "@retinue/config/skills/skill-text.ts";
import { withFacts } from "@retinue/gate/call-facts.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import { findRule } from "@retinue/gate/rules/matches-call.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** Skills that are in a system prompt. */
export interface PreloadedSkills {
  readonly text?: string;
  readonly names: readonly string[];
  /** What was named and is not there, each as one sentence. */
  readonly notes: readonly string[];
}

/** The skills of one session. What models are shown about them stays the same from start to end. */
export interface SessionSkills {
  /** Those that were there when the session was opened. */
  readonly all: readonly Skill[];
  /** Those that are there now: a changed file counts at the next call. */
  current(): Promise<readonly Skill[]>;
  /** What every model is shown about them: those that are for any file. */
  readonly list: string;
  /** Whether there are skills that a model may call, listed or not. */
  readonly areOffered: boolean;
  /** Those that a model is reported once it has used a file that they are for. */
  conditional(): readonly Skill[];
  /** Some of them as the list shows them. */
  listOf(skills: readonly Skill[]): string;
  /** Looks for skills in the folders of files that were used. */
  touch(paths: readonly string[]): Promise<void>;
  /** Whether a call could register hooks. */
  readonly bringHooks: boolean;
  factsOf(skill: Skill, effort?: string | number): SkillFacts;
  /** The texts of those that a definition names, each once, in the order written. */
  preload(definition: AgentDefinition | undefined): PreloadedSkills;
}

interface OpenSkillsOptions {
  readonly sessionId: string;
  readonly contextWindow: number;
  readonly deny: readonly PolicyRule[];
  /** Whether rules let the file of a skill be read. */
  readonly mayLoad?: MayLoad | undefined;
  /** Skills that are made of something else, for names that no file has. */
  readonly added?: ((taken: ReadonlySet<string>) => readonly Skill[]) | undefined;
}

export async function openSkills(
  runtime: RuntimeContext,
  { sessionId, contextWindow, deny, mayLoad, added = () => [] }: OpenSkillsOptions,
): Promise<SessionSkills> {
  const { paths, settings } = runtime.discovered;
  const { skillListingBudgetFraction, skillListingMaxDescChars } = settings.settings.plain;
  const nested = createNestedFolders(paths.projectRoot);
  const catalog = await runtime.skills();
  const withAdded = (found: readonly Skill[]): readonly Skill[] => [
    ...found,
    ...added(new Set(found.map(({ name }) => name))),
  ];
  const { skills, forbidden } = await readable(catalog.list(), mayLoad);
  const all = withAdded(skills);
  const isDenied = (name: string): boolean => deniesSkill(deny, name);
  const isOffered = ({ name, disableModelInvocation }: Skill): boolean =>
    !disableModelInvocation && !isDenied(name);
  const offered = all.filter(isOffered);
  const always = new Set(offered.filter((skill) => !isForSomeFiles(skill)).map(({ name }) => name));
  let conditional = offered.filter(({ name }) => !always.has(name));
  const listOf = (skills: readonly Skill[]): string =>
    listSkills(skills, {
      contextWindow,
      budgetFraction: skillListingBudgetFraction,
      maxDescription: skillListingMaxDescChars,
      nameOnly: catalog.nameOnly,
    }).text;
  const factsOf = (skill: Skill, effort?: string | number): SkillFacts => ({
    sessionId,
    projectDirectory: paths.projectRoot,
    effort,
    pluginData:
      skill.source.plugin === undefined
        ? undefined
        : pluginDataDirectory(skill.source.plugin, paths.plugins.data),
  });
  return {
    all,
    current: async () =>
      withAdded((await readable((await runtime.skills(nested.found())).list(), mayLoad)).skills),
    list: always.size === 0 ? "" : listOf(offered.filter(({ name }) => always.has(name))),
    areOffered: offered.length > 0,
    conditional: () => conditional,
    listOf,
    async touch(touched) {
      if (!nested.touch(touched)) return;
      const { skills: now } = await readable((await runtime.skills(nested.found())).list(), mayLoad);
      conditional = now.filter((skill) => isOffered(skill) && !always.has(skill.name));
    },
    bringHooks: all.length > 0,
    factsOf,
    preload: (definition) =>
      definition === undefined
        ? nothing
        : preload(definition, {
            catalog,
            isDenied: (name) => forbidden.has(name) || isDenied(name),
            factsOf,
          }),
  };
}

/** Without those of the project whose file rules forbid reading; no such rule takes away what a person has installed. */
async function readable(
  skills: readonly Skill[],
  mayLoad: MayLoad | undefined,
): Promise<{ readonly skills: readonly Skill[]; readonly forbidden: ReadonlySet<string> }> {
  const forbidden = new Set<string>();
  for (const { name, source } of mayLoad === undefined ? [] : skills)
    if (source.scope === "project" && (await mayLoad?.(source.file)) === false) forbidden.add(name);
  return { skills: skills.filter(({ name }) => !forbidden.has(name)), forbidden };
}

function preload(
  definition: AgentDefinition,
  {
    catalog,
    isDenied,
    factsOf,
  }: Pick<SessionSkills, "factsOf"> & {
    readonly catalog: SkillCatalog;
    readonly isDenied: (name: string) => boolean;
  },
): PreloadedSkills {
  const { skills, diagnostics } = findNamedSkills(definition, catalog);
  const loaded = skills.filter(({ name }) => !isDenied(name));
  const denied = skills.filter((skill) => !loaded.includes(skill));
  const notes = [
    ...diagnostics.map(({ message, advice }) => (advice === undefined ? message : `${message} ${advice}`)),
    ...denied.map(({ name }) => `The skill ${JSON.stringify(name)} was not preloaded: a rule denies it.`),
  ];
  const texts = loaded.map((skill) => preloadedText(skill, factsOf(skill)));
  const text = [preloadHeader, ...texts].join("\n\n");
  return { ...(texts.length === 0 ? {} : { text }), names: loaded.map(({ name }) => name), notes };
}

function isForSomeFiles({ paths = [] }: Skill): boolean {
  return paths.length > 0 && !paths.includes("**");
}

const nothing: PreloadedSkills = { names: [], notes: [] };

const preloadHeader = "The following skills are loaded. Follow them where they apply to your task.";

function deniesSkill(deny: readonly PolicyRule[], name: string): boolean {
  const call = withFacts({ tool: "Skill", effect: "read", paths: [], input: { skill: name } });
  const policy = { home: "/", workingDirectories: [] };
  return findRule(deny, call, { use: "restrict", policy }) !== undefined;
}

/** A prompt that calls a skill by its name. */
export type SlashCommand =
  | { readonly type: "call"; readonly written: string; readonly skill: Skill; readonly arguments: string }
  | { readonly type: "unknown"; readonly reason: string };

/** `/name words`, as the first text of a prompt. What only begins like a path stays what it is. */
export async function findSlashCommand(
  content: UserMessage["content"],
  find: () => Promise<readonly Skill[]>,
): Promise<SlashCommand | undefined> {
  const written = firstText(content);
  const [, name, given = ""] = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(written?.trim() ?? "") ?? [];
  if (written === undefined || name === undefined) return undefined;
  const skills = await find();
  const lookup = lookUpSkill(skills, name, "person");
  if (lookup.type === "found") return { type: "call", written, skill: lookup.skill, arguments: given.trim() };
  const isKnown = skills.some((skill) => skill.name === name);
  if (!isKnown && (!/^[A-Za-z][\w:-]*$/.test(name) || (await exists(`/${name}`)))) return undefined;
  return { type: "unknown", reason: lookup.reason };
}

/** The prompt with the text that the skill gave in the place of its call. */
export function withExpansion(
  content: UserMessage["content"],
  written: string,
  text: string,
): UserMessage["content"] {
  if (typeof content === "string") return text;
  let isDone = false;
  return content.map((block) => {
    if (isDone || block.type !== "text" || block.text !== written) return block;
    isDone = true;
    return { ...block, text };
  });
}

function firstText(content: UserMessage["content"]): string | undefined {
  if (typeof content === "string") return content;
  const [first] = content;
  return first?.type === "text" ? first.text : undefined;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
