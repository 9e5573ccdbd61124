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
  /** Takes the rules out instead. */
  readonly removes?: boolean;
}

export type LocalRulesOutcome =
  /** `changed` are those of the rules that were added, or taken out. */
  | { readonly type: "saved"; readonly file: string; readonly changed: readonly string[] }
  | {
      readonly type: "refused";
      readonly file: string;
      readonly why: string;
      readonly diagnostic?: Diagnostic;
    };

/**
 * Adds rules to `.claude/settings.local.json` of a project or takes them out of it, where everything else stays as it is written. The file is
 * one person's own, so git is notified once, in `.git/info/exclude`, to leave it alone; `.gitignore` is the team's.
 */
export async function writeLocalRules(
  projectRoot: string,
  { list, rules, file: other, removes = false }: LocalRules,
  options: UpdateFileOptions = {},
): Promise<LocalRulesOutcome> {
  const file = other ?? join(projectRoot, ".claude", "settings.local.json");
  const broken = rules.find((text) => parseRule(text, { list }).type === "invalid");
  if (broken !== undefined) return { type: "refused", file, why: `${broken} is not a valid rule` };
  const isProjects = file.startsWith(`${projectRoot}${sep}`);
  if (isProjects && !(await staysInside(file, projectRoot)))
    return { type: "refused", file, why: `${file} is a link that leads out of the project` };
  let change: RulesChange = { type: "text", text: "", changed: [] };
  try {
    const update = await updateFile(
      file,
      (text) => {
        change = (removes ? removeRules : addRules)(text, { list, rules }, file);
        if (change.type === "broken") return { type: "refused", why: change.why };
        return change.changed.length === 0 ? { type: "unchanged" } : { type: "write", text: change.text };
      },
      options,
    );
    if (update.type === "refused") return { ...update, file, ...diagnosticOf(change) };
    if (update.type === "written" && other === undefined) await excludeFromGit(projectRoot, options);
    return { type: "saved", file, changed: change.type === "text" ? change.changed : [] };
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
  | { readonly type: "text"; readonly text: string; readonly changed: readonly string[] }
  | { readonly type: "broken"; readonly why: string; readonly diagnostic?: Diagnostic };

/** The settings with more rules; a file whose lists cannot be understood is left alone. */
export function addRules(text: string | undefined, given: LocalRules, file: string): RulesChange {
  return changeRules(text, given, file, (before, present) => {
    const known = new Set(present.map(canonical));
    const changed = [...new Set(given.rules)].filter((rule) => !known.has(canonical(rule)));
    const formattingOptions = formattingOf(before);
    const after = changed.reduce((current, rule, index) => {
      const path = ["permissions", given.list, present.length + index];
      return applyEdits(current, modify(current, path, rule, { formattingOptions, isArrayInsertion: true }));
    }, before);
    return { after, changed, count: present.length + changed.length };
  });
}

/** The settings without the rules, however they are written. */
export function removeRules(text: string | undefined, given: LocalRules, file: string): RulesChange {
  return changeRules(text, given, file, (before, present) => {
    const gone = new Set(given.rules.map(canonical));
    const places = present.flatMap((rule, at) => (gone.has(canonical(rule)) ? [at] : [])).toReversed();
    const formattingOptions = formattingOf(before);
    const after = places.reduce(
      (current, at) =>
        applyEdits(
          current,
          modify(current, ["permissions", given.list, at], undefined, { formattingOptions }),
        ),
      before,
    );
    const changed = places.map((at) => String(present[at]));
    return { after, changed, count: present.length - places.length };
  });
}

function changeRules(
  text: string | undefined,
  { list }: LocalRules,
  file: string,
  change: (
    before: string,
    present: readonly unknown[],
  ) => { readonly after: string; readonly changed: readonly string[]; readonly count: number },
): RulesChange {
  const before = text === undefined || text.trim() === "" ? emptyJsonFile(file) : withoutByteOrderMark(text);
  const document = parseJsonDocument(before, file);
  if (document.diagnostic !== undefined) {
    return { type: "broken", why: `${file} is broken and was not touched`, diagnostic: document.diagnostic };
  }
  const present = readList(document.value, list);
  if (present === undefined) {
    return { type: "broken", why: `"permissions.${list}" in ${file} is not a list; it was not touched` };
  }
  const { after, changed, count } = change(before, present);
  if (changed.length === 0) return { type: "text", text: before, changed };
  // With a key written twice, the edit lands in the one that does not count.
  if (readList(parseJsonDocument(after, file).value, list)?.length !== count)
    return { type: "broken", why: `a key appears twice in ${file}; it was not touched` };
  return {
    type: "text",
    text: text?.startsWith(byteOrderMark) === true ? byteOrderMark + after : after,
    changed,
  };
}

function formattingOf(text: string) {
  return { insertSpaces: true, tabSize: 2, eol: text.includes("\r\n") ? "\r\n" : "\n" };
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
