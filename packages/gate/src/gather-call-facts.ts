import { type ToolFacts, toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { CallFacts, McpIdentity, PathFact, PathUse, PermissionRequest } from "./call-facts.ts";
import {
  findRealLocation,
  gatherPathFact,
  type PathEnvironment,
  type WrittenPath,
} from "./gather-path-facts.ts";
import { gatherShellFacts } from "./gather-shell-facts.ts";
import { readWebTarget } from "./web-target.ts";

/** A call as it came from the model or a hook. */
export interface CallToJudge {
  readonly tool: string;
  readonly effect: string;
  readonly input: unknown;
  /** Paths the tool itself says it touches, besides those in the fields of the usual tools. */
  readonly paths?: readonly string[];
  readonly mcp?: McpIdentity;
  readonly agentType?: string;
  /** The addresses that the host of a URL was resolved to. */
  readonly addresses?: readonly string[];
}

export interface GatherOptions {
  readonly policy: PathEnvironment["policy"];
  /** The folder the call starts in; absolute and real. */
  readonly directory: string;
  /** Where its commands look for programs; absent means that of this process. */
  readonly searchPath?: string | undefined;
  /** Asks git about folders, for the same policy and search path; absent means anew for each call. */
  readonly askRepository?: PathEnvironment["askRepository"];
}

/** Finds out what a call would touch; what is wrong with its input is a fact like any other. Never throws. */
export async function gatherCallFacts(call: CallToJudge, options: GatherOptions): Promise<PermissionRequest> {
  const input = isFields(call.input) ? call.input : {};
  const declared: DeclaredFacts = toolFacts.get(call.tool) ?? {};
  const invalid = isFields(call.input) ? flawOf(declared, input) : "the input is not an object";
  const request = { tool: call.tool, effect: call.effect, input };
  if (invalid !== undefined) return { ...request, paths: [], facts: { invalid, paths: [] } };
  const environment: PathEnvironment = {
    directory: options.directory,
    home: options.policy.home,
    platform: options.policy.platform ?? "linux",
    policy: options.policy,
    searchPath: options.searchPath,
    askRepository: options.askRepository,
  };
  const facts = await gather({ ...call, declared }, input, environment);
  const command = isShell(declared) ? input["command"] : undefined;
  return {
    ...request,
    paths: facts.paths.flatMap(({ forms }) => forms),
    ...(typeof command === "string" ? { command } : {}),
    ...(facts.web?.type === "web" ? { host: facts.web.host } : {}),
    facts,
  };
}

/** What the table of tools declares of a tool; nothing of one that is not in it. */
type DeclaredFacts = Partial<ToolFacts>;

interface DeclaredCall extends CallToJudge {
  readonly declared: DeclaredFacts;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Only commands of a shell whose grammar is understood; for others, rules about commands can only restrict. */
function isShell({ subject, isAbsent }: DeclaredFacts): boolean {
  return subject === "command" && isAbsent !== true;
}

async function gather(call: DeclaredCall, input: Fields, environment: PathEnvironment): Promise<CallFacts> {
  const { subject, mainField } = call.declared;
  const [paths, home, shell] = await Promise.all([
    gatherPaths(call, input, environment),
    findRealLocation(environment.home),
    isShell(call.declared) ? gatherShellFacts(String(input["command"]), environment) : undefined,
  ]);
  const common: CallFacts = {
    paths,
    otherHomes: home === undefined || home === environment.home ? [] : [home],
    agentType: call.agentType,
  };
  if (shell !== undefined) return { ...common, shell };
  if (subject === "web" && mainField !== undefined) {
    const web = readWebTarget(input[mainField], call.addresses);
    return web.type === "invalid" ? { ...common, invalid: web.reason, web } : { ...common, web };
  }
  return call.mcp === undefined ? common : { ...common, mcp: call.mcp };
}

async function gatherPaths(
  call: DeclaredCall,
  input: Fields,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const use: PathUse = call.effect === "edit" ? "write" : "read";
  const written: WrittenPath[] = (call.paths ?? []).map((path) => ({ path, use }));
  const { pathFields = [], searches } = call.declared;
  for (const field of pathFields) {
    const path = input[field];
    if (typeof path === "string") written.push({ path, use });
  }
  const facts = await Promise.all(written.map((path) => gatherPathFact(path, environment)));
  return searches === undefined
    ? facts
    : [...facts, ...(await gatherSearchRoot(searches, input, environment))];
}

/** Where a search starts: the folder that its pattern names literally; a `..` after that could lead anywhere. */
async function gatherSearchRoot(
  searches: NonNullable<ToolFacts["searches"]>,
  input: Fields,
  environment: PathEnvironment,
): Promise<readonly PathFact[]> {
  const path = typeof input["path"] === "string" ? input["path"] : ".";
  const given = searches.pattern === undefined ? undefined : input[searches.pattern];
  const pattern = typeof given === "string" ? given : "";
  const segments = pattern.split("/");
  const first = segments.findIndex((segment) => /[*?[{]/.test(segment));
  const literal = segments.slice(0, first === -1 ? segments.length : first).join("/");
  const isAnchored =
    literal.startsWith("/") || pattern.startsWith("/") || literal === "~" || literal.startsWith("~/");
  const root = isAnchored ? literal || "/" : `${path}/${literal}`;
  const fact = await gatherPathFact({ path: root, use: "read" }, environment);
  const rest = first === -1 ? "" : segments.slice(first).join("/");
  return /(?:^|[/{,])\.\.(?:[/},]|$)/.test(rest)
    ? [{ ...fact, unknown: "its pattern leads upwards" }]
    : [fact];
}

function flawOf({ requiredFields = [], pathFields = [] }: DeclaredFacts, input: Fields): string | undefined {
  const wrong = requiredFields.find((field) => typeof input[field] !== "string" || input[field] === "");
  if (wrong !== undefined) return `\`${wrong}\` must be a string`;
  const fields = [...requiredFields, ...pathFields];
  const odd = fields.find((field) => input[field] !== undefined && typeof input[field] !== "string");
  if (odd !== undefined) return `\`${odd}\` must be a string`;
  const broken = fields.find((field) => String(input[field] ?? "").includes("\0"));
  return broken === undefined ? undefined : `\`${broken}\` contains a NUL character`;
}
