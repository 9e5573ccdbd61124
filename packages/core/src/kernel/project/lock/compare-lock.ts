import { canonicalJson } from "@retinue/base/foundation/canonical-json.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type LockEntry, type LockedRights, lockKey } from "@retinue/config/lock/lock-file.ts";
import {
  findNarrowings,
  findWidenings,
  type RightsRow,
  rightsOf,
  rightsTable,
} from "../../../planning/agent-rights.ts";

/**
 * What became of one part: `changed` leaves its rights as they were, `moved` is in another file and the same, `formatted` differs in
 * nothing that is read.
 */
export type LockStatus = "added" | "removed" | "widened" | "narrowed" | "changed" | "moved" | "formatted";

export interface LockDifference {
  readonly kind: LockEntry["kind"];
  readonly name: string;
  readonly file: string;
  readonly status: LockStatus;
  /** What it may do now that was not accepted, one sentence each. */
  readonly widenings: readonly string[];
  /** What it may no longer do. */
  readonly narrowings: readonly string[];
  /** What else is different: its prompt, its fields. */
  readonly changes: readonly string[];
  /** Of an agent: classes of tools before and after. */
  readonly table?: readonly RightsRow[];
  /** The file before, where the part was moved. */
  readonly from?: string;
}

/** Whether a difference has to be accepted. */
export function matters({ status }: LockDifference): boolean {
  return status !== "formatted";
}

interface Compared {
  readonly before: readonly LockEntry[];
  readonly after: readonly LockEntry[];
  /** Agents that count once one of the project of the same name is gone. */
  readonly stillThere?: ReadonlySet<string>;
}

/** Everything in which the configuration differs from what was accepted. */
export function compareLock({ before, after, stillThere = new Set() }: Compared): readonly LockDifference[] {
  const old = new Map(before.map((entry) => [lockKey(entry), entry]));
  const now = new Map(after.map((entry) => [lockKey(entry), entry]));
  const added = after.filter((entry) => !old.has(lockKey(entry)));
  const removed = before.filter((entry) => !now.has(lockKey(entry)));
  const moves = new Map<LockEntry, LockEntry>();
  for (const entry of added) {
    const from = removed.find(
      (other) =>
        other.kind === entry.kind && other.name === entry.name && ![...moves.values()].includes(other),
    );
    if (from !== undefined) moves.set(entry, from);
  }
  const gone = new Set(moves.values());
  return [
    ...added.map((entry) => {
      const from = moves.get(entry);
      if (from === undefined) return addition(entry);
      const found = difference(from, entry);
      const status = found === undefined || found.status === "formatted" ? "moved" : found.status;
      return { ...(found ?? noChange(entry)), status, from: from.file };
    }),
    ...removed.filter((entry) => !gone.has(entry)).map((entry) => removal(entry, stillThere)),
    ...after.flatMap((entry) => {
      const from = old.get(lockKey(entry));
      return from === undefined ? [] : (difference(from, entry) ?? []);
    }),
  ].sort((a, b) => order(a) - order(b));
}

const statuses: readonly LockStatus[] = [
  "widened",
  "added",
  "removed",
  "narrowed",
  "changed",
  "moved",
  "formatted",
];

function order({ status, widenings }: LockDifference): number {
  return statuses.indexOf(status) + (widenings.length > 0 ? 0 : statuses.length);
}

function noChange({ kind, name, file }: LockEntry) {
  return { kind, name, file, widenings: [], narrowings: [], changes: [] };
}

function addition(entry: LockEntry): LockDifference {
  const nothing: LockEntry = { ...entry, rights: entry.kind === "agent" ? { tools: [] } : {} };
  const { widenings, table } = compareRights(nothing, entry);
  return { ...noChange(entry), status: "added", widenings, ...(table === undefined ? {} : { table }) };
}

function removal(entry: LockEntry, stillThere: ReadonlySet<string>): LockDifference {
  const nothing: LockEntry = { ...entry, rights: entry.kind === "agent" ? { tools: [] } : {} };
  const { widenings, narrowings, table } = compareRights(entry, nothing);
  const isReplaced = entry.kind === "agent" && stillThere.has(entry.name);
  // What the agent was forbidden is no loss where there is no agent.
  const lost = entry.kind === "agent" || entry.kind === "skill" ? [] : widenings;
  return {
    ...noChange(entry),
    status: "removed",
    widenings: isReplaced ? [`another agent of the name ${entry.name} takes its place`] : lost,
    narrowings,
    ...(table === undefined ? {} : { table }),
  };
}

function difference(before: LockEntry, after: LockEntry): LockDifference | undefined {
  const { widenings, narrowings, table } = compareRights(before, after);
  const isSame =
    before.meaning === after.meaning &&
    canonicalJson(withoutModes(before.rights)) === canonicalJson(withoutModes(after.rights)) &&
    stoppedGuards(before.rights, after.rights).length === 0;
  const base = { ...noChange(after), widenings, narrowings, ...(table === undefined ? {} : { table }) };
  if (isSame) return before.text === after.text ? undefined : { ...base, status: "formatted" };
  const isOtherPrompt = before.prompt !== after.prompt;
  const isOtherRights = widenings.length + narrowings.length > 0;
  const changes = [
    ...(isOtherPrompt ? ["its prompt is different"] : []),
    ...(!isOtherPrompt && !isOtherRights ? ["its fields are different"] : []),
    ...(isOtherRights ? [] : ["what it may do is the same"]),
  ];
  if (widenings.length > 0) return { ...base, status: "widened", changes };
  return { ...base, status: narrowings.length > 0 ? "narrowed" : "changed", changes };
}

interface RightsChange {
  readonly widenings: readonly string[];
  readonly narrowings: readonly string[];
  readonly table?: readonly RightsRow[];
}

function compareRights(before: LockEntry, after: LockEntry): RightsChange {
  const widenings = otherWidenings(before.rights, after.rights);
  const narrowings = otherNarrowings(before.rights, after.rights);
  if (after.kind !== "agent") return { widenings, narrowings };
  const [first, second] = [fieldsOf(before.rights), fieldsOf(after.rights)];
  const old = rightsOf(first, [second]);
  const now = rightsOf(second, [first]);
  const found = findWidenings(old, now).map(({ text }) => text);
  return {
    widenings: [...together(found, " is new", isEvery(after)), ...widenings],
    narrowings: [...together(findNarrowings(old, now), " is gone", isEvery(before)), ...narrowings],
    table: rightsTable(old, now),
  };
}

function isEvery({ rights: { tools, not } }: LockEntry): boolean {
  return tools === "all" && not === undefined;
}

/** Many tools in one sentence: an agent without a list has them all. */
function together(texts: readonly string[], ending: string, isAll: boolean): readonly string[] {
  const names = texts.filter((text) => text.endsWith(ending)).map((text) => text.slice(0, -ending.length));
  const others = texts.filter((text) => !text.endsWith(ending));
  const verb = names.length === 1 ? ending : ending.replace(" is ", " are ");
  if (isAll && names.length > 0) return [`every tool of its parent${ending}`, ...others];
  return names.length === 0 ? others : [`${names.map(toolWords).join(", ")}${verb}`, ...others];
}

/** The tools that represent those without a name. */
function toolWords(name: string): string {
  if (name === "mcp__other-server__other-tool") return "tools of all MCP servers";
  return name.replace(/^mcp__(.+)__other-tool$/, "tools of the MCP server $1");
}

type RightsFields = Parameters<typeof rightsOf>[0];

/** The fields of a definition that decide what tools it has; its hooks are among the sentences. */
function fieldsOf({ tools, not, mode, mcpServers, memory }: LockedRights): RightsFields {
  return {
    ...(tools === undefined || tools === "all" ? {} : { tools }),
    disallowedTools: not,
    // A lock that says something else here names servers that are none, and gets the same error as any other lock.
    mcpServers: mcpServers as AgentDefinition["mcpServers"],
    permissionMode: (mode === "inherit" ? undefined : mode) as AgentDefinition["permissionMode"],
    memory: memory as AgentDefinition["memory"],
  };
}

function otherWidenings(before: LockedRights, after: LockedRights): readonly string[] {
  const had = new Set(before.may);
  const stillForbids = new Set(after.mayNot);
  const programs = Object.entries(after.programs ?? {}).flatMap(([file, hash]) => {
    const old = before.programs?.[file];
    if (old === hash) return [];
    return [
      old === undefined ? `it includes ${file}, which is new` : `it includes ${file}, which is different`,
    ];
  });
  const limits = Object.entries(before.limits ?? {}).flatMap(([key, amount]) => {
    const now = after.limits?.[key];
    if (now !== undefined && now <= amount) return [];
    return [
      now === undefined
        ? `the limit ${key} ${amount} is gone`
        : `the limit ${key} is ${now}, it was ${amount}`,
    ];
  });
  const guards = lostGuards(before, after);
  return [
    ...guards.map((file) => `it is guarded by ${file}, which is gone`),
    ...stoppedGuards(before, after).map((file) => `it is guarded by ${file}, which cannot be run any more`),
    ...(after.may ?? []).filter((sentence) => !had.has(sentence)).map((sentence) => `it ${sentence}`),
    ...(before.mayNot ?? [])
      .filter((sentence) => !stillForbids.has(sentence) && !isDeniedInstead(sentence, stillForbids))
      .map((sentence) => `no longer: it ${sentence}`),
    ...programs,
    ...limits,
  ];
}

function otherNarrowings(before: LockedRights, after: LockedRights): readonly string[] {
  const has = new Set(after.may);
  const had = new Set(before.mayNot);
  const limits = Object.entries(after.limits ?? {}).filter(([key, amount]) => {
    const old = before.limits?.[key];
    return old === undefined || amount < old;
  });
  return [
    ...(before.may ?? [])
      .filter((sentence) => !has.has(sentence))
      .map((sentence) => `no longer: it ${sentence}`),
    ...(after.mayNot ?? []).filter((sentence) => !had.has(sentence)).map((sentence) => `now: it ${sentence}`),
    ...Object.keys(before.programs ?? {})
      .filter((file) => after.programs?.[file] === undefined && !lostGuards(before, after).includes(file))
      .map((file) => `it no longer includes ${file}`),
    ...limits.map(([key, amount]) => `the limit ${key} is ${amount} now`),
  ];
}

/** Files of a guard whose words are the same: one that cannot run refuses nothing. */
function lostGuards(before: LockedRights, after: LockedRights): readonly string[] {
  if (!stillGuards(before, after)) return [];
  return Object.keys(before.programs ?? {}).filter((file) => after.programs?.[file] === undefined);
}

/** Those that are there, and were allowed to run before. */
function stoppedGuards(before: LockedRights, after: LockedRights): readonly string[] {
  const { programs = {}, executable } = after;
  if (executable === undefined || !stillGuards(before, after)) return [];
  return (before.executable ?? []).filter(
    (file) => Object.hasOwn(programs, file) && !executable.includes(file),
  );
}

function stillGuards(before: LockedRights, after: LockedRights): boolean {
  return (after.mayNot ?? []).some(
    (sentence) => sentence.startsWith("is guarded at ") && before.mayNot?.includes(sentence) === true,
  );
}

function withoutModes({ executable: _executable, ...rights }: LockedRights): LockedRights {
  return rights;
}

/** What was asked about and is denied now is no wider. */
function isDeniedInstead(sentence: string, forbids: ReadonlySet<string>): boolean {
  return sentence.startsWith("asks about ") && forbids.has(sentence.replace("asks about ", "denies "));
}
