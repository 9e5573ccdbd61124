// Makes agents in code: checked like files, above project and user files, and seen at the next look.
import { fileURLToPath } from "node:url";
import { defineAgent, isRetinueError } from "retinue";
import { createAgentCatalog } from "retinue/definitions";

const triage = defineAgent({
  name: "triage",
  description: "Sorts new issues by cause and urgency. Use when issues come in. Does not answer them.",
  prompt: ({ task, directory }) => `Sort these issues of the project in ${directory}:\n\n${task}`,
  tools: "Read, Grep, mcp__tracker__*",
  model: "haiku",
});

const catalog = createAgentCatalog({
  cwd: fileURLToPath(new URL("workspace", import.meta.url)),
  home: fileURLToPath(new URL("workspace/no-home", import.meta.url)),
  agents: [triage],
});

catalog.register(
  defineAgent({
    name: "code-reviewer",
    description: "Reviews a change against our own list. Use before a commit. Does not change files.",
    prompt: "Work through the list below, one point after the other.",
    tools: ["Read", "Grep"],
  }),
);

const { registry } = await catalog.read();
for (const { id, definition, shadowed } of registry.list()) {
  if (definition.source.scope !== "session") continue;
  const over = shadowed.map(({ source }) => source.scope).join(", ") || "no one";
  console.log(`${id}: ${definition.tools?.join(", ")}; shadows ${over}`);
}

catalog.unregister("code-reviewer");
const again = (await catalog.read()).registry.find("code-reviewer");
console.log(
  again.type === "found" ? `code-reviewer is from: ${again.agent.definition.source.scope}` : again.type,
);

// A definition that cannot be used is a mistake in the program, so it throws.
try {
  defineAgent({ name: "../escape", description: "Runs away. Use never. Not safe.", prompt: "" });
} catch (error) {
  if (!isRetinueError(error)) throw error;
  console.log(`${error.code}: ${error.message} ${error.advice}`);
}
