import { posix } from "node:path";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { PolicyRule } from "@retinue/gate/decide.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";

/** What sandboxed commands may touch. Paths are absolute; those that are denied may have stars. */
export interface SandboxLimits {
  readonly allowWrite: readonly string[];
  readonly denyWrite: readonly string[];
  readonly denyRead: readonly string[];
  readonly allowRead: readonly string[];
}

export interface LimitFacts {
  readonly settings: SandboxSettings;
  readonly workingDirectories: readonly string[];
  /** A folder for temporary files of the commands. */
  readonly temporaryDirectory: string;
  readonly home: string;
  /** Deny rules of the session; those about paths hold for commands too. */
  readonly deny: readonly PolicyRule[];
}

/** Files that steer agents, git and shells: writable for no command, present or not, whatever settings allow. */
export const protectedNames: readonly string[] = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/agents",
  ".claude/commands",
  ".claude/hooks",
  ".claude/skills",
  ".git/config",
  ".git/hooks",
  ".mcp.json",
];

export function sandboxLimits(facts: LimitFacts): SandboxLimits {
  const { settings, workingDirectories, home } = facts;
  const [project = "/"] = workingDirectories;
  const absolute = (paths: readonly string[]): readonly string[] =>
    paths.map((path) => absolutePath(path, { project, home }));
  const patterns = (use: "read" | "write"): readonly string[] =>
    facts.deny
      .filter(({ rule }) => toolFacts.get(rule.canonicalTool)?.restrictsUse === use)
      .flatMap((rule) => rulePattern(rule, { project, home }));
  return {
    allowWrite: [
      ...workingDirectories,
      facts.temporaryDirectory,
      ...absolute(settings.filesystem.allowWrite),
    ],
    denyWrite: [
      ...workingDirectories.flatMap((folder) => protectedNames.map((name) => posix.join(folder, name))),
      ...absolute(settings.filesystem.denyWrite),
      ...patterns("write"),
    ],
    denyRead: [...absolute(settings.filesystem.denyRead), ...patterns("read")],
    allowRead: absolute(settings.filesystem.allowRead),
  };
}

/** Whether the limits let a command write to a path; for the files that protect the system itself. */
export function mayWriteInSandbox(path: string, limits: SandboxLimits): boolean {
  const isIn = (folders: readonly string[]): boolean =>
    folders.some(
      (folder) => path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`),
    );
  return isIn(limits.allowWrite) && !isIn(limits.denyWrite) && !isIn(limits.denyRead);
}

interface Places {
  readonly project: string;
  readonly home: string;
}

function absolutePath(path: string, { project, home }: Places): string {
  if (path === "~") return home;
  if (path.startsWith("~/")) return posix.join(home, path.slice(2));
  return posix.resolve(project, path.startsWith("//") ? path.slice(1) : path);
}

function rulePattern({ rule, anchor }: PolicyRule, { project, home }: Places): readonly string[] {
  const { specifier } = rule;
  if (specifier.type !== "path") return [];
  const base = { root: "/", home, settings: anchor, cwd: project }[specifier.anchor];
  const pattern = specifier.pattern.replace(/^\.\//, "").replace(/\/+$/, "");
  const anyDepth = pattern.includes("/") ? pattern : `**/${pattern}`;
  const inFolder = anyDepth.replace(/\/\*\*$/, "");
  const direct = posix.join(base, pattern);
  return [...new Set([posix.join(base, inFolder), ...(pattern.includes("*") ? [] : [direct])])];
}
