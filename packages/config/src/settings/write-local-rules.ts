// @io
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  byteOrderMark,
  parseJsonDocument,
  withoutByteOrderMark,
} from "@retinue/base/foundation/parse-json-document.ts";
import { formatRule, parseRule, type RuleList } from "@retinue/gate/rules/parse-rule.ts";
import { applyEdits, modify } from "jsonc-parser";
import { emptyJsonFile } from "./empty-json-file.ts";
import { type UpdateFileOptions, updateFile } from "./update-file.ts";

export interface LocalRules {
  readonly list: RuleList;
  readonly rules: readonly string[];
  /** Another settings file than the local one: the project's, which others share, or the person's. */
  readonly file?: string;
}

export type LocalRulesOutcome =
  | { readonly type: "saved"; readonly file: string; readonly added: readonly string[] }
  | {
      readonly type: "refused";
      readonly file: string;
      readonly why: string;
      readonly diagnostic?: Diagnostic;
    };

/**
 * Adds rules to `.claude/settings.local.json` of a project, where everything else stays as it is written. The file is
 * one person's own, so git is notified once, in `.git/info/exclude`, to leave it alone; `.gitignore` is the team's.
 */
export async function writeLocalRules(
  projectRoot: string,
  { list, rules, file: other }: LocalRules,
  options: UpdateFileOptions = {},
): Promise<LocalRulesOutcome> {
  const file = other ?? join(projectRoot, ".claude", "settings.local.json");
  const broken = rules.find((text) => parseRule(text, { list }).type === "invalid");
  if (broken !== undefined) return { type: "refused", file, why: `${broken} is not a valid rule` };
  const isProjects = file.startsWith(`${projectRoot}${sep}`);
  if (isProjects && !(await staysInside(file, projectRoot)))
    return { type: "refused", file, why: `${file} is a link that leads out of the project` };
  let change: RulesChange = { type: "text", text: "", added: [] };
  try {
    const update = await updateFile(
      file,
      (text) => {
        change = addRules(text, { list, rules }, file);
        if (change.type === "broken") return { type: "refused", why: change.why };
        return change.added.length === 0 ? { type: "unchanged" } : { type: "write", text: change.text };
      },
      options,
    );
    if (update.type === "refused") return { ...update, file, ...diagnosticOf(change) };
    if (update.type === "written" && other === undefined) await excludeFromGit(projectRoot, options);
    return { type: "saved", file, added: addedBy(change) };
  } catch (error) {
    return { type: "refused", file, why: error instanceof Error ? error.message : String(error) };
  }
}

/** A repository can carry links; none may turn a rule for it into a rule for everything. */
export async function staysInside(file: string, projectRoot: string): Promise<boolean> {
  const root = await realpath(projectRoot).catch(() => projectRoot);
  for (const path of [file, join(file, "..")]) {
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined && real !== root && !real.startsWith(`${root}${sep}`)) return false;
  }
  return true;
}

type RulesChange =
  | { readonly type: "text"; readonly text: string; readonly added: readonly string[] }
  | { readonly type: "broken"; readonly why: string; readonly diagnostic?: Diagnostic };

/** The settings with more rules; a file whose lists cannot be understood is left alone. */
export function addRules(text: string | undefined, { list, rules }: LocalRules, file: string): RulesChange {
  const before = text === undefined || text.trim() === "" ? emptyJsonFile(file) : withoutByteOrderMark(text);
  const document = parseJsonDocument(before, file);
  if (document.diagnostic !== undefined) {
    return { type: "broken", why: `${file} is broken and was not touched`, diagnostic: document.diagnostic };
  }
  const present = readList(document.value, list);
  if (present === undefined) {
    return { type: "broken", why: `"permissions.${list}" in ${file} is not a list; it was not touched` };
  }
  const known = new Set(present.map(canonical));
  const added = [...new Set(rules)].filter((rule) => !known.has(canonical(rule)));
  if (added.length === 0) return { type: "text", text: before, added };
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: before.includes("\r\n") ? "\r\n" : "\n" };
  const after = added.reduce((current, rule, index) => {
    const path = ["permissions", list, present.length + index];
    return applyEdits(current, modify(current, path, rule, { formattingOptions, isArrayInsertion: true }));
  }, before);
  // With a key written twice, the edit lands in the one that does not count.
  const counts =
    readList(parseJsonDocument(after, file).value, list)?.length === present.length + added.length;
  if (!counts) return { type: "broken", why: `a key appears twice in ${file}; it was not touched` };
  return {
    type: "text",
    text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after,
    added,
  };
}

function readList(value: unknown, list: RuleList): readonly unknown[] | undefined {
  if (!isRecord(value)) return undefined;
  const permissions = Object.hasOwn(value, "permissions") ? value["permissions"] : {};
  if (!isRecord(permissions)) return undefined;
  const rules = Object.hasOwn(permissions, list) ? permissions[list] : [];
  return Array.isArray(rules) ? rules : undefined;
}

function canonical(rule: unknown): string {
  if (typeof rule !== "string") return JSON.stringify(rule);
  const reading = parseRule(rule);
  return reading.type === "rule" ? formatRule(reading.rule) : rule;
}

function diagnosticOf(change: RulesChange): { readonly diagnostic?: Diagnostic } {
  return change.type === "broken" && change.diagnostic !== undefined ? { diagnostic: change.diagnostic } : {};
}

function addedBy(change: RulesChange): readonly string[] {
  return change.type === "text" ? change.added : [];
}

const excludedLine = ".claude/settings.local.json";

/** Only where `.git` is a folder: a worktree's exclude file belongs to the repository it came from. */
export async function excludeFromGit(projectRoot: string, options: UpdateFileOptions): Promise<void> {
  const git = join(projectRoot, ".git");
  const exclude = join(git, "info", "exclude");
  const isRepository = await stat(git).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isRepository || !(await staysInside(exclude, projectRoot))) return;
  const update = updateFile(
    exclude,
    (text = "") => {
      const lines = text.split(/\r?\n/).map((line) => line.trim());
      if (lines.some((line) => /^[!/]*/.exec(line)?.[0] + excludedLine === line))
        return { type: "unchanged" };
      const gap = text === "" || text.endsWith("\n") ? "" : "\n";
      return { type: "write", text: `${text}${gap}/${excludedLine}\n` };
    },
    options,
  );
  // The rule is saved; that git may list the file is no reason to say otherwise.
  await update.catch(() => undefined);
}
