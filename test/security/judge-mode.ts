import { readSettings } from "@retinue/config/settings/settings.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { decideMode } from "@retinue/core/planning/decide-mode.ts";
import { childMode } from "@retinue/gate/build-policy.ts";
import { type PermissionMode, parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import { caseAgent } from "./case-agent.ts";
import { caseFiles, isTrusted, layerOf, mergeCaseSettings } from "./case-settings.ts";
import type { Answer, Roots, ScopeRules, SecurityCase } from "./security-case.ts";

/** Who asks for a mode, in the words of cases. */
export const modeAskers: ReadonlyMap<string, "caller" | "model" | "hook" | "definition" | "settings"> =
  new Map([
    ["user", "caller"],
    ["person", "caller"],
    ["host", "caller"],
    ["cli", "caller"],
    ["flag", "caller"],
    ["program", "caller"],
    ["sdk", "caller"],
    ["model", "model"],
    ["hook", "hook"],
    ["agent", "definition"],
    ["frontmatter", "definition"],
    ["agent frontmatter", "definition"],
    ["settings", "settings"],
    ["user settings", "settings"],
    ["project settings", "settings"],
    ["local settings", "settings"],
    ["managed settings", "settings"],
  ]);

/** Nothing but the person's own word for it, where the organisation permits it, leads to `bypassPermissions`. */
export async function judgeMode(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {} } = testCase;
  const mode = parsePermissionMode(String(context["requested"]));
  if (mode === undefined) return "deny";
  const entered = await modeAfter(mode, testCase, roots);
  return entered === mode ? "allow" : "deny";
}

/** The mode that counts after one was requested. */
async function modeAfter(
  mode: PermissionMode,
  testCase: SecurityCase,
  roots: Roots,
): Promise<PermissionMode | undefined> {
  const { context = {} } = testCase;
  const current = parsePermissionMode(testCase.mode) ?? "default";
  const trusted = await isTrusted(testCase, roots);
  const { permissions } = await mergeCaseSettings(testCase, roots);
  const bypassForbidden = permissions.switches.disableBypassPermissionsMode === "disable";
  const isBypass = mode === "bypassPermissions";
  switch (modeAskers.get(askerOf(testCase))) {
    case "hook":
      // No word of a hook changes the mode; the calls it answers are judged by the mode there is.
      return current;
    case "model":
      if (isBypass && (bypassForbidden || context["hostAllowsBypass"] !== true)) return current;
      return childMode(current, { call: { mode, by: "model" } });
    case "definition": {
      const scope = context["scope"] ?? "project";
      const definition = caseAgent({ permissionMode: mode, scope }, { name: "worker", scope: "project" });
      const wished = { mode: definition?.permissionMode, scope: definition?.source.scope ?? "project" };
      return childMode(current, { definition: wished, projectMayWiden: trusted });
    }
    case "settings":
      return modeOfSettings(mode, { testCase, roots, trusted, bypassForbidden });
    default: {
      if (isBypass && context["hostAllowsBypass"] !== true) return current;
      const decided = decideMode({ permissionMode: mode, bypassForbidden, trusted });
      return decided.type === "decided" ? decided.mode.value : current;
    }
  }
}

function askerOf({ context = {} }: SecurityCase): string {
  return String(context["by"] ?? context["from"] ?? context["source"] ?? "user");
}

function modeOfSettings(
  mode: PermissionMode,
  {
    testCase,
    roots,
    trusted,
    bypassForbidden,
  }: {
    readonly testCase: SecurityCase;
    readonly roots: Roots;
    readonly trusted: boolean;
    readonly bypassForbidden: boolean;
  },
): PermissionMode | undefined {
  // The schema of cases says that it is one of these.
  const [named] = askerOf(testCase).split(" settings");
  const scope = (testCase.context?.["scope"] ??
    (named === "settings" ? "project" : named)) as ScopeRules["scope"];
  const { settings } = readSettings({ permissions: { defaultMode: mode } }, { scope });
  const others = caseFiles(testCase).map((file) => layerOf(file, roots));
  const { permissions } = mergeSettings([...others, { source: { scope, anchor: roots.P }, settings }], {
    trusted,
  });
  const wished = permissions.defaultMode;
  const decided = decideMode({
    trusted,
    bypassForbidden,
    settingsMode: wished === undefined ? undefined : { mode: wished, from: scope },
  });
  return decided.type === "decided" ? decided.mode.value : undefined;
}
