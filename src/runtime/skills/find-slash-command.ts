// @io
import { access } from "node:fs/promises";
import type { UserMessage } from "../../conversation/message.ts";
import { lookUpSkill } from "../../skills/look-up-skill.ts";
import type { Skill } from "../../skills/skill.ts";

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
