import { readSandboxSettings } from "../../tools/sandbox/sandbox-settings.ts";
import { createWall, type WallKind } from "../../tools/sandbox/wall.ts";
import type { ProjectFacts } from "./project-facts.ts";

/** Whether what runs without the yes of a person or a rule is isolated by the system. */
export interface Isolation {
  readonly isIsolated: boolean;
  readonly text: string;
  /** How to get it. */
  readonly advice?: string;
}

/** Tries it: what a machine permits is not known otherwise. */
export async function findIsolation({
  platform,
  discovered,
}: Pick<ProjectFacts, "platform" | "discovered">): Promise<Isolation> {
  const { isolatesReadOnlyCommands } = readSandboxSettings(discovered.settings.settings.plain.sandbox);
  if (!isolatesReadOnlyCommands)
    return {
      isIsolated: false,
      text: `What runs without a question is not isolated (\`sandbox.isolateReadOnlyCommands\` is false). ${withoutIt}`,
    };
  const start = await createWall({ platform }).start();
  if (start.type === "ready")
    return { isIsolated: true, text: `What runs without a question is isolated: ${howItHolds[start.kind]}.` };
  const advice = start.advice === undefined ? {} : { advice: start.advice };
  return {
    isIsolated: false,
    text: `What runs without a question is not isolated: ${start.why}. ${withoutIt}`,
    ...advice,
  };
}

const withoutIt = "In folders that are not trusted, git and developer tools are asked about.";

const howItHolds: Readonly<Record<WallKind, string>> = {
  namespaces: "it can write nothing, reaches no network, and sees no other process (namespaces)",
  "shared-processes":
    "it can write nothing and reaches no network and no other process, but sees their names (namespaces, shared /proc)",
  bubblewrap: "it can write nothing, reaches no network, and sees no other process (bubblewrap)",
  landlock:
    "it can write nothing and reaches no network and no other process, but sees their names (Landlock)",
};
