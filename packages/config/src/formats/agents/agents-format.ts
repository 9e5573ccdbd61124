import { agentVocabulary } from "../../agents/agent-vocabulary.ts";
import { readFrontmatter } from "../../agents/read-frontmatter.ts";
import { ownFields, readOwnFile } from "../claude/claude-format.ts";
import { fileStem, slug } from "../common-fields.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
} from "../portable-agent.ts";
import { withOtherWords } from "../tool-words.ts";
import { writeFenced } from "../write-fenced.ts";

/** The shared folder `.agents/agents`; docs/agents-folder.md is its specification. */
export const agentsFormat: AgentFormat = {
  id: "agents",
  read: readShared,
  write: (agent, note) => writeFenced(ownFields(named(agent), "agents"), agent.prompt, note),
  fileName: (agent) => `${fileStem(named(agent))}.md`,
};

/** Under a name as the specification has it. */
function named(agent: PortableAgent): PortableAgent {
  const { id } = agent;
  return /^[a-z0-9-]+$/.test(id) ? agent : { ...agent, id: slug(id).replaceAll("_", "-") };
}

function readShared(text: string, context: ReadContext): PortableReading {
  const reading = readOwnFile(text, context, "agents");
  return {
    ...reading,
    agents: reading.agents.map(({ agent, placeOf }) => ({
      placeOf,
      agent: {
        ...agent,
        tools: agent.tools === "all" ? "all" : agent.tools.flatMap(withOtherWords),
        deny: [...agent.deny.flatMap(withOtherWords), ...policyOf(text, agent)],
      },
    })),
  };
}

/** A policy that forbids commands is another product's word, and it limits: it counts. */
function policyOf(text: string, { deny }: PortableAgent): readonly PortableTool[] {
  if (!text.includes("commandExecutionPolicy")) return [];
  const frontmatter = readFrontmatter(text, agentVocabulary);
  const policy = frontmatter.fields.get("commandExecutionPolicy")?.value;
  const isOff = policy === "off" || policy === false;
  const isDenied = deny.some((tool) => tool.class === "shell" && tool.pattern === undefined);
  return isOff && !isDenied ? [{ class: "shell", raw: "Bash" }] : [];
}
