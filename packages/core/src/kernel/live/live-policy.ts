import { join, resolve } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { changeJson } from "@retinue/config/settings/approve-mcp-servers.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { type LocalRules, staysInside, writeLocalRules } from "@retinue/config/settings/write-local-rules.ts";
import { mcpServerPart } from "@retinue/gate/call-facts.ts";
import {
  type PermissionMode,
  type PermissionPolicy,
  type PolicyRule,
  parsePermissionMode,
} from "@retinue/gate/permission-policy.ts";
import { formatRule, parseRule } from "@retinue/gate/rules/parse-rule.ts";

/** The settings files that rules can be saved to. */
type SavedDestination = "localSettings" | "projectSettings" | "userSettings";
const saved: readonly SavedDestination[] = ["localSettings", "projectSettings", "userSettings"];

type RuleBehavior = "allow" | "ask" | "deny";
const behaviors: readonly RuleBehavior[] = ["allow", "ask", "deny"];

/** What the host has changed of the permissions since the session was opened. */
export interface LivePolicy {
  /** The planned policy with these changes. */
  apply(planned: PermissionPolicy): PermissionPolicy;
  mode(): PermissionMode | undefined;
  /** Throws where the mode is unknown, or bypasses permissions that may not be bypassed. */
  setMode(text: unknown): PermissionMode;
  /** Applies one PermissionUpdate; only what the host itself has added is removed. Throws where it cannot be applied. */
  update(update: unknown): Promise<void>;
}

export interface LivePolicyOptions {
  readonly directory: () => string;
  readonly mayBypass: () => boolean;
  /** The mode the session was opened with. */
  readonly initialMode: () => PermissionMode;
  /** Where rules are saved. */
  readonly paths: () => Promise<Pick<Paths, "projectRoot" | "settings">>;
  readonly modeChanged: (mode: PermissionMode) => void;
}

interface PolicyChanges {
  mode: PermissionMode | undefined;
  readonly rules: Record<RuleBehavior, PolicyRule[]>;
  readonly directories: Set<string>;
}

export function createLivePolicy(options: LivePolicyOptions): LivePolicy {
  const changes: PolicyChanges = {
    mode: undefined,
    rules: { allow: [], ask: [], deny: [] },
    directories: new Set(),
  };
  return {
    mode: () => changes.mode,
    setMode: (text) => setMode(text, changes, options),
    apply: (planned) => applyChanges(planned, changes, options.initialMode()),
    async update(update) {
      if (!isRecord(update)) throw refused("a permission update must be an object");
      const { type } = update;
      if (type === "setMode") setMode(update["mode"], changes, options);
      else if (type === "addRules" || type === "replaceRules" || type === "removeRules")
        await changeRules(update, changes, options);
      else if (type === "addDirectories" || type === "removeDirectories") {
        for (const folder of textsOf(update["directories"])) {
          const path = resolve(options.directory(), folder);
          if (type === "addDirectories") changes.directories.add(path);
          else changes.directories.delete(path);
        }
      } else throw refused(`unknown permission update ${JSON.stringify(type)}`);
    },
  };
}

function setMode(text: unknown, changes: PolicyChanges, options: LivePolicyOptions): PermissionMode {
  const wanted = typeof text === "string" ? parsePermissionMode(text) : undefined;
  if (wanted === undefined) throw refused(`unknown permission mode ${JSON.stringify(text)}`);
  if (wanted === "bypassPermissions" && !options.mayBypass())
    throw refused(
      "the mode bypassPermissions was not allowed at the start (--allow-dangerously-skip-permissions)",
    );
  changes.mode = wanted;
  options.modeChanged(wanted);
  return wanted;
}

/** An agent that was planned with a mode of its own keeps it, so that no child gains rights by this. */
function applyChanges(
  planned: PermissionPolicy,
  { mode, rules, directories }: PolicyChanges,
  initial: PermissionMode,
): PermissionPolicy {
  const current = (own: PermissionMode): PermissionMode => (own === initial ? (mode ?? own) : own);
  return {
    ...planned,
    mode: current(planned.mode),
    ...(planned.outerModes === undefined ? {} : { outerModes: planned.outerModes.map(current) }),
    allow: [...planned.allow, ...rules.allow],
    ask: [...planned.ask, ...rules.ask],
    deny: [...planned.deny, ...rules.deny],
    workingDirectories: [...planned.workingDirectories, ...directories],
  };
}

async function changeRules(
  update: Readonly<Record<string, unknown>>,
  { rules }: PolicyChanges,
  options: LivePolicyOptions,
): Promise<void> {
  const { type, destination } = update;
  const behavior = behaviors.find((each) => each === update["behavior"]);
  if (behavior === undefined) throw refused("a permission update has no behavior");
  const value = update["rules"];
  const anchor = options.directory();
  if (!Array.isArray(value)) throw refused("a permission update has no list of rules");
  const named = value.map((each: unknown) => {
    const { toolName, ruleContent } = isRecord(each) ? each : {};
    const written = `${String(toolName)}${typeof ruleContent === "string" ? `(${ruleContent})` : ""}`;
    const reading = parseRule(written, { list: behavior });
    if (reading.type !== "rule") throw refused(`the rule ${written} is not valid: ${reading.reason}`);
    return { rule: reading.rule, anchor };
  });
  const texts = named.map(({ rule }) => formatRule(rule));
  if (type === "removeRules") {
    const gone = new Set(texts);
    rules[behavior] = rules[behavior].filter(({ rule }) => !gone.has(formatRule(rule)));
    return;
  }
  if (type === "replaceRules") rules[behavior] = [];
  rules[behavior].push(...named);
  const place = saved.find((each) => each === destination);
  if (place !== undefined) await save({ list: behavior, rules: texts }, place, await options.paths());
}

async function save(
  rules: Pick<LocalRules, "list" | "rules">,
  destination: SavedDestination,
  { projectRoot, settings }: Pick<Paths, "projectRoot" | "settings">,
): Promise<void> {
  const files = {
    userSettings: settings.user,
    projectSettings: join(projectRoot, ".claude", "settings.json"),
  };
  const other = destination === "localSettings" ? {} : { file: files[destination] };
  const outcome = await writeLocalRules(projectRoot, { ...rules, ...other });
  if (outcome.type !== "saved") throw new RetinueError("rules-not-saved", outcome.why);
}

/** The rule that matches all tools of a server. */
export function ruleOfServer(server: string): string {
  return `mcp__${mcpServerPart(server)}`;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function refused(reason: string): RetinueError {
  return new RetinueError("permission-update-refused", reason);
}

/** Writes top-level keys to a settings file of the person; `null` removes a key. */
export async function updateSettingsFile(
  { projectRoot, settings: { user } }: Pick<Paths, "projectRoot" | "settings">,
  source: "localSettings" | "userSettings",
  settings: JsonRecord,
): ReturnType<typeof changeJson> {
  const local = join(projectRoot, ".claude", "settings.local.json");
  if (source === "localSettings" && !(await staysInside(local, projectRoot)))
    return { type: "refused", file: local, why: `${local} is a link that leads out of the project` };
  const changes = Object.entries(settings).map(([key, value]) => ({
    path: [key],
    value: value ?? undefined,
  }));
  return changeJson(source === "userSettings" ? user : local, () => changes);
}

/** Changes one setting of this person, wherever it is in the file; without a value it is taken out. */
export function changeUserSetting(
  { settings: { user } }: Pick<Paths, "settings">,
  path: readonly string[],
  value: unknown,
): ReturnType<typeof changeJson> {
  return changeJson(user, () => [{ path, value }]);
}
