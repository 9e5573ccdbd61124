import { relative, sep } from "node:path";
import { matchesGlob } from "../context/glob-pattern.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { Skill } from "../skills/skill.ts";
import type { SessionSkills } from "./session-skills.ts";

/** Tells one agent of the skills that fit the files it uses. */
export interface SkillOffers {
  touch(paths: readonly string[]): Promise<void>;
  takeMessages(): readonly UserMessage[];
  /** All that it was told of so far; empty when nothing. */
  offered(): string;
}

/**
 * What the Skill tool lists stays the same, so that the provider's cache holds: skills with `paths`, and those in folders
 * below, are told in a message once a file was used that they are for.
 */
export function createSkillOffers(
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
