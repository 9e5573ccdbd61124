import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { parseModelReference } from "../models/select-subagent-model.ts";
import { managedOnly, type PlainKey, withoutEffect, wrongValue } from "./plain-settings.ts";
import { choice, flag, integer, object, text, textList } from "./read-environment.ts";

/** What one value must be. */
interface Value {
  readonly expected: string;
  readonly read: (value: unknown) => unknown;
}

/** An object with known members. */
interface Shape {
  readonly members: Readonly<Record<string, Member>>;
  /** Without one of these it is not read at all. */
  readonly needs?: readonly string[];
  /** What it may be instead. */
  readonly or?: (value: unknown) => boolean;
}

/** An object whose names people choose, such as those of models. */
interface Named {
  readonly each: Member;
}

/** A member that other products know, and why it has no effect here. */
interface WithoutEffect {
  readonly why: string;
}

/** A member that only an organisation's own file may set. */
interface ManagedOnly {
  readonly managed: Value;
}

export type Member = Value | Shape | Named | WithoutEffect | ManagedOnly;

const ownProxy = "the sandbox's own proxy decides about hosts";
/** As the sandbox and worktrees read them: a value of another kind counts as not written. */
const list: Value = {
  expected: textList.expected,
  read: (value) => (Array.isArray(value) ? textList.read(value) : undefined),
};
const plainFlag: Value = {
  expected: flag.expected,
  read: (value) => (typeof value === "boolean" ? value : undefined),
};

const dollars: Value = {
  expected: "US dollars per million tokens",
  read: (value) => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined),
};

const model: Value = {
  expected: "an alias, an id or provider/model",
  read: (value) =>
    typeof value === "string" && parseModelReference(value).type !== "unclear" ? value : undefined,
};

/**
 * What is inside the settings whose readers take any object, or any text. Those that read their own parts are not here: what is
 * unknown to them is refused as a whole.
 */
export const settingMembers = {
  enabledPlugins: {
    each: {
      expected: "true, false or a list of versions",
      read: (value: unknown) => (Array.isArray(value) || typeof value === "boolean" ? value : undefined),
    },
  },
  fallbackModel: {
    expected: `${model.expected}, or a list of them`,
    read: (value: unknown) => {
      const names = textList.read(value);
      return names?.every((name) => model.read(name) !== undefined) === true ? names : undefined;
    },
  },
  model,
  modelOverrides: {
    each: {
      members: {
        contextWindow: integer(1),
        maxOutputTokens: integer(1),
        price: {
          members: { input: dollars, output: dollars, cacheRead: dollars, cacheWrite: dollars },
          needs: ["input", "output"],
        },
      },
      // The name that the provider has for it.
      or: (value: unknown) => text.read(value) !== undefined,
    },
  },
  pluginConfigs: { each: { members: { options: object } } },
  sandbox: {
    members: {
      allowUnsandboxedCommands: flag,
      autoAllowBashIfSandboxed: plainFlag,
      enableWeakerNestedSandbox: plainFlag,
      enableWeakerNetworkIsolation: { why: "the sandbox reaches the network only through its proxy" },
      enabled: flag,
      excludedCommands: list,
      failIfUnavailable: flag,
      filesystem: {
        members: { allowRead: list, allowWrite: list, denyRead: textList, denyWrite: textList },
      },
      ignoreViolations: { why: "what the sandbox refuses stays refused" },
      isolateReadOnlyCommands: flag,
      network: {
        members: {
          allowAllUnixSockets: plainFlag,
          allowLocalBinding: plainFlag,
          allowManagedDomainsOnly: { managed: flag },
          allowUnixSockets: list,
          allowedDomains: list,
          deniedDomains: textList,
          httpProxyPort: { why: ownProxy },
          socksProxyPort: { why: ownProxy },
        },
      },
      ripgrep: { why: "the bundled one is used" },
    },
  },
  skillOverrides: { each: choice("on", "name-only", "user-invocable-only", "off") },
  worktree: {
    members: {
      baseRef: choice("current", "head", "fresh"),
      location: text,
      symlinkDirectories: list,
      sparsePaths: { why: "a worktree has all files of its commit" },
    },
  },
} as const satisfies Partial<Record<PlainKey, Member>>;

/** Reports what has no effect inside a setting that was read: an unknown name, a value of another kind, what is not supported. */
export function readMembers(
  key: keyof typeof settingMembers,
  value: unknown,
  isManaged: boolean,
): readonly Issue[] {
  return issuesOf(value, { path: [key], member: settingMembers[key], isManaged });
}

interface Place {
  readonly path: readonly string[];
  readonly member: Member;
  readonly isManaged: boolean;
}

function issuesOf(value: unknown, { path, member, isManaged }: Place): readonly Issue[] {
  if (value === null) return [];
  if ("why" in member) return [withoutEffect(path, member.why)];
  if ("managed" in member)
    return isManaged ? issuesOf(value, { path, member: member.managed, isManaged }) : [managedOnly(...path)];
  if ("read" in member)
    return member.read(value) === undefined
      ? [wrongValue(path.at(-1) ?? "", member.expected, value, path)]
      : [];
  if (!isRecord(value)) {
    if (path.length === 1 || ("members" in member && member.or?.(value) === true)) return [];
    return [wrongValue(path.at(-1) ?? "", "an object", value, path)];
  }
  const needs = ("members" in member && member.needs) || [];
  if (!needs.every((name) => Object.hasOwn(value, name)))
    return [wrongValue(path.at(-1) ?? "", `an object with ${needs.join(" and ")}`, value, path)];
  return Object.entries(value).flatMap(([name, part]) => {
    const below = [...path, name];
    if ("each" in member) return issuesOf(part, { path: below, member: member.each, isManaged });
    const { members } = member;
    const known = Object.hasOwn(members, name) ? members[name] : undefined;
    return known === undefined
      ? [unknown(below, Object.keys(members))]
      : issuesOf(part, { path: below, member: known, isManaged });
  });
}

function unknown(path: readonly string[], known: readonly string[]): Issue {
  const meant = nearestName(path.at(-1) ?? "", known);
  const issue = withoutEffect(path, `${path.slice(0, -1).join(".")} has no key ${quote(path.at(-1))}`);
  return {
    ...issue,
    advice: meant === undefined ? `Known are ${known.join(", ")}.` : `Did you mean "${meant}"?`,
  };
}
