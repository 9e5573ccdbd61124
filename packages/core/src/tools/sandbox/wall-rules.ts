import { posix } from "node:path";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { PermissionPolicy, PolicyRule } from "@retinue/gate/permission-policy.ts";

/** What is found below a folder by names with `*`, `?`, `[a-z]` and `**`; without names it is the folder or file itself. */
export interface HiddenPattern {
  readonly base: string;
  readonly names: readonly string[];
}

/** What rules allow to read, for processes that were not approved. */
export interface WallRules {
  /** Files and folders outside the work that a rule lets be read. */
  readonly show: readonly string[];
  /** What a rule denies, or wants to be asked about. */
  readonly hide: readonly HiddenPattern[];
}

type RulesOfPolicy = Pick<PermissionPolicy, "allow" | "ask" | "deny" | "workingDirectories" | "home">;

/** Pure; `scoped` are denials of the agent's own definition and of those above it. */
export function wallRules(policy: RulesOfPolicy, scoped: readonly PolicyRule[] = []): WallRules {
  const closing = [...policy.deny, ...policy.ask, ...scoped].filter(
    ({ rule }) => toolFacts.get(rule.canonicalTool)?.restrictsUse === "read",
  );
  const opening = policy.allow.filter(({ rule }) => toolFacts.get(rule.canonicalTool)?.grantsUse === "read");
  return {
    show: [
      ...new Set(
        opening.flatMap((rule) => {
          // The folder that everything a rule opens lies in.
          const { specifier } = rule.rule;
          if (specifier.type !== "path") return [];
          return basesOf(rule, policy).map((base) => {
            const { base: fixed } = splitPattern(base, namesOf(specifier.pattern));
            return fixed;
          });
        }),
      ),
    ],
    hide: closing.flatMap((rule) => {
      const { specifier } = rule.rule;
      if (specifier.type !== "path") return [];
      // What a rule of a project says counts in the working trees that agents get inside it.
      const trees = posix.join(rule.anchor, ".claude", "worktrees");
      const bases = [
        ...basesOf(rule, policy),
        ...policy.workingDirectories.filter((folder) => folder.startsWith(`${trees}/`)),
      ];
      return [...new Set(bases)].map((base) => {
        const names = namesOf(specifier.pattern);
        while (names.at(-1) === "**") names.pop();
        // One name alone means it at any depth; see `coversPath`.
        const floats = names.length === 1 && names[0] !== "..";
        return splitPattern(base, floats ? ["**", ...names] : names);
      });
    }),
  };
}

function namesOf(pattern: string): string[] {
  return pattern.split("/").filter((name) => name !== "" && name !== ".");
}

/** The plain names at the beginning belong to the folder. */
function splitPattern(base: string, names: readonly string[]): HiddenPattern {
  const first = names.findIndex((name) => /[*?[\\]/.test(name));
  const fixed = first === -1 ? names : names.slice(0, first);
  return { base: posix.join(base, ...fixed), names: first === -1 ? [] : names.slice(first) };
}

function basesOf(
  { rule: { specifier }, anchor, otherAnchors = [] }: PolicyRule,
  { home, workingDirectories }: RulesOfPolicy,
): readonly string[] {
  if (specifier.type !== "path") return [];
  return {
    root: ["/"],
    home: [home],
    settings: [anchor, ...otherAnchors],
    cwd: workingDirectories,
  }[specifier.anchor];
}

/** A path as a pattern that means only itself. */
export function escapeName(path: string): string {
  return path.replace(/[*?[\\]/g, "\\$&");
}
