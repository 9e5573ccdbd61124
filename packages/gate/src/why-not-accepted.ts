import { posix } from "node:path";
import type { PathFact } from "./call-facts.ts";
import { isInside, type PermissionPolicy } from "./permission-policy.ts";
import { steersPrograms } from "./steers-programs.ts";

/** Why `acceptEdits` does not cover a change of a file in the working directories by what the file is. */
export function whyNotAccepted(
  { forms, use, isFolder, isProgram }: PathFact,
  { workingDirectories, acceptedFiles = [] }: Pick<PermissionPolicy, "workingDirectories" | "acceptedFiles">,
): string | undefined {
  if (forms.every((form) => acceptedFiles.includes(form))) return undefined;
  const file = { isFolder: isFolder === true, isProgram: isProgram === true, isRemoved: use === "remove" };
  for (const form of forms) {
    const roots = workingDirectories.filter((directory) => isInside(form, [directory]));
    const [root = ""] = roots.sort((a, b) => b.length - a.length);
    const why = steersPrograms(posix.relative(root, form), file);
    if (why !== undefined) return why;
  }
  return undefined;
}
