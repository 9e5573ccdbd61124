import { existsSync } from "node:fs";
import { agentScopes } from "../../../definitions/agent-definition.ts";
import { type Diagnostic, hasErrors, placeText } from "../../../foundation/diagnostic.ts";
import type { McpServerState } from "../../../mcp/mcp-connections.ts";
import { statusWords } from "../check-mcp.ts";
import type { CliMcp } from "../gather-mcp.ts";
import type { GatheredSession } from "../gather-session.ts";
import { countBySeverity, describeCounts, plural } from "../views/render-diagnostics.ts";
import { scopeWords } from "./agents/agents-list.ts";
import type { Checkup } from "./doctor.ts";

const runCheck = "Run `retinue agents check` to see each with its place.";

/** One line per settings file that is there, and one that says so when none is. */
export function checkSettings({ discovered, nameOf }: GatheredSession): Checkup[] {
  const { settings, paths } = discovered;
  const { user, project, local, managed } = paths.settings;
  const broken = settings.diagnostics.flatMap(({ file }) => file ?? []);
  const known = [user, ...project, ...local].filter((file) => existsSync(file));
  const others = [...settings.layers.flatMap(({ source }) => source.file ?? []), ...broken];
  const files = [...new Set([...known, ...others])];
  const inline = settings.diagnostics.filter(({ file }) => file === undefined);
  const lines = files.map((file): Checkup => {
    const diagnostics = settings.diagnostics.filter((diagnostic) => diagnostic.file === file);
    return settingsLine(nameOf(file), diagnostics);
  });
  return [
    ...(lines.length === 0
      ? [{ name: "settings", state: "ok" as const, text: "No settings files." }]
      : lines),
    ...(inline.length === 0 ? [] : [settingsLine("--settings", inline)]),
    ...(files.some((file) => file === managed || file.startsWith(paths.settings.managedDropIns))
      ? []
      : [{ name: "managed", state: "ok" as const, text: "No settings of an organisation on this machine." }]),
  ];
}

function settingsLine(name: string, diagnostics: readonly Diagnostic[]): Checkup {
  const [first] = diagnostics.filter(({ severity }) => severity !== "note");
  if (first === undefined) return { name: "settings", state: "ok", text: `${name} is read.` };
  const place = placeText({ ...first, file: name });
  const more = diagnostics.length > 1 ? ` (and ${plural(diagnostics.length - 1, "more problem")})` : "";
  return {
    name: "settings",
    state: hasErrors(diagnostics) ? "error" : "warning",
    text: `${place}: ${first.message}${more}`,
    advice: first.advice ?? runCheck,
  };
}

/** Trust matters only where something waits for it. */
export function checkTrust({ discovered, trust }: GatheredSession): Checkup {
  const name = "trust";
  if (trust.trusted) return { name, state: "ok", text: `This folder is trusted: ${trust.why}.` };
  if (trust.diagnostic !== undefined) {
    const { message, advice } = trust.diagnostic;
    return { name, state: "error", text: `${trust.why}: ${message}`, ...(advice ? { advice } : {}) };
  }
  const held = discovered.settings.settings.heldBack.filter(({ reason }) => reason === "folder-not-trusted");
  const agents = discovered.registry
    .all()
    .filter(({ definition: { source, hooks, mcpServers, permissionMode } }) => {
      const asks = hooks !== undefined || mcpServers !== undefined || permissionMode === "acceptEdits";
      return source.scope === "project" && asks;
    });
  if (held.length + agents.length === 0) {
    return { name, state: "ok", text: "This folder is not trusted, and nothing in it waits for that." };
  }
  const parts = [
    ...(held.length === 0 ? [] : [plural(held.length, "setting")]),
    ...(agents.length === 0 ? [] : [plural(agents.length, "agent")]),
  ];
  return {
    name,
    state: "warning",
    text: `This folder is not trusted, so parts of ${parts.join(" and ")} are held back (hooks, servers, modes, allow rules).`,
    advice: "`retinue trust` lists them and asks; for one run add --trust.",
  };
}

export function checkDefinitions({ discovered, diagnostics }: GatheredSession): Checkup {
  const agents = discovered.registry.all();
  const counts = agentScopes
    .map(
      (scope) =>
        [scope, agents.filter(({ definition }) => definition.source.scope === scope).length] as const,
    )
    .filter(([, count]) => count > 0)
    .map(([scope, count]) => `${count} ${scopeWords[scope]}`);
  const settingsFiles = new Set(discovered.settings.diagnostics);
  const own = diagnostics.filter((diagnostic) => !settingsFiles.has(diagnostic));
  const found = countBySeverity(own);
  const text = `${plural(agents.length, "agent")}: ${counts.join(", ")}.`;
  if (found.error + found.warning === 0) return { name: "definitions", state: "ok", text };
  return {
    name: "definitions",
    state: found.error > 0 ? "error" : "warning",
    text: `${text} Their files have ${describeCounts(found)}.`,
    advice: runCheck,
  };
}

export function checkPlugins({ discovered }: GatheredSession): Checkup[] {
  const { plugins } = discovered;
  if (plugins.length === 0) return [{ name: "plugins", state: "ok", text: "No plugins." }];
  const names = (isEnabled: boolean): string =>
    plugins
      .filter(({ enabled }) => enabled === isEnabled)
      .map(({ name }) => name)
      .join(", ");
  const parts = [
    ...(names(true) === "" ? [] : [`in use: ${names(true)}`]),
    ...(names(false) === "" ? [] : [`switched off: ${names(false)}`]),
  ];
  return [
    { name: "plugins", state: "ok", text: `${plural(plugins.length, "plugin")}; ${parts.join("; ")}.` },
  ];
}

/** What is configured and not connected is reported with its reason; what a person decided is no error. */
export function checkMcpServers(
  { listed, gathered }: Omit<CliMcp, "session">,
  states: readonly McpServerState[],
): Checkup {
  const name = "MCP servers";
  if (gathered.brokenConfig !== undefined) {
    const { message, advice } = gathered.brokenConfig;
    return { name, state: "error", text: `--mcp-config: ${message}`, ...(advice ? { advice } : {}) };
  }
  const broken = gathered.diagnostics.find(({ severity }) => severity === "error");
  if (broken !== undefined) {
    const { message, advice } = broken;
    return { name, state: "error", text: message, ...(advice ? { advice } : {}) };
  }
  const held = listed.flatMap((server) => server.held ?? []).filter(({ reason }) => reason !== "shadowed");
  if (listed.length === 0) return { name, state: "ok", text: "No MCP servers." };
  const answers = states.flatMap(({ server, status }) =>
    status.type === "failed" ? [] : [`${server.name} (${statusWords(status)})`],
  );
  const failures = states.flatMap(({ server, status }) =>
    status.type === "failed" ? [`${server.name} fails: ${status.reason}`] : [],
  );
  const reported = [...(answers.length === 0 ? [] : [`connected: ${answers.join(", ")}`]), ...failures].join(
    "; ",
  );
  if (failures.length > 0) {
    const advice = "`retinue mcp get NAME` shows how it is started; try that command yourself.";
    return { name, state: "error", text: `${reported}.`, advice };
  }
  if (held.length === 0) return { name, state: "ok", text: `${reported}.` };
  const reasons = held.map(({ entry, reason }) => `${entry.config.name} (${reason})`);
  const isChosen = held.every(({ reason }) => chosenReasons.has(reason));
  return {
    name,
    state: isChosen ? "note" : "warning",
    text: `${reported === "" ? "none is connected" : reported}; held back: ${reasons.join(", ")}.`,
    advice: "`retinue mcp list` shows what each needs.",
  };
}

const chosenReasons: ReadonlySet<string> = new Set([
  "rejected",
  "disabled",
  "denied",
  "left-out",
  "untrusted",
]);
