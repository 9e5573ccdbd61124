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
      text: `Commands that run without asking are not isolated (\`sandbox.isolateReadOnlyCommands\` is false). ${withoutIt}`,
    };
  const start = await createWall({ platform }).start();
  if (start.type === "ready")
    return {
      isIsolated: true,
      text: `Commands that run without asking are isolated: ${howItHolds[start.kind]}.`,
    };
  const advice = start.advice === undefined ? {} : { advice: start.advice };
  return {
    isIsolated: false,
    text: `Commands that run without asking are not isolated: ${start.why}. ${withoutIt}`,
    ...advice,
  };
}

const withoutIt = "In folders that are not trusted, git and developer tools are asked about.";

const howItHolds: Readonly<Record<WallKind, string>> = {
  namespaces: "they cannot write files, reach the network or see other processes (namespaces)",
  "shared-processes":
    "they cannot write files, reach the network or reach other processes, but they see their names (namespaces, shared /proc)",
  bubblewrap: "they cannot write files, reach the network or see other processes (bubblewrap)",
  landlock:
    "they cannot write files, reach the network or reach other processes, but they see their names (Landlock)",
};
