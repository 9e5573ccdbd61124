import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { Skill } from "./skill.ts";
import { type SkillPiece, splitSkill } from "./skill-pieces.ts";

/** What the words in braces mean. */
export interface SkillFacts {
  readonly sessionId: string;
  readonly projectDirectory: string;
  readonly effort?: string | number | undefined;
  /** Where the skill's plugin may keep files of its own. */
  readonly pluginData?: string | undefined;
}

export interface SkillCall {
  readonly skill: Skill;
  readonly facts: SkillFacts;
  /** As given; absent leaves the places for arguments as they are. */
  readonly arguments?: string;
}

/** A piece with everything put in its place; a command that its arguments would change is not run. */
export type FilledPiece = SkillPiece | { readonly type: "unusable"; readonly reason: string };

/**
 * Puts arguments and facts in their places, once: what is put in is neither searched for commands nor for more places.
 * The commands are those of the file itself.
 */
export function fillSkill(call: SkillCall): readonly FilledPiece[] {
  const values = placeValues(call);
  const pieces = splitSkill(call.skill.body).map((piece) => fillPiece(piece, values));
  const given = call.arguments?.trim() ?? "";
  if (given === "" || takesArguments(call.skill)) return pieces;
  return [...pieces, { type: "text", text: `\n\nARGUMENTS: ${given}` }];
}

/** The whole text that a model reads, with the outputs of commands in their places, inside a fence it cannot end. */
export function skillText({ name, source }: Skill, texts: readonly string[]): string {
  const inside = escapeControlTags(texts.join("")).trim();
  return `${skillHeader(name, source.directory)}\n<skill name="${name.replace(/["<>]/g, "_")}">\n${inside}\n</skill>`;
}

/** A skill as it is in a system prompt: nothing is run and no arguments are put in. */
export function preloadedText(skill: Skill, facts: SkillFacts): string {
  const values = placeValues({ skill, facts });
  const pieces = splitSkill(skill.body);
  const texts = pieces.map((piece) =>
    piece.type === "text" ? replacePlaces(piece.text, values) : writtenCommand(piece.command),
  );
  const note = pieces.some(({ type }) => type === "command")
    ? "\n\nCommands written as !`command` were not run; run those whose output you need."
    : "";
  return `${skillText(skill, texts)}${note}`;
}

/** The variables of the braces, for commands. */
export function skillVariables({ skill, facts }: SkillCall): Readonly<Record<string, string>> {
  const { plugin, directory } = skill.source;
  return {
    CLAUDE_SESSION_ID: facts.sessionId,
    CLAUDE_SKILL_DIR: directory,
    CLAUDE_PROJECT_DIR: facts.projectDirectory,
    ...(facts.effort === undefined ? {} : { CLAUDE_EFFORT: String(facts.effort) }),
    ...(plugin === undefined ? {} : { CLAUDE_PLUGIN_ROOT: plugin.root }),
    ...(facts.pluginData === undefined ? {} : { CLAUDE_PLUGIN_DATA: facts.pluginData }),
  };
}

function skillHeader(name: string, directory: string): string {
  const folder = directory.replace(/[\p{Cc}<>]/gu, "\uFFFD");
  return `# Skill: ${name}\nBase directory of this skill: ${folder}\nFiles that it names without a full path are below that directory.`;
}

function writtenCommand(command: string): string {
  return command.includes("\n") ? `\`\`\`!\n${command}\n\`\`\`` : `!\`${command}\``;
}

interface PlaceValues {
  readonly places: RegExp;
  readonly variables: ReadonlyMap<string, string>;
  readonly arguments: string | undefined;
  readonly words: readonly string[];
  readonly names: readonly string[];
}

function placeValues(call: SkillCall): PlaceValues {
  const names = call.skill.arguments ?? [];
  return {
    places: placesOf(names),
    variables: new Map(Object.entries(skillVariables(call))),
    arguments: call.arguments?.trim(),
    words: splitArguments(call.arguments ?? ""),
    names,
  };
}

/** `${CLAUDE_X}`, `$ARGUMENTS`, `$ARGUMENTS[1]`, `$1`, and `$name` for the names that the skill declares. */
function placesOf(names: readonly string[]): RegExp {
  const declared = names
    .toSorted((a, b) => b.length - a.length)
    .map((name) => `|${escaped(name)}`)
    .join("");
  return new RegExp(
    `\\$\\{(?<variable>CLAUDE_[A-Z_]+)\\}|\\$ARGUMENTS(?:\\[(?<at>\\d+)\\]|\\b)|\\$(?<word>\\d+${declared})(?!\\w)`,
    "g",
  );
}

interface FoundPlace {
  readonly value: string;
  readonly isArgument: boolean;
}

function replacePlaces(text: string, values: PlaceValues): string {
  return text.replace(values.places, (...found) => placeOf(found, values)?.value ?? String(found[0]));
}

/** The value of one place; undefined where the words only look like one. */
function placeOf(found: readonly unknown[], values: PlaceValues): FoundPlace | undefined {
  // With named groups the last argument of a replacer is the record of them.
  const { variable, at, word } = found.at(-1) as Readonly<Record<string, string | undefined>>;
  if (variable !== undefined) {
    const value = values.variables.get(variable);
    return value === undefined ? undefined : { value, isArgument: false };
  }
  if (values.arguments === undefined) return undefined;
  const written = at ?? word;
  if (written === undefined) return { value: values.arguments, isArgument: true };
  const isNumber = /^\d+$/.test(written);
  // Without any argument `$5` is more likely a price.
  if (at === undefined && isNumber && values.words.length === 0) return undefined;
  const index = isNumber ? Number(written) : values.names.indexOf(written);
  return { value: values.words[index] ?? "", isArgument: true };
}

function takesArguments({ body, arguments: names = [] }: Skill): boolean {
  return [...body.matchAll(placesOf(names))].some(({ groups }) => groups?.["variable"] === undefined);
}

/** Characters that no shell takes for itself, whatever quotes are around them. */
const plainWords = /^[\w./:@%+=, -]*$/;
const plainWord = /^[\w./:@%+=,-]*$/;

function fillPiece(piece: SkillPiece, values: PlaceValues): FilledPiece {
  if (piece.type === "text") return { type: "text", text: replacePlaces(piece.text, values) };
  let isOdd = false;
  const command = piece.command.replace(values.places, (...found) => {
    const written = String(found[0]);
    const place = placeOf(found, values);
    if (place === undefined) return written;
    // The command finds the variable of the same name in its environment.
    if (!place.isArgument) return plainWord.test(place.value) ? place.value : written;
    isOdd ||= !plainWords.test(place.value);
    return place.value;
  });
  if (!isOdd) return { type: "command", command };
  return { type: "unusable", reason: "its arguments contain characters that mean something to a shell" };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/** Splits what was given to a skill into words, as a shell does: quotes group, a backslash takes the next character as it is. */
export function splitArguments(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "\\" && quote !== "'" && at + 1 < text.length) {
      at += 1;
      word = (word ?? "") + text.charAt(at);
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else word = (word ?? "") + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + character;
    }
  }
  // A quote that is never closed was meant as an apostrophe.
  if (quote !== "") return text.trim().split(/\s+/);
  return word === undefined ? words : [...words, word];
}
