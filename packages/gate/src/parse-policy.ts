// @io
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "@retinue/base/foundation/option-words.ts";
import { buildPolicy } from "./build-policy.ts";
import type { PermissionPolicy, PolicyRule } from "./permission-policy.ts";
import { type RuleList, readRule } from "./rules/parse-rule.ts";

/** Permissions as settings files write them, under `permissions`. */
export interface PermissionSettings {
  readonly allow?: readonly unknown[] | undefined;
  readonly ask?: readonly unknown[] | undefined;
  readonly deny?: readonly unknown[] | undefined;
  readonly defaultMode?: string | undefined;
  /** Further folders in which calls may read and, by rules and mode, write. */
  readonly additionalDirectories?: readonly string[] | undefined;
}

/** Where calls are made. */
export interface PolicyPlace {
  /** The folder that relative paths of rules and calls start at. */
  readonly directory: string;
  /** The home directory; absent means that of this process. */
  readonly home?: string | undefined;
  /** A person trusts the folder, so that git and other programs may obey its files without a question; absent means no. */
  readonly trusted?: boolean | undefined;
  /** The name of the settings file, for reasons. */
  readonly from?: string | undefined;
}

/** A rule or mode that was left out because it cannot be read. */
export interface PolicyProblem {
  readonly entry: string;
  readonly reason: string;
  readonly advice: string;
}

export interface ParsedPolicy {
  readonly policy: PermissionPolicy;
  /** What is not in the policy. A deny rule among them restricts nothing: do not continue without showing them. */
  readonly problems: readonly PolicyProblem[];
}

/** Makes a policy of the rules and the mode of a settings file. Does not throw. */
export function parsePolicy(settings: PermissionSettings, place: PolicyPlace): ParsedPolicy {
  const directory = realPath(resolve(place.directory));
  const problems: PolicyProblem[] = [];
  const read = (list: RuleList): readonly PolicyRule[] =>
    (settings[list] ?? []).flatMap((entry) => {
      const reading = readRule(entry, { list });
      if (reading.type === "rule")
        return [{ rule: reading.rule, anchor: directory, ...(place.from && { from: place.from }) }];
      const { reason, advice } = reading;
      problems.push({ entry: typeof entry === "string" ? entry : JSON.stringify(entry), reason, advice });
      return [];
    });
  const rules = { allow: read("allow"), ask: read("ask"), deny: read("deny") };
  const { defaultMode = "default", additionalDirectories = [] } = settings;
  const mode: PermissionMode | undefined = parsePermissionMode(defaultMode);
  if (mode === undefined)
    problems.push({
      entry: defaultMode,
      reason: `${JSON.stringify(defaultMode)} is not a mode`,
      advice: `Write one of ${permissionModes.join(", ")}.`,
    });
  const others = additionalDirectories.map((folder) => realPath(resolve(directory, folder)));
  const facts = {
    rules,
    workingDirectories: [directory, ...others],
    directory,
    home: place.home ?? homedir(),
    platform: process.platform,
    trusted: place.trusted === true,
  };
  return { policy: buildPolicy(facts, mode ?? "default"), problems };
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
