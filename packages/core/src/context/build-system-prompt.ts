import { type EnvironmentFacts, environmentText } from "./environment-facts.ts";
import { type GitState, gitStateText } from "./git-state.ts";

interface SystemPromptParts {
  /** Who the agent is and how it works: the main prompt, a definition's, or what `--system-prompt` puts in its place. */
  readonly base: string;
  /** What `--append-system-prompt` adds. */
  readonly appended?: string | undefined;
  /** The language of answers. */
  readonly language?: string | undefined;
  /** Preloaded skills and the list of others, ready as text. */
  readonly skills?: string | undefined;
  readonly memory?: string | undefined;
  /** The text of the CLAUDE.md chain. */
  readonly instructions?: string | undefined;
  readonly environment?: EnvironmentFacts | undefined;
  readonly git?: GitState | undefined;
  /** The critical reminder, which the loop repeats on every turn as well. */
  readonly reminder?: string | undefined;
}

/**
 * The system prompt as parts, from what changes least to what changes most: a prefix that a provider has cached for
 * another session or a sibling stays valid. Given the same facts the parts are the same to the byte.
 */
export function buildSystemPrompt(parts: SystemPromptParts): readonly string[] {
  const { base, appended, language, skills, memory, instructions, environment, git, reminder } = parts;
  const facts = [
    environment === undefined ? undefined : environmentText(environment),
    git === undefined ? undefined : gitStateText(git),
  ];
  return [
    base,
    appended,
    language === undefined ? undefined : languageText(language),
    skills,
    instructions,
    memory,
    joined(facts),
    reminder === undefined || reminder.trim() === ""
      ? undefined
      : `# Keep in mind on every turn\n${reminder.trim()}`,
  ].flatMap((part) => (part === undefined || part.trim() === "" ? [] : [part.trim()]));
}

/** A name of a language is short; anything longer would be another prompt. */
function languageText(language: string): string {
  const name = language.replace(/\s+/g, " ").trim().slice(0, 40);
  return `# Language\nAnswer the person in this language: ${name}. Code, names, commands and quotations stay as they are.`;
}

function joined(texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined).join("\n\n");
}
