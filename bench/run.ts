/** `npm run bench [-- NAME…]`: speed as ratios within one run. Ends with 1 when a limit is passed. */
import { benchAgentFormats } from "./agent-formats.ts";
import { benchAgentOverhead } from "./agent-overhead.ts";
import { benchColdStart } from "./cold-start.ts";
import { benchDefinitionLoading } from "./definition-loading.ts";
import { benchDurability } from "./durability.ts";
import { benchFirstRequest } from "./first-request.ts";
import { benchLongRun } from "./long-run.ts";
import { benchPermissionDecision } from "./permission-decision.ts";
import { benchPromptCache } from "./prompt-cache.ts";
import { benchStudio } from "./studio.ts";
import { benchSubagents } from "./subagents.ts";
import { benchTeamDelivery } from "./team-delivery.ts";
import { benchTelemetry } from "./telemetry.ts";
import { benchTerminal } from "./terminal.ts";
import { benchToolSearch } from "./tool-search.ts";
import { benchWorkflow } from "./workflow.ts";

const benches: ReadonlyMap<string, () => Promise<boolean>> = new Map([
  ["cold-start", benchColdStart],
  ["definition-loading", benchDefinitionLoading],
  ["agent-formats", benchAgentFormats],
  ["permission-decision", benchPermissionDecision],
  ["agent-overhead", benchAgentOverhead],
  ["durability", benchDurability],
  ["first-request", benchFirstRequest],
  ["prompt-cache", benchPromptCache],
  ["tool-search", benchToolSearch],
  ["subagents", benchSubagents],
  ["long-run", benchLongRun],
  ["team-delivery", benchTeamDelivery],
  ["telemetry", benchTelemetry],
  ["studio", benchStudio],
  ["terminal", benchTerminal],
  ["workflow", benchWorkflow],
]);

const names = process.argv.length > 2 ? process.argv.slice(2) : [...benches.keys()];
const results: boolean[] = [];
for (const name of names) {
  const bench = benches.get(name);
  if (bench === undefined)
    throw new Error(`There is no bench ${name}; there are ${[...benches.keys()].join(", ")}.`);
  results.push(await bench());
}
process.exitCode = results.every(Boolean) ? 0 : 1;
