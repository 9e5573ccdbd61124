import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { RegisteredAgent } from "./agent-registry.ts";

/** About 15,000 tokens: what all descriptions together may take from every turn of the parent. */
const descriptionsAtMost = 60_000;

/** What can only be seen when all definitions are looked at together. */
export function lintRegistry(agents: readonly RegisteredAgent[]): Diagnostic[] {
  return [...agents.flatMap(lintSameName), ...lintDescriptions(agents)];
}

function lintSameName({ definition: winner, shadowed }: RegisteredAgent): Diagnostic[] {
  const contenders = [winner, ...shadowed];
  return contenders.flatMap((loser, index) => {
    const stronger = contenders.slice(0, index).find((other) => isSameScope(other, loser));
    return stronger === undefined ? [] : [sameName(loser, stronger)];
  });
}

function isSameScope({ source: a }: AgentDefinition, { source: b }: AgentDefinition): boolean {
  return a.scope === b.scope && a.plugin === b.plugin && a.file !== undefined && b.file !== undefined;
}

/** In one folder it is a mistake; between nested folders the nearer one is meant to win. */
function sameName(loser: AgentDefinition, stronger: AgentDefinition): Diagnostic {
  const isOneFolder = agentsFolder(loser.source.file) === agentsFolder(stronger.source.file);
  return {
    severity: isOneFolder ? "warning" : "note",
    code: isOneFolder ? "same-name" : "shadowed-by-nearer",
    message: `The name \`${loser.name}\` is also used by ${stronger.source.file}, which wins; this file has no effect.`,
    advice: isOneFolder ? "Rename or remove one of the two." : "Nothing, if that is what you want.",
    file: loser.source.file,
    ...loser.written["name"]?.place,
  };
}

/** The folder up to the last `agents`, as sub-folders do not change who wins. */
function agentsFolder(file = ""): string {
  return /^(.*[/\\]agents)[/\\]/.exec(file)?.[1] ?? file.replace(/[^/\\]*$/, "");
}

function lintDescriptions(agents: readonly RegisteredAgent[]): Diagnostic[] {
  const seen = agents.filter(({ deniedBy }) => deniedBy === undefined);
  const total = seen.reduce((sum, { definition }) => sum + definition.description.length, 0);
  if (total <= descriptionsAtMost) return [];
  const longest = [...seen]
    .sort((a, b) => b.definition.description.length - a.definition.description.length)
    .slice(0, 3)
    .map(({ id }) => `\`${id}\``);
  const tokens = Math.round(total / 4000);
  return [
    {
      severity: "warning",
      code: "descriptions-too-long",
      message: `The descriptions of ${seen.length} agents are about ${tokens},000 tokens together; every turn carries them.`,
      advice: `Shorten the longest (${longest.join(", ")}), or hide agents with deny rules such as \`Task(name)\`.`,
    },
  ];
}
