import type { AllowedBy, PermissionRequest } from "../../../permissions/decide.ts";
import type { Paint } from "../views/colour.ts";
import { stripControlCharacters, pad } from "../views/text-width.ts";
import type { GatheredPolicy } from "./gather-policy.ts";

interface TestedPart {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  readonly allowedBy?: AllowedBy;
  readonly rule?: string;
  readonly from?: string;
}

export interface TestedCall extends TestedPart, GatheredPolicy {
  readonly request: PermissionRequest;
  /** Each command of a shell call by itself. */
  readonly parts: readonly (TestedPart & { readonly text: string })[];
}

export interface TestViewOptions {
  readonly explains: boolean;
  readonly trust: string;
  readonly paint: Paint;
}

export function describeTest(tested: TestedCall, { explains, trust, paint }: TestViewOptions): string {
  const { decision, reason, rule, from, parts } = tested;
  const styles = { allow: paint.good, ask: paint.warning, deny: paint.error };
  const lines = [
    `${styles[decision](decision)}: ${stripControlCharacters(reason)}.`,
    ...(rule === undefined ? [] : [`rule: ${stripControlCharacters(rule)}, from ${stripControlCharacters(from ?? "")}`]),
    ...(parts.length > 1 || (explains && parts.length > 0)
      ? [
          "",
          ...parts.map(
            (part) => `  ${styles[part.decision](pad(part.decision, 6))}${stripControlCharacters(partWords(part))}`,
          ),
        ]
      : []),
    ...(explains ? ["", ...explanation(tested, trust).map(stripControlCharacters)] : []),
  ];
  return `${lines.join("\n")}\n`;
}

export function testAsJson(tested: TestedCall) {
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
    ...(decision === "ask" ? ["with -p nobody can be asked, and the call is refused"] : []),
  ];
}
