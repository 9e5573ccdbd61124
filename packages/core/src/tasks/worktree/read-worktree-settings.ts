import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { WorktreeSettings } from "./worktree-plan.ts";

export type WorktreeSettingsReading =
  | { readonly type: "read"; readonly settings: WorktreeSettings }
  | { readonly type: "refused"; readonly reason: string };

/** Reads the `worktree` key of the settings. A wrong value is refused, since isolating otherwise than asked misleads. */
export function readWorktreeSettings(value: unknown): WorktreeSettingsReading {
  if (value === undefined) return { type: "read", settings: {} };
  if (!isRecord(value)) return refused("worktree", "an object", value);
  const get = (key: string) => (Object.hasOwn(value, key) ? value[key] : undefined);
  const [baseRef, location, links] = [get("baseRef"), get("location"), get("symlinkDirectories")];
  if (baseRef !== undefined && !isBase(baseRef)) {
    return refused("worktree.baseRef", "current, head or fresh", baseRef);
  }
  if (location !== undefined && (typeof location !== "string" || location === "")) {
    return refused("worktree.location", "a folder", location);
  }
  if (links !== undefined && !isTexts(links)) {
    return refused("worktree.symlinkDirectories", "a list of folders", links);
  }
  return {
    type: "read",
    settings: {
      baseRef,
      location,
      symlinkDirectories: links,
    },
  };
}

function isBase(value: unknown): value is "current" | "head" | "fresh" {
  return value === "current" || value === "head" || value === "fresh";
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

function refused(key: string, expected: string, value: unknown): WorktreeSettingsReading {
  return { type: "refused", reason: `The setting ${key} is ${quote(value)}; write ${expected}.` };
}
