// @io
import { existsSync } from "node:fs";
import {
  countBySeverity,
  type Diagnostic,
  describeCounts,
  hasErrors,
  placeText,
  plural,
} from "@retinue/base/foundation/diagnostic.ts";
import { agentScopes, mayWiden } from "@retinue/config/agents/agent-source.ts";
import { loadSessionInstructions } from "@retinue/config/instructions/load-session-instructions.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import { createPackageLoader } from "../../models/create-package-loader.ts";
import { findLocalServers } from "../../models/find-local-servers.ts";
import { chooseLocalModel, localPlaces } from "../../models/local-models.ts";
import { chooseAdapter } from "../../models/model-factory.ts";
import { findProvider } from "../../models/provider-entry.ts";
import { mayLoadHere } from "../session-rules.ts";
import { checkWorkflows } from "./check-everything.ts";
import { checkMachine } from "./check-machine.ts";
import { scopeWords } from "./project-agents.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { type McpOverview, projectMcp, toolCount } from "./project-mcp.ts";

/** One thing that was looked at. A note shows something that is neither good nor bad. */
export interface Checkup {
  readonly name: string;
  readonly state: "ok" | "note" | "warning" | "error";
  readonly text: string;
  readonly advice?: string;
}

export interface DoctorOptions {
  /** How a file is called in the texts; its whole path when left out. */
  readonly nameOf?: (file: string) => string;
  /** Problems of definitions that came from elsewhere than the folder's files. */
  readonly diagnostics?: readonly Diagnostic[];
  readonly signal?: AbortSignal;
}

/** Looks at everything that agents need in a folder and on this machine, and changes nothing. */
export interface ProjectDoctor {
  check(options?: DoctorOptions): Promise<readonly Checkup[]>;
}

/** What the checks read. */
export interface DoctorFacts extends ProjectFacts {
  readonly diagnostics: readonly Diagnostic[];
  nameOf(file: string): string;
}

export function projectDoctor(gather: () => Promise<ProjectFacts>): ProjectDoctor {
  return {
    async check({ nameOf = (file: string) => file, diagnostics: given = [], signal } = {}) {
      const read = await gather();
      const facts = { ...read, nameOf, diagnostics: [...given, ...read.discovered.diagnostics] };
      const servers = projectMcp(async () => read);
      const { folder, keys, variables, models, programs } = await checkMachine(facts, signal);
      return [
        folder,
        ...checkSettings(facts),
        checkTrust(facts),
        checkDefinitions(facts),
        await checkInstructions(facts),
        await checkSavedWorkflows(facts),
        ...checkPlugins(facts),
        checkMcpServers(await servers.list({ check: true, signal })),
        keys,
        ...variables,
        models,
        ...(await checkLocalModels(facts)),
        ...programs,
      ];
    },
  };
}

/** What people wrote down for agents here, and the first thing that is wrong with it. */
async function checkInstructions({
  discovered,
  nameOf,
  environment,
  platform,
}: DoctorFacts): Promise<Checkup> {
  const { files, conditional, diagnostics } = await loadSessionInstructions(discovered, {
    disabled: readEnvironment(environment).options.claudeMdDisabled === true,
    mayLoad: mayLoadHere(discovered, platform),
  });
  const count = files.length + conditional.length;
  const read = count === 0 ? "No instruction files." : `${plural(count, "instruction file")} read.`;
  return withFirstProblem({ name: "instructions", text: read }, { diagnostics, nameOf });
}

/** The scripts that are saved here; one that is broken can be called by nothing. */
async function checkSavedWorkflows(facts: DoctorFacts): Promise<Checkup> {
  const { files, diagnostics } = await checkWorkflows(facts);
  const text = files.length === 0 ? "No saved workflows." : `${plural(files.length, "saved workflow")}.`;
  return withFirstProblem({ name: "workflows", text }, { diagnostics, nameOf: facts.nameOf });
}

function withFirstProblem(
  { name, text }: Pick<Checkup, "name" | "text">,
  { diagnostics, nameOf }: { readonly diagnostics: readonly Diagnostic[] } & Pick<DoctorFacts, "nameOf">,
): Checkup {
  const counts = countBySeverity(diagnostics);
  const [first] = diagnostics.filter(({ severity }) => severity !== "note");
  if (first === undefined) return { name, state: "ok", text };
  const place = first.file === undefined ? "" : `${placeText(first, nameOf)}: `;
  const others = counts.error + counts.warning - 1;
  const more = others === 0 ? "" : ` (and ${plural(others, "more problem")})`;
  return {
    name,
    state: "warning",
    text: `${text} ${place}${first.message}${more}`,
    advice: first.advice,
  };
}

/** Which model would answer where no provider is configured; nothing is reported where one is. */
async function checkLocalModels({
  discovered,
  trust,
  environment,
}: DoctorFacts): Promise<readonly Checkup[]> {
  const { plain } = discovered.settings.settings;
  const choice = chooseAdapter({ id: "default" }, environment, plain.apiKeyHelper !== undefined);
  if (choice.adapter !== "offline") return [];
  const checkup = (state: Checkup["state"], text: string, advice?: string): readonly Checkup[] => [
    { name: "local models", state, text, advice },
  ];
  if (readEnvironment(environment).options.localModels === false)
    return checkup("note", "Not checked: RETINUE_LOCAL_MODELS is off.");
  const places = localPlaces(environment);
  const local = chooseLocalModel(await findLocalServers(places));
  if (local === undefined) {
    const looked = places.map(({ name, address }) => `${name} at ${address}`).join(" or ");
    return checkup("note", `Not running: ${looked}.`);
  }
  const { provider, id, server } = local;
  const found = `${server.name} at ${server.address}`;
  const packageName = findProvider(provider, environment)?.package ?? "";
  const load = createPackageLoader(trust.trusted ? [discovered.paths.cwd] : []);
  const isThere = await load(packageName).then(
    () => true,
    () => false,
  );
  if (isThere) return checkup("ok", `${found}: ${provider}/${id} is used when no model is named.`);
  return checkup(
    "warning",
    `${found} has ${id}, but the package ${packageName} is not installed.`,
    `Run: npm install ${packageName}`,
  );
}

const runCheck = "Run `retinue agents check` to see where each is.";

/** One line per settings file that is there, and one that says so when none is. */
function checkSettings({ discovered, nameOf }: DoctorFacts): Checkup[] {
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
      : [{ name: "managed", state: "ok" as const, text: "There are no managed settings on this machine." }]),
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
function checkTrust({ discovered, trust }: DoctorFacts): Checkup {
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
      return asks && !mayWiden(source, false) && mayWiden(source, true);
    });
  if (held.length + agents.length === 0) {
    return { name, state: "ok", text: "This folder is not trusted, and nothing in it needs trust." };
  }
  const parts = [
    ...(held.length === 0 ? [] : [plural(held.length, "setting")]),
    ...(agents.length === 0 ? [] : [plural(agents.length, "agent")]),
  ];
  return {
    name,
    state: "warning",
    text: `This folder is not trusted, so parts of ${parts.join(" and ")} are held back (hooks, servers, modes, allow rules).`,
    advice: "`retinue trust` lists them and asks; --trust trusts the folder for one run.",
  };
}

function checkDefinitions({ discovered, diagnostics }: DoctorFacts): Checkup {
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

function checkPlugins({ discovered }: DoctorFacts): Checkup[] {
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
function checkMcpServers({ servers: listed, brokenConfig, diagnostics }: McpOverview): Checkup {
  const name = "MCP servers";
  if (brokenConfig !== undefined) {
    const { message, advice } = brokenConfig;
    return { name, state: "error", text: `--mcp-config: ${message}`, ...(advice ? { advice } : {}) };
  }
  const broken = diagnostics.find(({ severity }) => severity === "error");
  if (broken !== undefined) {
    const { message, advice } = broken;
    return { name, state: "error", text: message, ...(advice ? { advice } : {}) };
  }
  const held = listed.flatMap((server) => server.held ?? []).filter(({ code }) => code !== "shadowed");
  if (listed.length === 0) return { name, state: "ok", text: "No MCP servers." };
  const tried = listed.flatMap(({ entry, status }) =>
    status === undefined ? [] : [{ server: entry.config.name, status }],
  );
  const answers = tried.flatMap(({ server, status }) =>
    status.type === "failed" ? [] : [`${server} (${toolCount(status)})`],
  );
  const failed = tried.flatMap(({ server, status }) =>
    status.type === "failed" ? [{ server, status }] : [],
  );
  const failures = failed.map(({ server, status }) =>
    status.needsAuth === true ? `${server} needs a login` : `${server} fails: ${status.reason}`,
  );
  const reported = [...(answers.length === 0 ? [] : [`connected: ${answers.join(", ")}`]), ...failures].join(
    "; ",
  );
  if (failures.length > 0) {
    const broken = failed.filter(({ status }) => status.needsAuth !== true);
    const hints = [
      ...failed.flatMap(({ status }) => (status.needsAuth === true ? (status.advice ?? []) : [])),
      ...(broken.length === 0
        ? []
        : ["`retinue mcp get NAME` shows how it is started; try that command yourself."]),
    ];
    const state = broken.length === 0 ? "warning" : "error";
    return { name, state, text: `${reported}.`, advice: [...new Set(hints)].join("\n") };
  }
  if (held.length === 0) return { name, state: "ok", text: `${reported}.` };
  const reasons = held.map(({ entry, reason }) => `${entry.config.name} (${reason})`);
  const isChosen = held.every(({ code }) => chosenCodes.has(code));
  return {
    name,
    state: isChosen ? "note" : "warning",
    text: `${reported === "" ? "none is connected" : reported}; held back: ${reasons.join(", ")}.`,
    advice: "`retinue mcp list` shows what each server needs.",
  };
}

const chosenCodes: ReadonlySet<string> = new Set(["rejected", "disabled", "denied", "left-out", "untrusted"]);
