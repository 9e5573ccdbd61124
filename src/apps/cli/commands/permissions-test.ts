import { resolve } from "node:path";
import { parseJsonDocument } from "../../../foundation/json-document.ts";
import { isRecord, kindOf } from "../../../foundation/json-record.ts";
import { nearestName } from "../../../foundation/nearest-name.ts";
import { buildPolicy } from "../../../permissions/build-policy.ts";
import {
  type AllowedBy,
  type Decision,
  decide,
  describeRule,
  type PermissionPolicy,
  type PermissionRequest,
  type PolicyRule,
} from "../../../permissions/decide.ts";
import { gatherCallFacts } from "../../../permissions/gather-call-facts.ts";
import { parsePermissionMode } from "../../../permissions/permission-policy.ts";
import { readCallText } from "../../../permissions/rules/explain-decision.ts";
import { decideMode } from "../../../planning/decide-mode.ts";
import { findWorkingDirectories } from "../../../runtime/find-working-directories.ts";
import { policyFacts } from "../../../runtime/policy-facts.ts";
import { refuseBrokenRestrictions } from "../../../runtime/session-rules.ts";
import { builtinTools } from "../../../tools/grants/builtin-tools.ts";
import { type GatheredSession, gatherSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { createPaint, type Paint } from "../views/paint.ts";
import { pad, stripControlCharacters } from "../views/strip-control-characters.ts";

interface PolicyOptions {
  readonly mode?: string;
  readonly allowedTools?: readonly string[];
}

interface GatheredPolicy {
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
}

/** The policy that the main agent of a session started here would have. */
async function gatherPolicy(
  { host, session: options }: CommandContext,
  session: GatheredSession,
  { mode, allowedTools = [] }: PolicyOptions,
): Promise<GatheredPolicy> {
  const { disallowedTools = [], addDir = [] } = options;
  const { discovered, trust } = session;
  const facts = policyFacts(
    { discovered, trusted: trust.trusted, platform: host.platform },
    { allowedTools, disallowedTools },
  );
  const permissionMode = mode === undefined ? undefined : parsePermissionMode(mode);
  const decided = decideMode({
    ...facts,
    ...(permissionMode === undefined ? {} : { permissionMode }),
  });
  if (decided.type === "refused") throw misuse(decided.reason, decided.advice);
  const named = ({ from, ...rule }: PolicyRule, option: string): PolicyRule => ({
    ...rule,
    from: from === undefined ? option : session.nameOf(from),
  });
  const workingDirectories = await findWorkingDirectories({
    discovered,
    additionalDirectories: addDir.map((folder) => resolve(host.cwd, folder)),
  });
  const policy = buildPolicy({ ...facts, workingDirectories }, decided.mode.value);
  return {
    modeFrom:
      decided.mode.from === facts.settingsMode?.from ? session.nameOf(decided.mode.from) : decided.mode.from,
    policy: {
      ...policy,
      allow: policy.allow.map((rule) => named(rule, "--allowedTools")),
      ask: policy.ask.map((rule) => named(rule, "--settings")),
      deny: policy.deny.map((rule) => named(rule, "--disallowedTools")),
    },
  };
}

export interface TestOptions extends PolicyOptions {
  readonly tool?: string;
  readonly input?: string;
  readonly explain?: boolean;
  readonly json?: boolean;
}

/** `retinue permissions test`: what would happen to a call here, and which rule of which file decides it. */
export async function permissionsTest(
  context: CommandContext,
  text: string | undefined,
  options: TestOptions,
): Promise<number> {
  const { host } = context;
  const call = readCall(text, options);
  const session = await gatherSession(context);
  refuseBrokenRestrictions(session.discovered.settings);
  const gathered = await gatherPolicy(context, session, options);
  const tested = await testCall(call, gathered, session.discovered.paths.cwd);
  const output =
    options.json === true
      ? `${JSON.stringify(testAsJson(tested), undefined, 2)}\n`
      : describeTest(tested, {
          explains: options.explain === true,
          trust: session.trust.why,
          paint: createPaint(host.stdout.isColourAllowed),
        });
  host.stdout.write(output);
  return 0;
}

interface Call {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

function readCall(text: string | undefined, { tool, input }: TestOptions): Call {
  if (text !== undefined && (tool !== undefined || input !== undefined))
    throw misuse("Write the call either as one text or with --tool and --input.");
  if (tool !== undefined) return { tool, input: readInput(input) };
  if (text === undefined)
    throw misuse("Which call?", "For example: retinue permissions test 'Bash(git push)'");
  const reading = readCallText(text);
  if (reading.type === "call") return reading;
  throw misuse(`The call cannot be understood: ${reading.reason}.`, reading.advice);
}

function readInput(text = "{}"): Call["input"] {
  const document = parseJsonDocument(text);
  if (document.diagnostic !== undefined) throw misuse(`--input: ${document.diagnostic.message}`);
  if (isRecord(document.value)) return document.value;
  throw misuse(`--input must be an object, but it is ${kindOf(document.value)}.`);
}

async function testCall(call: Call, gathered: GatheredPolicy, directory: string): Promise<TestedCall> {
  const { policy } = gathered;
  const effect = effectOf(call.tool);
  const judge = async (input: Call["input"]): Promise<{ request: PermissionRequest; decision: Decision }> => {
    const request = await gatherCallFacts({ tool: call.tool, effect, input }, { policy, directory });
    return { request, decision: decide(request, policy) };
  };
  const { request, decision } = await judge(call.input);
  const units = request.facts?.shell?.analysis.units ?? [];
  const parts = units.map(async ({ written }) => ({
    text: written,
    ...decisionParts((await judge({ command: written })).decision),
  }));
  return {
    ...gathered,
    ...decisionParts(decision),
    request,
    parts: await Promise.all(parts),
  };
}

function decisionParts({ type, reason, allowedBy, rule }: Decision) {
  const found =
    rule === undefined
      ? {}
      : { rule: describeRule({ rule: rule.rule, anchor: rule.anchor }), from: rule.from ?? "the call" };
  return { decision: type, reason, ...(allowedBy === undefined ? {} : { allowedBy }), ...found };
}

function effectOf(tool: string): string {
  const known = builtinTools.find(({ name }) => name === tool);
  if (known !== undefined) return known.effect;
  if (tool.startsWith("mcp__")) return "execute";
  const nearest = nearestName(
    tool,
    builtinTools.map(({ name }) => name),
  );
  throw misuse(
    `There is no tool "${tool}".`,
    nearest === undefined
      ? "`retinue agents show general-purpose` lists the tools."
      : `Did you mean ${nearest}?`,
  );
}

interface TestedPart {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  readonly allowedBy?: AllowedBy;
  readonly rule?: string;
  readonly from?: string;
}

interface TestedCall extends TestedPart, GatheredPolicy {
  readonly request: PermissionRequest;
  /** Each command of a shell call by itself. */
  readonly parts: readonly (TestedPart & { readonly text: string })[];
}

interface TestViewOptions {
  readonly explains: boolean;
  readonly trust: string;
  readonly paint: Paint;
}

function describeTest(tested: TestedCall, { explains, trust, paint }: TestViewOptions): string {
  const { decision, reason, rule, from, parts } = tested;
  const styles = { allow: paint.good, ask: paint.warning, deny: paint.error };
  const lines = [
    `${styles[decision](decision)}: ${stripControlCharacters(reason)}.`,
    ...(rule === undefined
      ? []
      : [`rule: ${stripControlCharacters(rule)}, from ${stripControlCharacters(from ?? "")}`]),
    ...(parts.length > 1 || (explains && parts.length > 0)
      ? [
          "",
          ...parts.map(
            (part) =>
              `  ${styles[part.decision](pad(part.decision, 6))}${stripControlCharacters(partWords(part))}`,
          ),
        ]
      : []),
    ...(explains ? ["", ...explanation(tested, trust).map(stripControlCharacters)] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function testAsJson(tested: TestedCall) {
  const { request, decision, reason, allowedBy, rule, from, parts, policy, modeFrom } = tested;
  return {
    version: 1,
    tool: request.tool,
    input: request.input,
    decision,
    reason,
    ...(allowedBy === undefined ? {} : { allowedBy }),
    ...(rule === undefined ? {} : { rule, from }),
    mode: { value: policy.mode, from: modeFrom },
    paths: request.paths,
    parts,
  };
}

function partWords({ text, reason, rule, from }: TestedCall["parts"][number]): string {
  return `${text}: ${rule === undefined ? reason : `${rule}, from ${from}`}`;
}

function explanation({ request, policy, modeFrom, decision }: TestedCall, trust: string): readonly string[] {
  const { facts, host, paths } = request;
  const count = (list: readonly unknown[]): number => list.length;
  return [
    `mode: ${policy.mode}, from ${modeFrom}`,
    `rules: ${count(policy.deny)} deny, ${count(policy.ask)} ask, ${count(policy.allow)} allow`,
    `working directories: ${policy.workingDirectories.join(", ")}`,
    `trust: ${trust}`,
    ...(paths.length === 0 ? [] : [`paths compared: ${[...new Set(paths)].join(", ")}`]),
    ...(host === undefined ? [] : [`host compared: ${host}`]),
    ...(facts?.shell?.analysis.opaque === undefined
      ? []
      : [`not understood: ${facts.shell.analysis.opaque}`]),
    "order: input and granted tools, deny rules, ask rules, guards, the mode, allow rules, then asking",
    ...(decision === "ask" ? ["with -p no one can be asked, and the call is refused"] : []),
  ];
}
