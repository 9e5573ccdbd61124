import { factsOf, type PathFact, type PermissionRequest } from "./call-facts.ts";
import { isDevice, touchedPaths } from "./criticality-of.ts";
import { isInside } from "./is-inside.ts";
import type { PermissionPolicy } from "./permission-policy.ts";
import { isInMemory } from "./refuse-by-scopes.ts";

/**
 * Why settings that confine calls to the working directories refuse this one; no rule, mode or answer lifts that. What
 * cannot be known counts as outside.
 */
export function refuseOutside(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const { confinement } = policy;
  if (confinement === undefined || isInMemory(request, policy)) return undefined;
  const facts = factsOf(request);
  const opaque = facts.shell?.analysis.opaque;
  if (opaque !== undefined)
    return `settings confine calls to the working directories, and the command is not fully understood: ${opaque}`;
  const { readsExcept, writes } = confinement;
  const { workingDirectories } = policy;
  const listed = facts.shell?.listed ?? [];
  for (const path of [...touchedPaths(facts), ...listed].filter((candidate) => !isDevice(candidate))) {
    const isRead = path.use === "read";
    if (isRead ? readsExcept === undefined : writes !== true) continue;
    const open = isRead ? [...workingDirectories, ...(readsExcept ?? [])] : workingDirectories;
    if (!isKnownInside(path, open)) return refusal(path, isRead);
  }
  return undefined;
}

function isKnownInside({ forms, unknown }: PathFact, folders: readonly string[]): boolean {
  return unknown === undefined && forms.every((form) => isInside(form, folders));
}

function refusal({ forms: [path] }: PathFact, isRead: boolean): string {
  const [verb, key] = isRead
    ? ["read", "blockReadsOutsideWorkingDirectories"]
    : ["written", "blockWritesOutsideWorkingDirectories"];
  return `${path} is not known to be inside the working directories, and nothing outside may be ${verb} (\`${key}\`)`;
}
