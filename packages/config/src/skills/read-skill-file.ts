import {
  type Diagnostic,
  hasErrors,
  type Issue,
  placeFindings,
} from "@retinue/base/foundation/diagnostic.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { type Frontmatter, type FrontmatterField, readFrontmatter } from "../agents/read-frontmatter.ts";
import type { Skill, SkillPlugin, SkillScope, SkillSource } from "./skill.ts";
import { readSkillFields, type SkillFields } from "./skill-fields.ts";
import { type SkillKey, skillVocabulary } from "./skill-keys.ts";

export interface ReadSkillOptions {
  readonly file: string;
  readonly scope: SkillScope;
  readonly kind: SkillSource["kind"];
  readonly plugin?: SkillPlugin;
  /** What it is called by, where the file's place says more than its own folder does: `dir:name` for commands. */
  readonly name?: string;
}

export interface ReadSkill {
  /** Absent when the text is no usable skill; `problems` then says why. */
  readonly skill?: Skill;
  readonly diagnostics: readonly Diagnostic[];
  /** By canonical key, what is in the frontmatter. */
  readonly written: ReadonlyMap<SkillKey, FrontmatterField>;
}

/** Far beyond what a model should be given at the same time, and small enough that a mistake costs no time. */
export const largestSkill = 1024 * 1024;

/** Reads one SKILL.md or command file. Never throws; everything it repaired, ignored or refused is in `problems`. */
export function readSkillFile(text: string, options: ReadSkillOptions): ReadSkill {
  if (text.length > largestSkill) return refuseSkill(options.file, tooLarge);
  const frontmatter = readFrontmatter(text, skillVocabulary);
  switch (frontmatter.type) {
    case "none":
      return settle({ ...frontmatter, body: wholeBody(text) }, options, missingFrontmatter(options));
    case "unclosed":
      return refuseSkill(options.file, {
        code: "frontmatter-unclosed",
        message: "The `---` block that opens here is never closed.",
        advice: "Add a line `---` after the last field.",
        line: frontmatter.locate([])?.line ?? 1,
      });
    case "too-large":
      return refuseSkill(options.file, {
        code: "too-large",
        message: "The frontmatter is larger than 256 KiB.",
        advice: "Move long text below the closing `---`.",
      });
    case "read":
      return settle(frontmatter, options, []);
  }
}

const tooLarge = {
  code: "too-large",
  message: "The file is larger than 1 MiB.",
  advice: "Keep long material in files beside it, which the skill names.",
};

/** The answer to a file that is too large to be a skill, so that callers need not read it. */
export function refuseLargeSkill(file: string): ReadSkill {
  return refuseSkill(file, tooLarge);
}

function refuseSkill(
  file: string,
  refusal: {
    readonly code: string;
    readonly message: string;
    readonly advice: string;
    readonly line?: number;
  },
): ReadSkill {
  const { line = 1, ...texts } = refusal;
  return { diagnostics: [{ severity: "error", ...texts, file, line, column: 1 }], written: new Map() };
}

/** A command may be nothing but its text. */
function missingFrontmatter({ kind }: ReadSkillOptions): readonly Issue[] {
  if (kind === "command") return [];
  return [
    {
      severity: "warning",
      code: "no-frontmatter",
      message:
        "The file does not start with a `---` block; its folder's name and first paragraph describe it.",
      advice: "Start it with `---`, `name: …`, `description: …`, `---`.",
      path: [],
    },
  ];
}

function wholeBody(text: string): string {
  return withoutByteOrderMark(text).replace(/\r\n?/g, "\n").trim();
}

function settle(
  frontmatter: Omit<Frontmatter, "type">,
  options: ReadSkillOptions,
  isMissing: readonly Issue[],
): ReadSkill {
  const { fields, written, issues } = readSkillFields(frontmatter);
  const naming = decideName(fields, written, options);
  const allFindings = [...isMissing, ...issues, ...naming.issues];
  if (fields.description === undefined && isMissing.length === 0 && options.kind === "skill") {
    allFindings.push(noDescription(written));
  }
  const diagnostics = [
    ...frontmatter.diagnostics.map((diagnostic) => ({ ...diagnostic, file: options.file })),
    ...placeFindings(allFindings, options.file, frontmatter.locate),
  ].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  if (naming.name === undefined || hasErrors(diagnostics)) return { diagnostics, written };
  const { name: _name, description = firstParagraph(frontmatter.body), ...rest } = fields;
  const skill: Skill = {
    disableModelInvocation: false,
    userInvocable: true,
    ...rest,
    name: naming.name,
    displayName: naming.displayName,
    description,
    body: frontmatter.body,
    source: sourceOf(options),
  };
  return { skill, diagnostics, written };
}

function sourceOf({ file, scope, kind, plugin }: ReadSkillOptions): SkillSource {
  return { scope, kind, file, directory: folderOf(file), plugin };
}

interface Naming {
  readonly name?: string;
  readonly displayName?: string;
  readonly issues: readonly Issue[];
}

/** The place names a skill; in a plugin, whose folders a person does not choose, the file's own `name` comes first. */
function decideName(
  fields: SkillFields,
  written: ReadonlyMap<SkillKey, FrontmatterField>,
  options: ReadSkillOptions,
): Naming {
  const path = [written.get("name")?.key ?? "name"];
  const issues: Issue[] = [];
  const shown = fields.name !== undefined && isShowableName(fields.name) ? fields.name : undefined;
  if (fields.name !== undefined && shown === undefined) issues.push(badName(fields.name, path));
  const own = options.plugin !== undefined && options.kind === "skill" ? shown : undefined;
  const bare =
    own !== undefined && refuseSkillName(own) === undefined ? own : (options.name ?? placeName(options));
  const refusal = refuseSkillName(bare);
  if (refusal !== undefined) return { issues: [...issues, unusableName(bare, refusal, options, path)] };
  const name = options.plugin === undefined ? bare : pluginSkillName(options.plugin.name, bare);
  const isOther = shown !== undefined && shown !== name && shown !== bare;
  return { name, ...(isOther ? { displayName: shown } : {}), issues };
}

function badName(name: string, path: readonly string[]): Issue {
  return {
    severity: "warning",
    code: "name-unsafe",
    message: `The name ${JSON.stringify(name.slice(0, 80))} cannot be shown; the folder's name is used.`,
    advice: "Use lower-case letters, digits and hyphens.",
    path,
  };
}

function unusableName(
  name: string,
  reason: string,
  { kind }: ReadSkillOptions,
  path: readonly string[],
): Issue {
  const what = kind === "skill" ? "folder" : "file";
  return {
    severity: "error",
    code: "name-unsafe",
    message: `The ${what}'s name ${JSON.stringify(name.slice(0, 80))} cannot name a skill: ${reason}.`,
    advice: `Rename the ${what} with lower-case letters, digits and hyphens.`,
    path,
  };
}

function noDescription(written: ReadonlyMap<SkillKey, FrontmatterField>): Issue {
  return {
    severity: "warning",
    code: "no-description",
    message: "There is no `description`; the first paragraph describes what the skill is for.",
    advice: "Add `description: <what it does>. Use when <trigger>.`",
    path: [written.get("description")?.key ?? "description"],
  };
}

/** The folder of a SKILL.md, the base name of a command. */
function placeName({ file, kind }: ReadSkillOptions): string {
  const place = kind === "skill" ? folderOf(file) : file.replace(/\.md$/i, "");
  return place.replace(/^.*[/\\]/, "");
}

function folderOf(file: string): string {
  return file.replace(/[/\\][^/\\]*$/, "");
}

const longest = 1024;

/** What a text says first: its first paragraph that is no heading, else its first heading. */
function firstParagraph(body: string): string {
  const blocks = beginningOf(body).split(/\n[ \t]*\n/);
  const texts = blocks.map((block) => ({ heading: /^\s*#{1,6}\s/.test(block), text: plainText(block) }));
  const filled = texts.filter(({ text }) => text !== "");
  const chosen = filled.find(({ heading }) => !heading) ?? filled[0];
  return (chosen?.text ?? "").slice(0, longest).trim();
}

/** Enough to hold a few headings and comments before the first paragraph, however long the body is. */
function beginningOf(body: string): string {
  return body.slice(0, 16 * longest).replace(/<!--[\s\S]*?(?:-->|$)/g, "");
}

/** Without the marks of headings, quotes and fences; lines become one. */
function plainText(block: string): string {
  const lines = block.split("\n").filter((line) => !/^\s*(?:```|~~~|-{3,}\s*$|={3,}\s*$)/.test(line));
  const isHeadingOnly = lines.every((line) => /^\s*(?:#|$)/.test(line));
  const kept = isHeadingOnly ? lines : lines.filter((line) => !/^\s*#{1,6}\s/.test(line));
  return kept
    .map((line) => line.replace(/^\s*(?:#{1,6}|>)\s*/, "").trim())
    .join(" ")
    .trim();
}

const maxName = 256;

/** Why a name cannot call a skill; undefined when it can. Names are looked up and never joined to a path. */
function refuseSkillName(name: string): string | undefined {
  if (name.trim() === "") return "it is empty";
  if (name.length > maxName) return `it is longer than ${maxName} characters`;
  if (invisible.test(name)) return "it contains a control or invisible character";
  if (/[/\\]/.test(name) || /^[.~]/.test(name)) return "it reads as a path";
  if (/^[-$]/.test(name) || /\s/.test(name)) return "it cannot be typed as one word";
  if (/^__.*__$/.test(name)) return "such names mean something to programs";
  return undefined;
}

/** A name that is only shown may have spaces and signs, but nothing that changes the text around it. */
function isShowableName(name: string): boolean {
  return name.trim() !== "" && name.length <= maxName && !invisible.test(name);
}

/** `plugin:name`; a name that already carries its plugin's is left as it is. */
function pluginSkillName(plugin: string, name: string): string {
  return name.startsWith(`${plugin}:`) ? name : `${plugin}:${name}`;
}

const invisible = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
