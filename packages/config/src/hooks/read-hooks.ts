import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { canonicalToolName, knownToolNames } from "@retinue/base/foundation/tool-table.ts";
import { hookEventNames, hookEvents, isFiredEvent, isHookEventName } from "./hook-input.ts";
import type { HookRule } from "./hook-rule.ts";
import { matchesSome } from "./match-subject.ts";
import { readHookHandler } from "./read-hook-handler.ts";

export type { HookRule } from "./hook-rule.ts";

export interface HooksReading {
  readonly hooks: readonly HookRule[];
  readonly issues: readonly Issue[];
}

/** Reads the value of a `hooks` key, from JSON or YAML, into a flat list in the order written. Never throws. */
export function readHooks(value: unknown, path: DocumentPath = ["hooks"]): HooksReading {
  const reading = createReading();
  if (Array.isArray(value)) readList(value, path, reading);
  else if (isRecord(value)) readEvents(value, path, reading);
  else if (value !== undefined && value !== null) {
    reading.report("error", "hooks-not-an-object", path, {
      message: `"hooks" must be an object of events, but here it is ${kindOf(value)}; no hook was taken from it.`,
      advice: shapeAdvice,
    });
  }
  return { hooks: reading.hooks, issues: reading.issues };
}

/** Events whose hooks may refuse something: one that was written and does not run leaves open what it should close. */
const guardEvents: readonly string[] = ["PreToolUse", "PermissionRequest", "UserPromptSubmit"];

export function isGuardEvent(event: string): boolean {
  return guardEvents.includes(event);
}

/** The event of the guard that a problem of a settings file is about, where the guard does not run as it was written. */
export function brokenGuard({ code, path: [key, event, group] }: Issue): string | undefined {
  if (code === "hooks-not-an-object") return "hooks";
  if (key !== "hooks" || typeof event !== "string" || !lossCodes.has(code)) return undefined;
  if (code === "unknown-hook-event") {
    const meant = nearestName(event, hookEventNames, 2);
    return meant !== undefined && guardEvents.includes(meant) ? `hooks.${event}` : undefined;
  }
  return guardEvents.includes(event) ? `hooks.${event}${group === undefined ? "" : `.${group}`}` : undefined;
}

/** What was written does not run at all. */
const lossCodes: ReadonlySet<string> = new Set([
  "unknown-hook-event",
  "hook-group-invalid",
  "hook-handler-invalid",
  "hook-matcher-invalid",
  "hook-matcher-misspelt",
  "too-many-hooks",
]);

/** Whether a hook was lost by a problem, so that a run says so. */
export function losesHook({ code }: Pick<Issue, "code">): boolean {
  return lossCodes.has(code) || /^hook-matcher-(?:matches-nothing|is-rule|not-a-pattern)$/.test(code);
}

/** Reads a whole `hooks.json`: the events under a `hooks` key, or directly at the top. */
export function readHooksFile(value: unknown): HooksReading {
  if (!isRecord(value)) return readHooks(value, []);
  if (Object.hasOwn(value, "hooks")) return readHooks(value["hooks"], ["hooks"]);
  const events = Object.entries(value).filter(([key]) => !hooksFileKeys.has(key));
  return readHooks(Object.fromEntries(events), []);
}

/** Keys beside the events that describe the file itself. */
export const hooksFileKeys: ReadonlySet<string> = new Set(["$schema", "description", "name", "version"]);

const shapeAdvice =
  'Write {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "…"}]}]}.';

/** More handlers than this come from a mistake or from repeated YAML aliases, never from a person. */
const handlerLimit = 1000;

interface Reading {
  readonly hooks: HookRule[];
  readonly issues: Issue[];
  readonly report: (
    severity: Issue["severity"],
    code: string,
    path: DocumentPath,
    texts: { readonly message: string; readonly advice?: string },
  ) => void;
  /** False once the limit is reached; then the reader stops. */
  readonly hasRoom: (path: DocumentPath) => boolean;
}

function createReading(): Reading {
  const hooks: HookRule[] = [];
  const issues: Issue[] = [];
  let handlersSeen = 0;
  return {
    hooks,
    issues,
    report: (severity, code, path, texts) => issues.push({ severity, code, path, ...texts }),
    hasRoom: (path) => {
      handlersSeen += 1;
      if (handlersSeen === handlerLimit + 1) {
        const message = `There are more than ${handlerLimit} hooks here; the rest was not read.`;
        issues.push({
          severity: "error",
          code: "too-many-hooks",
          path,
          message,
          advice: "Remove repeated entries.",
        });
      }
      return handlersSeen <= handlerLimit;
    },
  };
}

function readEvents(events: JsonRecord, path: DocumentPath, reading: Reading): void {
  for (const [name, groups] of Object.entries(events)) {
    const eventPath = [...path, name];
    if (!isHookEventName(name)) {
      if (!reading.hasRoom(eventPath)) return;
      reportUnknownEvent(name, eventPath, reading);
      continue;
    }
    if (!isFiredEvent(name)) {
      // Runs have no such moment yet: the hook is kept, and its author is notified.
      reading.report("note", "hook-never-fires", eventPath, {
        message: `The hook event ${name} is never fired by Retinue, so its hooks never run.`,
      });
    }
    if (Array.isArray(groups)) {
      for (const [index, group] of groups.entries()) {
        if (!readGroup(name, group, [...eventPath, index], reading)) return;
      }
    } else if (groups !== null && !readGroup(name, groups, eventPath, reading)) return;
  }
}

function reportUnknownEvent(name: string, path: DocumentPath, reading: Reading): void {
  const nearest = nearestName(name, hookEventNames) ?? beginsLike(name);
  reading.report("warning", "unknown-hook-event", path, {
    message: `Unknown hook event ${quote(name)}; its hooks never run.`,
    advice:
      nearest === undefined
        ? "Use one of the known events, such as PreToolUse, PostToolUse, UserPromptSubmit, Stop or SubagentStop."
        : `Did you mean ${nearest}?`,
  });
}

/** `pre` and `post` are the names that other products have. */
function beginsLike(name: string): string | undefined {
  if (name.length < 3) return undefined;
  return hookEventNames.find((event) => event.toLowerCase().startsWith(name.toLowerCase()));
}

/** A group is a matcher with its handlers, or one handler that is where a group was expected. False: stop reading. */
function readGroup(event: string, group: unknown, path: DocumentPath, reading: Reading): boolean {
  if (!reading.hasRoom(path)) return false;
  if (!isRecord(group)) {
    reading.report("warning", "hook-group-invalid", path, {
      message: `An entry of ${event} must be an object with "hooks", but here it is ${kindOf(group)}; it was left out.`,
      advice: shapeAdvice,
    });
    return true;
  }
  const matcher = readHookMatcher(group["matcher"], [...path, "matcher"]);
  reading.issues.push(...matcher.issues);
  if (matcher.type === "invalid") return true;
  const place = placeHooks(event, matcher.matcher, [...path, "matcher"], reading);
  if (!Object.hasOwn(group, "hooks")) {
    addHandler(place, group, path, reading);
    return true;
  }
  if (Object.hasOwn(group, "command") || Object.hasOwn(group, "url")) {
    reading.report("warning", "hook-group-invalid", path, {
      message: `This entry of ${event} has "hooks" and a command or url of its own; only its "hooks" run.`,
      advice: 'Move the command into the list "hooks".',
    });
  }
  return readHandlers(place, group["hooks"], [...path, "hooks"], reading);
}

/** Where handlers are, with the condition that their matcher holds. */
interface HandlerPlace extends Omit<HookRule, "handler"> {
  readonly condition?: string;
}

function placeHooks(
  event: string,
  matcher: string | undefined,
  path: DocumentPath,
  reading: Reading,
): HandlerPlace {
  const written = { event, matcher };
  if (!isHookEventName(event) || hookEvents[event].matches !== "tool name") return written;
  const rule = readRuleMatcher(matcher);
  reading.issues.push(
    ...(rule === undefined ? checkToolMatcher(matcher, path) : [ruleAsMatcher(rule, path)]),
  );
  return rule === undefined ? written : { event, matcher: rule.tool, condition: rule.rule };
}

function readHandlers(place: HandlerPlace, value: unknown, path: DocumentPath, reading: Reading): boolean {
  if (value === null || value === undefined) return true;
  if (!Array.isArray(value)) {
    addHandler(place, value, path, reading);
    return true;
  }
  for (const [index, handler] of value.entries()) {
    if (!reading.hasRoom(path)) return false;
    addHandler(place, handler, [...path, index], reading);
  }
  return true;
}

function addHandler(
  { condition, ...place }: HandlerPlace,
  value: unknown,
  path: DocumentPath,
  reading: Reading,
): void {
  const { handler, issues } = readHookHandler(value, path);
  reading.issues.push(...issues);
  if (handler === undefined) return;
  const conditions = condition === undefined ? {} : { if: condition };
  reading.hooks.push({ ...place, handler: { ...conditions, ...handler } });
}

function readList(entries: readonly unknown[], path: DocumentPath, reading: Reading): void {
  for (const [index, entry] of entries.entries()) {
    const entryPath = [...path, index];
    if (!reading.hasRoom(entryPath)) return;
    reading.report("warning", "list-shaped-hooks", entryPath, {
      message: "Hooks are written here as a list; the usual form is an object keyed by event.",
      advice: shapeAdvice,
    });
    if (isRecord(entry)) readListEntry(entry, entryPath, reading);
  }
}

/** The event of a list entry is in `event`, in `type`, or is the entry's only kind of key. */
function readListEntry(entry: JsonRecord, path: DocumentPath, reading: Reading): void {
  const { event, ...afterEvent } = entry;
  if (isHookEventName(event)) {
    readGroup(event, afterEvent, path, reading);
    return;
  }
  const { type, ...afterType } = entry;
  if (isHookEventName(type)) {
    readGroup(type, afterType, path, reading);
  } else if (typeof event === "string") {
    reportUnknownEvent(event, [...path, "event"], reading);
  } else if (Object.keys(entry).some(isHookEventName)) {
    readEvents(entry, path, reading);
  } else {
    reading.report("warning", "hook-group-invalid", path, {
      message: "This entry does not name a known event; it was left out.",
      advice: shapeAdvice,
    });
  }
}

type MatcherReading =
  | { readonly type: "matcher"; readonly matcher?: string; readonly issues: readonly Issue[] }
  | { readonly type: "invalid"; readonly issues: readonly Issue[] };

/** Reads a `matcher`. Absent, empty and `*` are all "everything"; a list of names is joined with `|`. */
function readHookMatcher(value: unknown, path: DocumentPath): MatcherReading {
  const text =
    Array.isArray(value) && value.every((name) => typeof name === "string") ? value.join("|") : value;
  if (text === undefined || text === null) return { type: "matcher", issues: [] };
  if (typeof text !== "string") {
    return { type: "invalid", issues: [wrongKind(value, path)] };
  }
  if (text.trim() === "" || text.trim() === "*") return { type: "matcher", issues: [] };
  return { type: "matcher", matcher: text, issues: isPattern(text) ? [] : [notAPattern(text, path)] };
}

/** What is wrong with a matcher of tools that matches none which there could be. */
function checkToolMatcher(matcher: string | undefined, path: DocumentPath): readonly Issue[] {
  if (matcher === undefined) return [];
  const report = (code: string, advice: string): readonly Issue[] => {
    const message = `The matcher ${quote(matcher)} matches no tool, so its hooks never run.`;
    // Expressions of other products are in many files, where they do no harm.
    const severity = code === "hook-matcher-misspelt" ? "warning" : "note";
    return [{ severity, code, message, advice, path }];
  };
  if (/^[\w\-\s,|]*$/.test(matcher)) {
    const names = matcher.split(/[|,]/).map((name) => name.trim());
    const wrong = names.find((name) => misspeltTool(name) !== undefined);
    return wrong === undefined ? [] : report("hook-matcher-misspelt", `Did you mean ${misspeltTool(wrong)}?`);
  }
  if (!isPattern(matcher) || /mcp/i.test(matcher) || matchesSome(matcher, knownToolNames)) return [];
  const folded = [...knownToolNames].map((name) => name.toLowerCase());
  if (matchesSome(matcher, folded))
    return report(
      "hook-matcher-misspelt",
      "Regular expressions are case-sensitive: write tools as Bash or Edit.",
    );
  if (!/[\s=&"]/.test(matcher)) return [];
  return report(
    "hook-matcher-matches-nothing",
    'Write names as in "Edit|Write"; conditions belong in "if", as in "Bash(git push *)".',
  );
}

/** A rule in the place of a matcher: the tool is the matcher, and the rule the condition of its hooks. */
function readRuleMatcher(
  matcher: string | undefined,
): { readonly tool: string; readonly rule: string } | undefined {
  const [rule, tool] = /^\s*(\w+)\(.*\)\s*$/s.exec(matcher ?? "") ?? [];
  if (rule === undefined || tool === undefined || !knownToolNames.has(canonicalToolName(tool)))
    return undefined;
  // `Task(Create|Update)` is an expression.
  return isPattern(rule) && matchesSome(rule, knownToolNames) ? undefined : { tool, rule: rule.trim() };
}

function ruleAsMatcher(
  { tool, rule }: { readonly tool: string; readonly rule: string },
  path: DocumentPath,
): Issue {
  return {
    severity: "warning",
    code: "hook-matcher-is-rule",
    message: `The matcher ${quote(rule)} is a rule; it was read as the matcher "${tool}" with the rule as condition.`,
    advice: `Write "matcher": "${tool}", and in each hook "if": ${quote(rule)}.`,
    path,
  };
}

/** The tool that was meant where one letter is wrong. */
function misspeltTool(name: string): string | undefined {
  if (knownToolNames.has(canonicalToolName(name)) || name.startsWith("mcp__")) return undefined;
  return nearestName(name, knownToolNames, 1);
}

/** Letters, digits, `_`, `-`, spaces, commas and bars are names; everything else must be a regular expression. */
function isPattern(text: string): boolean {
  if (/^[\w\-\s,|]*$/.test(text)) return true;
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

function wrongKind(value: unknown, path: DocumentPath): Issue {
  return {
    severity: "error",
    code: "hook-matcher-invalid",
    message: `A matcher must be a string, but here it is ${kindOf(value)}; these hooks were left out.`,
    advice:
      'Write the names with bars between them, as in "Edit|Write", or leave the matcher out to match everything.',
    path,
  };
}

function notAPattern(text: string, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "hook-matcher-not-a-pattern",
    message: `The matcher ${quote(text)} is neither a list of names nor a regular expression; it cannot match as meant.`,
    advice: 'Write "*" for everything, names as in "Edit|Write", or a regular expression such as "mcp__.*".',
    path,
  };
}
