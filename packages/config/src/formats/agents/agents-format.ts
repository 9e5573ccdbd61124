import { readFrontmatter } from "../../agents/read-frontmatter.ts";
import { ownFields, readOwnFile } from "../claude/claude-format.ts";
import type { AgentFormat, PortableReading, ReadContext } from "../portable-agent.ts";
import { writeFenced } from "../write-text.ts";

/** The shared folder `.agents/agents`; docs/agents-folder.md is its specification. */
export const agentsFormat: AgentFormat = {
  id: "agents",
  read: readShared,
  write: (agent, note) => writeFenced(ownFields(agent, "agents"), agent.prompt, note),
  fileName: ({ id }) => `${id}.md`,
};

/** A policy that forbids commands is another product's word, and it limits: it counts. */
function readShared(text: string, context: ReadContext): PortableReading {
  const reading = readOwnFile(text, context, "agents");
  if (!text.includes("commandExecutionPolicy")) return reading;
  const policy = readFrontmatter(text).fields.get("commandExecutionPolicy")?.value;
  const isOff = policy === "off" || policy === false;
  if (!isOff) return reading;
  return {
    ...reading,
    agents: reading.agents.map(({ agent, placeOf }) => ({
      placeOf,
      agent: { ...agent, deny: [...agent.deny, { class: "shell", raw: "Bash" }] },
    })),
  };
}
