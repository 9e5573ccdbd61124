import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import * as cluster from "@retinue/cluster/index.ts";
import * as testing from "@retinue/testing/index.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as definitions from "../src/definitions.ts";
import * as root from "../src/index.ts";
import * as mcp from "../src/mcp.ts";
import * as model from "../src/model.ts";
import * as permissions from "../src/permissions.ts";

/** Values of every kind that JavaScript may pass by mistake: a result not awaited, a wrong order, a missing variable. */
const kinds = {
  undefined: () => undefined,
  null: () => null,
  number: () => 7,
  string: () => "x",
  flag: () => true,
  list: () => [7],
  function: () => () => "x",
  object: () => ({ nonsense: 1 }),
  symbol: () => Symbol("x"),
  bigint: () => 7n,
  date: () => new Date(0),
  promise: () => Promise.resolve({}),
  map: () => new Map([["a", 1]]),
} as const;
type Kind = keyof typeof kinds;

/** Kinds that fit, or that are read as data whose flaws are findings. */
interface Place {
  readonly what: string;
  readonly takes: readonly Kind[];
  /** Must be part of the sentence, beside what was expected. */
  readonly names: string;
  call(value: unknown): unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: the types are what is broken here
type Loose = any;

const place = (
  what: string,
  names: string,
  takes: readonly Kind[],
  call: (value: Loose) => unknown,
): Place => ({
  what,
  names,
  takes,
  call,
});

/** An argument of a function, between good ones. */
function argument(
  name: string,
  run: (...values: Loose[]) => unknown,
  at: number,
  takes: readonly Kind[],
  good: readonly unknown[] = [],
): Place {
  return place(`argument ${at + 1} of ${name}()`, name, takes, (value) => {
    const values = [...good];
    values[at] = value;
    return run(...values);
  });
}

/** Options of a function, each alone. */
function optionsOf(
  name: string,
  run: (options: Loose) => unknown,
  options: Readonly<Record<string, readonly Kind[]>>,
): Place[] {
  return [
    place(`options of ${name}()`, name, ["undefined"], run),
    ...Object.entries(options).map(([key, takes]) =>
      place(`option ${key} of ${name}()`, key, ["undefined", ...takes], (value) => run({ [key]: value })),
    ),
  ];
}

const text = ["string"] as const;
const store = {
  label: "s",
  log: {},
  engine: {},
  bus: {},
  close: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};
const sessionOptions: Readonly<Record<string, readonly Kind[]>> = {
  agent: text,
  model: text,
  effort: ["number"],
  fallbackModel: text,
  permissionMode: [],
  skipPermissions: ["flag"],
  tools: [],
  allowedTools: [],
  disallowedTools: [],
  systemPrompt: text,
  appendSystemPrompt: text,
  appendSubagentSystemPrompt: text,
  maxTurns: ["number"],
  maxBudgetUsd: ["number"],
  limits: ["object"],
  resume: text,
  continue: ["flag"],
  forkSession: ["flag"],
  sessionId: text,
  takeOver: ["flag"],
  permissionPromptTool: text,
  slashCommands: ["flag"],
  mentions: ["flag"],
  output: ["function", "object"],
  cwd: text,
  env: [],
  trusted: ["flag"],
  canUseTool: ["function"],
  approver: [],
  hooks: [],
  background: [],
};

let sample: SampleRuntime;
let session: root.Session;
beforeAll(async () => {
  sample = await createSampleRuntime([]);
  session = await sample.runtime.open();
});
afterAll(() => sample[Symbol.asyncDispose]());

const runtimeOf = (): Loose => sample.runtime;
const sessionOf = (): Loose => session;
const method =
  (of: () => Loose, ...names: readonly string[]) =>
  (...values: Loose[]): unknown => {
    const last = names.at(-1) ?? "";
    return names
      .slice(0, -1)
      .reduce((found, name) => found[name], of())
      [last](...values);
  };

const agent = { name: "a", description: "Does.", prompt: "You do." };

const places: readonly Place[] = [
  ...optionsOf("createRuntime", root.createRuntime, {
    ...Object.fromEntries(
      Object.entries(sessionOptions).filter(
        ([key]) =>
          !/^(resume|continue|forkSession|sessionId|takeOver|permissionPromptTool|slashCommands|mentions|output)$/.test(
            key,
          ),
      ),
    ),
    home: text,
    platform: [],
    agents: [],
    store: [],
    wrapModel: ["function"],
    settings: ["string", "object"],
    settingSources: [],
    pluginDirectories: [],
    additionalDirectories: [],
    mcpServers: [],
    mcpConfig: [],
    strictMcpConfig: ["flag"],
    approvals: [],
    onWarning: ["function"],
    host: ["object", "list", "date", "promise", "map"],
    concurrency: ["number"],
    overflow: [],
    teams: ["flag"],
    transcripts: ["flag", "string"],
    durability: [],
    entrypoint: text,
    clock: [],
    telemetry: ["flag"],
  }),
  ...optionsOf("run", (options) => runtimeOf().run("Go.", options), { ...sessionOptions, signal: [] }),
  ...optionsOf("open", (options) => runtimeOf().open(options), sessionOptions),
  ...optionsOf("spawn", (options) => runtimeOf().spawn("Explore", "Go.", options), {
    description: text,
    resume: text,
    background: ["flag"],
    maxTurns: ["number"],
    limits: ["object"],
    name: text,
    isolation: text,
    permissionMode: [],
    output: ["function", "object"],
    signal: [],
  }),
  ...optionsOf("session.run", (options) => sessionOf().run("Go.", options), { signal: [] }),
  argument("run", method(runtimeOf, "run"), 0, ["string"]),
  argument("spawn", method(runtimeOf, "spawn"), 0, ["string"], [undefined, "Go."]),
  argument("spawn", method(runtimeOf, "spawn"), 1, ["string"], ["Explore"]),
  argument("session.run", method(sessionOf, "run"), 0, ["string"]),
  argument("session.spawn", method(sessionOf, "spawn"), 0, ["string"], [undefined, "Go."]),
  argument("session.compact", method(sessionOf, "compact"), 0, ["undefined", "string"]),
  argument("session.rename", method(sessionOf, "rename"), 0, ["string"]),
  argument("session.stream", method(sessionOf, "stream"), 1, [], ["Go."]),
  argument("session.planAgent", method(sessionOf, "planAgent"), 0, []),
  argument("session.runPlan", method(sessionOf, "runPlan"), 0, []),
  argument("session.loopTools", method(sessionOf, "loopTools"), 0, ["undefined"]),
  argument("session.toolsOf", method(sessionOf, "toolsOf"), 0, ["undefined"]),
  argument("session.partialText", method(sessionOf, "partialText"), 0, ["undefined", "string"]),
  argument("session.onTeamMail", method(sessionOf, "onTeamMail"), 0, ["function"]),
  argument(
    "session.messageTeammate",
    method(sessionOf, "messageTeammate"),
    0,
    ["string"],
    [undefined, "Hi."],
  ),
  argument("session.messageTeammate", method(sessionOf, "messageTeammate"), 1, ["string"], ["a"]),
  ...["get", "wait", "ended", "stop", "detach", "send"].map((name) =>
    argument(
      `tasks.${name}`,
      method(sessionOf, "tasks", name),
      0,
      ["string"],
      name === "send" ? [0, "Hi."] : [],
    ),
  ),
  argument("tasks.wait", method(sessionOf, "tasks", "wait"), 1, ["undefined"], ["a"]),
  argument("tasks.stop", method(sessionOf, "tasks", "stop"), 1, ["undefined"], ["a"]),
  argument("tasks.send", method(sessionOf, "tasks", "send"), 1, ["string"], ["a"]),
  argument("tasks.watch", method(sessionOf, "tasks", "watch"), 0, ["undefined"]),
  argument("tasks.onEvent", method(sessionOf, "tasks", "onEvent"), 0, ["function"]),
  argument("register", method(runtimeOf, "register"), 0, []),
  argument("unregister", method(runtimeOf, "unregister"), 0, ["string"]),
  argument("inspect", method(runtimeOf, "inspect"), 0, ["undefined", "string"]),
  argument("replay", method(runtimeOf, "replay"), 0, ["undefined", "string"]),
  argument("replay", method(runtimeOf, "replay"), 1, ["undefined"], ["a"]),
  argument("agents.get", method(runtimeOf, "agents", "get"), 0, ["string"]),
  argument("permissions.test", method(runtimeOf, "permissions", "test"), 0, ["string"]),
  argument("mcp.add", method(runtimeOf, "mcp", "add"), 0, []),
  argument("mcp.get", method(runtimeOf, "mcp", "get"), 0, ["string"]),
  argument("sessions.get", method(runtimeOf, "sessions", "get"), 0, ["string"]),
  argument("sessions.list", method(runtimeOf, "sessions", "list"), 0, ["undefined"]),
  argument("tasks.get", method(runtimeOf, "tasks", "get"), 0, ["string"]),
  argument("teams.send", method(runtimeOf, "teams", "send"), 0, ["string"], [undefined, "a", "b"]),
  place("argument 1 of defineAgent()", "agent", [], root.defineAgent),
  ...Object.entries({
    name: text,
    description: text,
    prompt: ["string", "function"],
    tools: ["undefined", "null", "string"],
    maxTurns: ["undefined", "null", "number"],
  } as const).map(([key, takes]) =>
    place(`${key} of defineAgent()`, key, takes, (value) => root.defineAgent({ ...agent, [key]: value })),
  ),
  argument("defineTool", root.defineTool, 0, []),
  ...Object.entries({
    name: text,
    description: text,
    call: ["function"],
    effect: ["undefined"],
    input: ["undefined", "object", "function"],
  } as const).map(([key, takes]) =>
    place(`${key} of defineTool()`, key, takes, (value) =>
      root.defineTool({ name: "t", description: "Does.", input: {}, call: () => "", [key]: value } as Loose),
    ),
  ),
  argument("promptFromUiMessages", root.promptFromUiMessages, 0, []),
  argument("pending", method(root.createApprovalQueue, "pending"), 0, ["undefined", "string"]),
  argument("onChange", method(root.createApprovalQueue, "onChange"), 0, ["function"]),
  argument("answer", method(root.createApprovalQueue, "answer"), 0, ["string"], [0, { type: "deny" }]),
  argument("builtinAgents", definitions.builtinAgents, 0, ["undefined", "object"]),
  argument("createRegistry", definitions.createRegistry, 0, []),
  argument("createAgentCatalog", definitions.createAgentCatalog, 0, []),
  argument("describeAgents", definitions.describeAgents, 0, []),
  argument("describeAgents", definitions.describeAgents, 1, ["undefined", "object"], [[]]),
  argument("discoverAgents", definitions.discoverAgents, 0, []),
  argument("lintDefinition", definitions.lintDefinition, 0, []),
  argument("parseAgentDefinition", definitions.parseAgentDefinition, 0, ["string"]),
  argument("parseAgentDefinition", definitions.parseAgentDefinition, 1, ["undefined", "object"], ["x"]),
  argument("rateDescription", definitions.rateDescription, 0, ["string"]),
  argument("readSessionAgents", definitions.readSessionAgents, 1, ["function"], [{}]),
  argument("createPaths", permissions.createPaths, 0, []),
  argument("createTrustStore", permissions.createTrustStore, 0, []),
  argument("formatRule", permissions.formatRule, 0, []),
  argument("grantTools", permissions.grantTools, 0, []),
  argument("loadSettings", permissions.loadSettings, 0, []),
  argument("parseRule", permissions.parseRule, 0, ["string"]),
  argument("parseRule", permissions.parseRule, 1, ["undefined", "object"], ["Bash"]),
  argument("createTextModel", model.createTextModel, 0, ["function"]),
  argument("createTextModel", model.createTextModel, 1, ["undefined"], [() => "x"]),
  argument("parseModelReference", model.parseModelReference, 0, ["string"]),
  argument("parseModelReference", model.parseModelReference, 1, ["undefined", "map"], ["sonnet"]),
  argument("toAiSdkTools", model.toAiSdkTools, 0, []),
  argument("toAnthropicTools", model.toAnthropicTools, 0, []),
  argument("readMcpServers", mcp.readMcpServers, 1, ["undefined", "list"], [{}]),
  argument("assertReplay", testing.assertReplay, 0, ["string"]),
  argument("createFakeHost", testing.createFakeHost, 0, ["undefined"]),
  argument("createFakeMcpServer", testing.createFakeMcpServer, 0, []),
  argument("createManualClock", testing.createManualClock, 0, ["undefined", "number"]),
  argument("createScriptedModel", testing.createScriptedModel, 0, []),
  argument("createScriptedModel", testing.createScriptedModel, 1, ["undefined"], [["x"]]),
  argument("describeModelContract", testing.describeModelContract, 0, ["string"], [0, () => ({})]),
  argument("describeStoreContract", testing.describeStoreContract, 1, ["function"], ["x"]),
  argument("startFakeProvider", testing.startFakeProvider, 0, []),
  argument("postgres", cluster.postgres, 0, ["undefined"]),
  argument("openStore", cluster.openStore, 0, ["string"]),
  argument("openStore", cluster.openStore, 1, ["undefined"], ["file:///nowhere/store"]),
  argument("setUpStore", cluster.setUpStore, 0, []),
  argument("describeWorkspace", cluster.describeWorkspace, 0, []),
  argument("findWorkspace", cluster.findWorkspace, 0, []),
  argument("planMain", cluster.planMain, 0, []),
  ...(
    [
      "followSession",
      "inspectAgent",
      "pruneAgents",
      "reviveAgent",
      "sendMessage",
      "serveAgents",
      "serveSessions",
      "startAgent",
      "startPlan",
      "startSession",
      "stopAgent",
      "storeApprovals",
      "waitForEnd",
      "watchAgent",
      "workersOf",
    ] as const
  ).map((name) => argument(name, cluster[name], 0, [], [0, "a", {}])),
  ...(
    [
      "followSession",
      "inspectAgent",
      "reviveAgent",
      "sendMessage",
      "stopAgent",
      "waitForEnd",
      "watchAgent",
    ] as const
  ).map((name) => argument(name, cluster[name], 1, ["string"], [store, 0, {}])),
  ...(["pruneAgents", "serveSessions", "startAgent", "startPlan", "startSession"] as const).map((name) =>
    argument(name, cluster[name], 1, [], [store]),
  ),
  argument("serveAgents", cluster.serveAgents, 1, ["function"], [store, 0, { slots: 1 }]),
  argument("serveAgents", cluster.serveAgents, 2, [], [store, async () => ({})]),
  argument("waitForEnd", cluster.waitForEnd, 2, [], [store, "a"]),
  argument("watchAgent", cluster.watchAgent, 2, ["function"], [store, "a"]),
  argument("workersOf", cluster.workersOf, 1, ["undefined"], [store]),
];

const cases = places.flatMap(({ what, names, takes, call }) =>
  (Object.keys(kinds) as Kind[])
    .filter((kind) => !takes.includes(kind))
    .map((kind) => ({ title: `${what}: ${kind}`, names, run: () => call(kinds[kind]()) })),
);

/** Whatever way a function says no: it throws, rejects, or its iterator does. */
async function refusalOf(run: () => unknown): Promise<unknown> {
  try {
    const result: Loose = await run();
    if (typeof result?.result?.then === "function") {
      const ended = await result.result;
      return `resolved with ${JSON.stringify(ended)?.slice(0, 80)}`;
    }
    if (typeof result?.next === "function") await result.next();
    return `gave ${Object.prototype.toString.call(result)}`;
  } catch (error) {
    return error;
  }
}

describe("values of a wrong kind [SDK-1]", () => {
  test("there are more than 400 cases", () => {
    expect(cases.length).toBeGreaterThan(400);
  });

  test.each(
    places.map(({ what }) => what).filter((what, index, all) => all.indexOf(what) === index),
  )("%s are refused in one sentence that names the place and what was expected", async (what) => {
    const wrong: string[] = [];
    for (const { title, names, run } of cases.filter((each) => each.title.startsWith(`${what}: `))) {
      const refusal = await refusalOf(run);
      if (
        isRetinueError(refusal) &&
        refusal.message.includes(names) &&
        /\bmust\b|is not an (option|event)|cannot be read \(|There is no `/.test(refusal.message)
      )
        continue;
      wrong.push(
        `${title} → ${refusal instanceof Error ? `${refusal.name}: ${refusal.message}` : String(refusal)}`,
      );
    }
    expect(wrong).toEqual([]);
  });
});
