import { readSettings, settingsScopes } from "@retinue/config/settings/settings.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { commandEnvironment } from "@retinue/gate/command-environment.ts";
import { fieldsOf, isTrusted } from "./case-settings.ts";
import { type Fields, NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

/** Denied is a variable that a command does not get, or gets with another value. */
export async function judgeExecEnvironment(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {} } = testCase;
  const given = variablesOf(context);
  if (given.length === 0) throw new NotHonoured("the case names no variable");
  const scope = settingsScopes.find((each) => each === context["scope"]);
  const facts = { trusted: await isTrusted(testCase, roots), anchor: roots.P };
  const variables = scope === undefined ? given : fromSettings(given, { scope, ...facts });
  const kept = commandEnvironment(Object.fromEntries(variables));
  return given.every(([name, value]) => Object.hasOwn(kept, name) && kept[name] === value) ? "allow" : "deny";
}

type Variables = readonly (readonly [string, string])[];

function fromSettings(
  given: Variables,
  {
    scope,
    trusted,
    anchor,
  }: { readonly scope: (typeof settingsScopes)[number]; readonly trusted: boolean; readonly anchor: string },
): Variables {
  const { settings } = readSettings({ env: Object.fromEntries(given) }, { scope });
  return [...mergeSettings([{ source: { scope, anchor }, settings }], { trusted }).env];
}

function variablesOf(context: Fields): Variables {
  const { env, name, variable = context["var"], key, value = "x" } = context;
  const all = Object.entries({ ...fieldsOf(env), ...fieldsOf(context["variables"]) }).map(
    ([each, text]) => [each, String(text)] as const,
  );
  const single = name ?? variable ?? (typeof env === "string" ? env : key);
  if (typeof single !== "string") return all;
  return [...all, [single.replace(/^env\./, ""), String(value)]];
}
