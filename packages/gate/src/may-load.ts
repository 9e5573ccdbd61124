import { decideCall } from "./decide-call.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import type { PermissionRule } from "./permission-rule.ts";

/** Whether rules let a file be read into a prompt, by any of its paths. */
export type MayLoad = (file: string) => Promise<boolean>;

export interface LoadPlace {
  readonly cwd: string;
  readonly home: string;
  readonly platform: string;
}

/**
 * Decides about files that are loaded without a call, such as instructions, memory and skills, as about a call of Read.
 * No question can be asked there, so what a rule wants to be asked about is not loaded. A rule without a path only takes the
 * tool away; undefined where no rule names one.
 */
export function createMayLoad(
  rules: { readonly deny: readonly PolicyRule[]; readonly ask: readonly PolicyRule[] },
  { cwd, home, platform }: LoadPlace,
): MayLoad | undefined {
  const [deny, ask] = [rules.deny.filter(namesFiles), rules.ask.filter(namesFiles)];
  if (deny.length + ask.length === 0) return undefined;
  const policy: PermissionPolicy = {
    mode: "default",
    allow: [{ rule: anyRead, anchor: cwd }],
    ask,
    deny,
    workingDirectories: [cwd],
    home,
    platform,
  };
  return async (file) => {
    const call = { tool: "Read", effect: "read", input: { file_path: file } };
    return (await decideCall(call, policy, { directory: cwd })).type === "allow";
  };
}

const anyRead: PermissionRule = { tool: "Read", canonicalTool: "Read", specifier: { type: "whole" } };

function namesFiles({ rule: { canonicalTool, specifier } }: PolicyRule): boolean {
  return canonicalTool === "Read" && specifier.type !== "whole" && specifier.type !== "toolGlob";
}
