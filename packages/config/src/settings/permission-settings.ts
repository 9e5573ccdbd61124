import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { looseWords } from "@retinue/base/foundation/json-schema.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { type PermissionMode, parseModeLoosely, permissionModes } from "@retinue/gate/permission-policy.ts";
import {
  formatRule,
  type PermissionRule,
  type RuleList,
  readRule,
  warnOfRule,
} from "@retinue/gate/rules/parse-rule.ts";
import { withoutEffect, wrongValue } from "./plain-settings.ts";
import { disable, flag, textList, type ValueReader } from "./read-environment.ts";

export interface WrittenRule {
  readonly text: string;
  readonly rule: PermissionRule;
}

export interface InvalidRule {
  readonly list: RuleList;
  readonly text: string;
  readonly reason: string;
}

export interface PermissionSettings {
  readonly allow: readonly WrittenRule[];
  readonly ask: readonly WrittenRule[];
  readonly deny: readonly WrittenRule[];
  readonly defaultMode?: PermissionMode;
  readonly additionalDirectories: readonly string[];
  readonly switches: PermissionSwitches;
  readonly invalidRules: readonly InvalidRule[];
  readonly unknownKeys: readonly string[];
}

export const switchReaders = {
  blockReadsOutsideWorkingDirectories: flag,
  blockWritesOutsideWorkingDirectories: flag,
  blockReadsExemptPaths: textList,
  workingDirectoriesAsGiven: flag,
  denyInsteadOfPrompting: flag,
  disableBypassPermissionsMode: disable,
  disableAutoMode: disable,
} as const satisfies Readonly<Record<string, ValueReader<unknown>>>;

/** Switches whose `true` or `"disable"` restricts; any other value could only undo a restriction made elsewhere. */
export const restrictingSwitches: ReadonlySet<string> = new Set<keyof typeof switchReaders>([
  "blockReadsOutsideWorkingDirectories",
  "blockWritesOutsideWorkingDirectories",
  "denyInsteadOfPrompting",
  "disableBypassPermissionsMode",
  "disableAutoMode",
]);

/** Switches that are read and checked but change nothing yet. */
export const switchesWithoutEffect: ReadonlyMap<string, string> = new Map<keyof typeof switchReaders, string>(
  [["workingDirectoriesAsGiven", "working directories are judged by where they lead"]],
);

export type PermissionSwitches = {
  readonly [Key in keyof typeof switchReaders]?: (typeof switchReaders)[Key] extends ValueReader<infer Value>
    ? Value
    : never;
};

export const noPermissions: PermissionSettings = {
  allow: [],
  ask: [],
  deny: [],
  additionalDirectories: [],
  switches: {},
  invalidRules: [],
  unknownKeys: [],
};

export interface PermissionsReading {
  readonly permissions: PermissionSettings;
  readonly issues: readonly Issue[];
  /** What was meant to restrict and could not be understood. */
  readonly brokenRestrictions: readonly string[];
}

/** Reads the `permissions` object. A broken allow rule is dropped; a broken ask or deny rule is an error. */
export function readPermissions(value: unknown): PermissionsReading {
  if (value === undefined || value === null)
    return { permissions: noPermissions, issues: [], brokenRestrictions: [] };
  if (!isRecord(value)) {
    const isEmpty = Array.isArray(value) && value.length === 0;
    const issue: Issue = {
      severity: isEmpty ? "warning" : "error",
      code: "wrong-setting-value",
      message: `"permissions" must be an object with "allow", "ask" and "deny", but here it is ${kindOf(value)}.`,
      advice: 'Write {"allow": […], "ask": […], "deny": […]}.',
      path: ["permissions"],
    };
    return {
      permissions: noPermissions,
      issues: [issue],
      brokenRestrictions: isEmpty ? [] : ["permissions"],
    };
  }
  const issues: Issue[] = [];
  const broken: string[] = [];
  const lists = (["allow", "ask", "deny"] as const).map((list) => readRules(list, value[list]));
  const [allow, ask, deny] = lists;
  for (const list of lists) {
    issues.push(...list.issues);
    broken.push(...list.broken);
  }
  const unknown = readUnknownKeys(Object.entries(value));
  const details = readDetails(value);
  issues.push(...details.issues, ...unknown.issues);
  return {
    permissions: {
      ...details.details,
      allow: allow?.rules ?? [],
      ask: ask?.rules ?? [],
      deny: deny?.rules ?? [],
      invalidRules: lists.flatMap((list) => list.invalid),
      unknownKeys: unknown.keys,
    },
    issues,
    brokenRestrictions: [...broken, ...details.broken, ...unknown.broken],
  };
}

interface RulesReading {
  readonly rules: readonly WrittenRule[];
  readonly invalid: readonly InvalidRule[];
  readonly issues: readonly Issue[];
  readonly broken: readonly string[];
}

function readRules(list: RuleList, value: unknown): RulesReading {
  if (value === undefined || value === null) return { rules: [], invalid: [], issues: [], broken: [] };
  if (typeof value === "string") return readRules(list, [value]);
  if (!Array.isArray(value)) {
    const issue = wrongValue(list, "a list of rules", value, ["permissions", list]);
    if (list === "allow") return { rules: [], invalid: [], issues: [issue], broken: [] };
    return {
      rules: [],
      invalid: [],
      issues: [{ ...issue, severity: "error" }],
      broken: [`permissions.${list}`],
    };
  }
  const rules: WrittenRule[] = [];
  const invalid: InvalidRule[] = [];
  const issues: Issue[] = [];
  for (const [index, entry] of value.entries()) {
    const path = ["permissions", list, index];
    const reading = readRule(entry, { list });
    const text = typeof entry === "string" ? entry : quote(entry);
    if (reading.type === "rule") {
      rules.push({ text: typeof entry === "string" ? entry : formatRule(reading.rule), rule: reading.rule });
      if (reading.rule.specifier.type === "text") issues.push(notUnderstood(list, text, path));
      const warning = warnOfRule(reading.rule);
      if (warning !== undefined)
        issues.push({ severity: "warning", code: "rule-matches-nothing", ...warning, path });
    } else {
      invalid.push({ list, text, reason: reading.reason });
      issues.push(invalidRule({ list, ...reading }, path));
    }
  }
  return { rules, invalid, issues, broken: list === "allow" ? [] : invalid.map((rule) => rule.text) };
}

function invalidRule(
  rule: { readonly list: RuleList; readonly reason: string; readonly advice: string },
  path: DocumentPath,
): Issue {
  const restricts = rule.list !== "allow";
  const effect = restricts ? "what it should restrict would stay allowed" : "it grants nothing";
  return {
    severity: restricts ? "error" : "warning",
    code: "invalid-permission-rule",
    message: `A rule under "${rule.list}" is not valid: ${rule.reason}; ${effect}.`,
    advice: rule.advice,
    path,
  };
}

function notUnderstood(list: RuleList, text: string, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "rule-not-understood",
    message: `The specifier of ${quote(text)} has no meaning for this tool; ${list === "allow" ? "the rule grants nothing" : "the rule applies to the whole tool"}.`,
    advice: text.startsWith("WebFetch(")
      ? "Write WebFetch(domain:example.com)."
      : "Remove the parentheses, or name a field as in Tool(field:value).",
    path,
  };
}

function readDetails(value: Readonly<Record<string, unknown>>) {
  const issues: Issue[] = [];
  const broken: string[] = [];
  const switches: [string, unknown][] = [];
  const readOne = <T>(key: string, reader: ValueReader<T>): T | undefined => {
    if (!Object.hasOwn(value, key) || value[key] === null) return undefined;
    const read = reader.read(value[key]);
    if (read !== undefined) return read;
    const issue = wrongValue(key, reader.expected, value[key], ["permissions", key]);
    const restricts = restrictingSwitches.has(key) || (key === "defaultMode" && meansNarrowMode(value[key]));
    issues.push(restricts ? { ...issue, severity: "error" } : issue);
    if (restricts) broken.push(`permissions.${key}`);
    return undefined;
  };
  const defaultMode = readOne("defaultMode", modeReader);
  const additionalDirectories = readOne("additionalDirectories", textList) ?? [];
  for (const [key, reader] of Object.entries<ValueReader<unknown>>(switchReaders)) {
    const read = readOne(key, reader);
    if (read === undefined) continue;
    switches.push([key, read]);
    const why = switchesWithoutEffect.get(key);
    if (why !== undefined) issues.push(withoutEffect(["permissions", key], why));
  }
  const details = {
    // Each value comes from the reader that gives PermissionSwitches the type of its key.
    switches: Object.fromEntries(switches) as PermissionSwitches,
    additionalDirectories,
    defaultMode,
  };
  return { details, issues, broken };
}

export const modeReader: ValueReader<PermissionMode> = {
  expected: `one of ${permissionModes.join(", ")}`,
  read: (value) => (typeof value === "string" ? parseModeLoosely(value.trim()) : undefined),
  schema: {
    anyOf: [looseWords(permissionModes, "[-_\\s]*"), { type: "string", pattern: "^\\s*manual\\s*$" }],
  },
};

const knownKeys: readonly string[] = [
  "allow",
  "ask",
  "deny",
  "defaultMode",
  "additionalDirectories",
  ...Object.keys(switchReaders),
];

/** Words that other products, or memory, put in the place of `deny`. */
const restrictingWord = /^(?:den(?:y|ied)|disallow|block|forbid|reject|restrict)/i;

/** Whether a value could be a list of rules that is not empty. */
export function holdsRules(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value === "string" && value.trim() !== "";
}

/** Whether the value would restrict under this key. */
function isRestriction(key: string | undefined, value: unknown): boolean {
  if (key === "deny" || key === "ask") return holdsRules(value);
  if (key === "defaultMode") return meansNarrowMode(value);
  if (key === undefined || !restrictingSwitches.has(key)) return false;
  return value === true || value === "true" || value === "disable";
}

/** Whether a `permissions` object, wherever it is written, takes anything away. */
export function restrictsAnything(value: Readonly<Record<string, unknown>>): boolean {
  if (readPermissions(value).brokenRestrictions.length > 0) return true;
  return Object.entries(value).some(([key, written]) => isRestriction(key, written));
}

/** Whether a text is meant for a mode that allows less than the default; what is no text could be. */
export function meansNarrowMode(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "string") return true;
  const mode = parseModeLoosely(value.trim()) ?? nearestName(value.trim(), permissionModes);
  return mode === "plan" || mode === "dontAsk" || mode === "delegate";
}

function readUnknownKeys(entries: readonly (readonly [string, unknown])[]) {
  const keys: string[] = [];
  const issues: Issue[] = [];
  const broken: string[] = [];
  for (const [key, value] of entries) {
    if (knownKeys.includes(key)) continue;
    const nearest = nearestName(key, knownKeys);
    const meantToRestrict = isRestriction(nearest, value) || (restrictingWord.test(key) && holdsRules(value));
    keys.push(key);
    if (meantToRestrict) broken.push(`permissions.${key}`);
    issues.push({
      severity: meantToRestrict ? "error" : "warning",
      code: "unknown-permission-key",
      message: `Unknown permission setting ${quote(key)}; it has no effect.`,
      advice:
        nearest === undefined
          ? 'Rules are in the lists "allow", "ask" and "deny".'
          : `Did you mean "${nearest}"?`,
      path: ["permissions", key],
    });
  }
  return { keys, issues, broken };
}
