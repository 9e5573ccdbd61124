import { parseJsonDocument } from "../../../foundation/json-document.ts";
import { isRecord, kindOf } from "../../../foundation/json-value.ts";
import { nearestName } from "../../../foundation/nearest-name.ts";
import { type Decision, decide, describeRule, type PermissionRequest } from "../../../permissions/decide.ts";
import { readCallText } from "../../../permissions/explain.ts";
import { gatherCallFacts } from "../../../permissions/gather-call-facts.ts";
import { refuseBrokenRestrictions } from "../../../runtime/session-rules.ts";
import { builtinTools } from "../../../tools/builtin-tools.ts";
import { gatherSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import { type GatheredPolicy, gatherPolicy, type PolicyOptions } from "./gather-policy.ts";
import { describeTest, type TestedCall, testAsJson } from "./permissions-test-view.ts";

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
