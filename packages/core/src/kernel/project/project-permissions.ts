import { join } from "node:path";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type WritableScope, writableScopes } from "@retinue/config/settings/add-mcp-server.ts";
import type { HeldBack, SettingsSource } from "@retinue/config/settings/settings-layer.ts";
import { writeLocalRules } from "@retinue/config/settings/write-local-rules.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { buildPolicy } from "@retinue/gate/build-policy.ts";
import {
  type AllowedBy,
  type Decision,
  describeRule,
  type PermissionPolicy,
  type PermissionRequest,
  type PolicyRule,
} from "@retinue/gate/decide.ts";
import { decideCall } from "@retinue/gate/decide-call.ts";
import { readCallText } from "@retinue/gate/explain-decision.ts";
import { parseRule, type RuleList } from "@retinue/gate/rules/parse-rule.ts";
import { decideMode } from "../../planning/decide-mode.ts";
import { createWall } from "../../tools/sandbox/wall.ts";
import {
  findWalled,
  findWorkingDirectories,
  policyFacts,
  refuseBrokenRestrictions,
  sessionRules,
} from "../session-rules.ts";
import type { ProjectFacts } from "./project-facts.ts";

export type { HeldBack, SettingsSource } from "@retinue/config/settings/settings-layer.ts";

export interface ListedRule {
  readonly list: RuleList;
  readonly rule: string;
  /** Absent for a rule that an option gave. */
  readonly source?: SettingsSource;
}

export interface BrokenRule extends ListedRule {
  readonly reason: string;
}

export interface RuleOverview {
  readonly rules: readonly ListedRule[];
  readonly broken: readonly BrokenRule[];
  /** What is in files and does not count, with the reason; of rules and modes, and of everything else. */
  readonly heldBack: readonly HeldBack[];
  readonly otherHeldBack: readonly HeldBack[];
  readonly mode: { readonly value: string; readonly source?: SettingsSource };
  readonly trusted: boolean;
  /** What should restrict cannot be read, so nothing runs until it is fixed. */
  readonly isBroken: boolean;
}

/** A call as a tool with its input, or in the words of a rule: `Bash(git push)`. */
export type TestedCall =
  | string
  | { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };

export interface PermissionTestOptions {
  /** As if this mode were chosen. */
  readonly mode?: PermissionMode;
  readonly allowedTools?: readonly string[];
  /** How the place of a rule is shown: its file, or the name of the option that gave it. */
  readonly pathText?: (file: string) => string;
  readonly optionText?: (name: "allowedTools" | "disallowedTools" | "settings") => string;
}

export interface TestedPart {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  readonly allowedBy?: AllowedBy;
  readonly rule?: string;
  readonly from?: string;
}

export interface PermissionTest extends TestedPart {
  readonly request: PermissionRequest;
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
  readonly trust: string;
  /** Each command of a shell call by itself. */
  readonly parts: readonly (TestedPart & { readonly text: string })[];
}

/** What can be asked about the rules of a folder. Nothing is run. */
export interface ProjectPermissions {
  /** Every rule and where it is, what is held back, and what is broken. */
  list(): Promise<RuleOverview>;
  /** What would happen to a call of the main agent, and by which rule. */
  test(call: TestedCall, options?: PermissionTestOptions): Promise<PermissionTest>;
  /** Writes a rule to the settings of a scope; `isNew` is false where they had it. It holds for what is started from then on. */
  add(rule: WrittenRule): Promise<{ readonly file: string; readonly isNew: boolean }>;
  /** Takes a rule out of the settings of a scope. Throws where they do not have it. */
  remove(rule: WrittenRule): Promise<{ readonly file: string }>;
}

/** A rule in the settings of a scope. */
export interface WrittenRule {
  readonly rule: string;
  /** `allow` when left out. */
  readonly list?: RuleList;
  /** `local` when left out. */
  readonly scope?: RuleScope;
}

/** Settings that rules are written to: one's own of this project, those that its people share, or one's own everywhere. */
export const ruleScopes = writableScopes;
export type RuleScope = WritableScope;

export function projectPermissions(gather: () => Promise<ProjectFacts>): ProjectPermissions {
  return {
    list: async () => listRules(await gather()),
    async test(call, options = {}) {
      const read = readCall(call);
      const facts = await gather();
      refuseBrokenRestrictions(facts.discovered.settings);
      const { policy, modeFrom } = await gatherPolicy(facts, options);
      const { cwd } = facts.discovered.paths;
      return {
        ...(await testCall(read, policy, cwd)),
        policy,
        modeFrom,
        trust: facts.trust.why,
      };
    },
    async add(given) {
      const { file, changed } = await writeRule(await gather(), given, false);
      return { file, isNew: changed.length > 0 };
    },
    async remove(given) {
      const { file, changed } = await writeRule(await gather(), given, true);
      if (changed.length > 0) return { file };
      throw misuse(
        `${file} has no rule ${given.rule} in its list "${given.list ?? "allow"}".`,
        "`retinue permissions` lists all rules and where each is.",
      );
    },
  };
}

async function writeRule(
  { discovered: { paths } }: ProjectFacts,
  { rule, list = "allow", scope = "local" }: WrittenRule,
  removes: boolean,
): Promise<{ readonly file: string; readonly changed: readonly string[] }> {
  const reading = parseRule(rule, { list });
  if (reading.type === "invalid" && !removes)
    throw misuse(`The rule ${rule} is not valid: ${reading.reason}.`, reading.advice);
  const { projectRoot, settings } = paths;
  const files = { user: settings.user, project: join(projectRoot, ".claude", "settings.json") };
  const outcome = await writeLocalRules(projectRoot, {
    list,
    rules: [rule],
    removes,
    ...(scope === "local" ? {} : { file: files[scope] }),
  });
  if (outcome.type === "refused") throw new RetinueError("rules-not-saved", `${outcome.why}.`);
  return outcome;
}

const lists = ["deny", "ask", "allow"] as const;

function listRules({ discovered, disallowedTools, trust }: ProjectFacts): RuleOverview {
  const { settings, incomplete } = discovered.settings;
  const { permissions, sources, heldBack, brokenRestrictions } = settings;
  const isAboutRules = ({ key }: HeldBack): boolean => key.startsWith("permissions.");
  const source = sources.get("permissions.defaultMode");
  const isChosen = permissions.defaultMode !== undefined && source !== undefined;
  return {
    rules: [
      ...disallowedTools.map((rule) => ({ list: "deny" as const, rule })),
      ...lists.flatMap((list) =>
        permissions[list].map(({ text, source: from }) => ({ list, rule: text, source: from })),
      ),
    ],
    broken: permissions.invalidRules.map(({ list, text, reason, source: from }) => ({
      list,
      rule: text,
      source: from,
      reason,
    })),
    heldBack: heldBack.filter(isAboutRules),
    otherHeldBack: heldBack.filter((one) => !isAboutRules(one)),
    mode: { value: permissions.defaultMode ?? "default", ...(isChosen ? { source } : {}) },
    trusted: trust.trusted,
    isBroken: incomplete || brokenRestrictions.length > 0,
  };
}

type ReadCall = Exclude<TestedCall, string>;

function readCall(call: TestedCall): ReadCall {
  if (typeof call !== "string") return call;
  const reading = readCallText(call);
  if (reading.type === "call") return reading;
  throw misuse(`The call is not valid: ${reading.reason}.`, reading.advice);
}

function misuse(message: string, advice?: string): RetinueError {
  return new RetinueError("misuse", message, advice === undefined ? {} : { advice });
}

/** The policy that the main agent of a session started here would have. */
async function gatherPolicy(
  { discovered, trust, platform, disallowedTools, additionalDirectories }: ProjectFacts,
  { mode, allowedTools = [], pathText = (file) => file, optionText = (name) => name }: PermissionTestOptions,
): Promise<Pick<PermissionTest, "policy" | "modeFrom">> {
  const source = { discovered, trusted: trust.trusted, platform };
  const rules = sessionRules(discovered.settings, { allowedTools, disallowedTools }, discovered.paths.cwd);
  const facts = policyFacts(source, rules);
  const decided = decideMode({ ...facts, ...(mode === undefined ? {} : { permissionMode: mode }) });
  if (decided.type === "refused") throw misuse(decided.reason, decided.advice);
  const workingDirectories = await findWorkingDirectories({ discovered, additionalDirectories });
  const walled = await findWalled({ ...source, wall: createWall({ platform }) });
  const policy = buildPolicy({ ...facts, workingDirectories, ...walled }, decided.mode.value);
  const named =
    (option: Parameters<typeof optionText>[0]) =>
    ({ from, ...rule }: PolicyRule): PolicyRule => ({
      ...rule,
      from: from === undefined ? optionText(option) : pathText(from),
    });
  const { from } = decided.mode;
  return {
    modeFrom: from === facts.settingsMode?.from ? pathText(from) : from,
    policy: {
      ...policy,
      allow: policy.allow.map(named("allowedTools")),
      ask: policy.ask.map(named("settings")),
      deny: policy.deny.map(named("disallowedTools")),
    },
  };
}

async function testCall(
  { tool, input }: ReadCall,
  policy: PermissionPolicy,
  directory: string,
): Promise<TestedPart & Pick<PermissionTest, "request" | "parts">> {
  const effect = effectOf(tool);
  const judge = (given: ReadCall["input"]) =>
    decideCall({ tool, effect, input: given }, policy, { directory });
  const { request, ...decision } = await judge(input);
  const units = request.facts?.shell?.analysis.units ?? [];
  const parts = units.map(async ({ written }) => ({
    text: written,
    ...decisionParts(await judge({ command: written })),
  }));
  return { ...decisionParts(decision), request, parts: await Promise.all(parts) };
}

function decisionParts({ type, reason, allowedBy, rule }: Decision): TestedPart {
  const found =
    rule === undefined
      ? {}
      : { rule: describeRule({ rule: rule.rule, anchor: rule.anchor }), from: rule.from ?? "the call" };
  return { decision: type, reason, allowedBy, ...found };
}

function effectOf(tool: string): string {
  const known = builtinTools.find(({ name }) => name === tool);
  if (known !== undefined) return known.effect;
  if (tool.startsWith("mcp__")) return "execute";
  const nearest = nearestName(
    tool,
    builtinTools.map(({ name }) => name),
  );
  throw misuse(
    `There is no tool "${tool}".`,
    nearest === undefined
      ? "`retinue agents show general-purpose` lists the tools."
      : `Did you mean ${nearest}?`,
  );
}
