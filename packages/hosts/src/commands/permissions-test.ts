import { isRecord, kindOf } from "@retinue/base/foundation/json-record.ts";
import { parsePermissionMode } from "@retinue/base/foundation/option-words.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import type { PermissionTest, TestedCall } from "@retinue/core/kernel/project/project-permissions.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse } from "../shared/misuse.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint, type Paint } from "../shared/paint.ts";
import { pad, stripControlCharacters } from "../shared/strip-control-characters.ts";

export interface TestOptions {
  readonly mode?: string;
  readonly allowedTools?: readonly string[];
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
  const { permissions, nameOf } = openProject(context);
  const mode = options.mode === undefined ? undefined : parsePermissionMode(options.mode);
  const tested = await permissions.test(call, {
    allowedTools: options.allowedTools ?? [],
    pathText: nameOf,
    optionText: (name) => `--${name}`,
    mode,
  });
  const output =
    options.json === true
      ? `${JSON.stringify(testAsJson(tested), undefined, 2)}\n`
      : describeTest(tested, {
          explains: options.explain === true,
          paint: createPaint(host.stdout.isColourAllowed),
        });
  host.stdout.write(output);
  return 0;
}

function readCall(text: string | undefined, { tool, input }: TestOptions): TestedCall {
  if (text !== undefined && (tool !== undefined || input !== undefined))
    throw misuse("Write the call either as one text or with --tool and --input.");
  if (tool !== undefined) return { tool, input: readInput(input) };
  if (text === undefined)
    throw misuse("Which call?", "For example: retinue permissions test 'Bash(git push)'");
  return text;
}

function readInput(text = "{}"): Readonly<Record<string, unknown>> {
  const document = parseJsonDocument(text);
  if (document.diagnostic !== undefined) throw misuse(`--input: ${document.diagnostic.message}`);
  if (isRecord(document.value)) return document.value;
  throw misuse(`--input must be an object, but it is ${kindOf(document.value)}.`);
}

interface TestViewOptions {
  readonly explains: boolean;
  readonly paint: Paint;
}

function describeTest(tested: PermissionTest, { explains, paint }: TestViewOptions): string {
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
    ...(explains ? ["", ...explanation(tested).map(stripControlCharacters)] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function testAsJson(tested: PermissionTest) {
  const { request, decision, reason, allowedBy, rule, from, parts, policy, modeFrom } = tested;
  return {
    version: 1,
    tool: request.tool,
    input: request.input,
    decision,
    reason,
    allowedBy,
    ...(rule === undefined ? {} : { rule, from }),
    mode: { value: policy.mode, from: modeFrom },
    paths: request.paths,
    parts,
  };
}

function partWords({ text, reason, rule, from }: PermissionTest["parts"][number]): string {
  return `${text}: ${rule === undefined ? reason : `${rule}, from ${from}`}`;
}

function explanation({ request, policy, modeFrom, decision, trust }: PermissionTest): readonly string[] {
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
    ...(decision === "ask" ? ["with -p no one can be asked, so the call is refused"] : []),
  ];
}
