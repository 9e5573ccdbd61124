// Finds every agent there is for a folder. The home directory named here does not exist, so no personal files count.
import { fileURLToPath } from "node:url";
import { describeAgents, discoverAgents } from "retinue/definitions";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const { registry, diagnostics } = await discoverAgents({
  cwd: here("workspace"),
  home: here("workspace/no-home"),
  pluginDirectories: [here("plugin")],
});

for (const { id, definition } of registry.list()) {
  console.log(id.padEnd(27), definition.source.scope.padEnd(8), definition.model ?? "inherit");
}

const hidden = registry.all().filter(({ deniedBy }) => deniedBy !== undefined);
console.log(hidden.map(({ id, deniedBy }) => `${id} is hidden by the deny rule ${deniedBy}`).join("\n"));

// A call may spell a name loosely; a name that is nearly right is answered with the right one.
const lookup = registry.find("Code_Reviewer");
console.log(lookup.type === "found" ? `found ${lookup.agent.id}` : lookup.type);
const miss = registry.find("code-reviwer");
console.log(miss.type === "unknown" ? `unknown; nearest: ${miss.nearest}` : miss.type);

// What a model is notified about the agents it may delegate to.
const own = registry.list().filter(({ definition }) => definition.source.scope === "plugin");
console.log(describeAgents(own.map(({ definition }) => definition)).text);
console.log(`${diagnostics.length} problems`);
