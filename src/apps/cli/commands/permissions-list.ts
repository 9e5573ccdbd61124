import type { RuleList } from "../../../permissions/rules/parse-rule.ts";
import type { HeldBack, MergedSettings, SettingsSource } from "../../../settings/settings-layer.ts";
import { type GatheredSession, gatherSession } from "../gather-session.ts";
import type { CommandContext, SessionOptions } from "../session-options.ts";
import { createPaint } from "../views/paint.ts";
import { plural } from "../views/render-diagnostics.ts";
import { type Column, renderTable } from "../views/render-table.ts";
import { stripControlCharacters } from "../views/strip-control-characters.ts";

interface ListedRule {
  readonly list: RuleList;
  readonly rule: string;
  readonly from: string;
}

interface BrokenRule extends ListedRule {
  readonly reason: string;
}

/** `retinue permissions list`: every rule with its file, and what does not count and why. */
export async function permissionsList(
  context: CommandContext,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context.host;
  const session = await gatherSession(context, { toleratesBrokenFiles: true });
  const { settings, incomplete } = session.discovered.settings;
  const rules = listRules(settings, context.session, session);
  const broken = listBroken(settings, session);
  const held = settings.heldBack.filter(({ key }) => key.startsWith("permissions."));
  const restrictionsAreBroken = incomplete || settings.brokenRestrictions.length > 0;
  if (options.json === true) {
    const json = listAsJson({ session, rules, broken, held });
    stdout.write(`${JSON.stringify(json, undefined, 2)}\n`);
    return restrictionsAreBroken ? 1 : 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  const table = (columns: readonly Column[], rows: readonly (readonly string[])[]): string =>
    renderTable({
      columns,
      rows: rows.map((row) => row.map(stripControlCharacters)),
      width: stdout.columns,
      paint,
    });
  if (rules.length === 0) stdout.write("There are no rules; calls are decided by the mode alone.\n");
  else
    stdout.write(
      table(
        ruleColumns,
        rules.map(({ list, rule, from }) => [list, rule, from]),
      ),
    );
  if (held.length > 0) {
    stdout.write(`\n${paint.bold("Held back")}\n`);
    stdout.write(
      table(
        heldColumns,
        held.map((one) => heldRow(one, session)),
      ),
    );
  }
  if (broken.length > 0) {
    stdout.write(`\n${paint.bold("Broken")}\n`);
    const rows = broken.map(({ list, rule, from, reason }) => [list, rule, from, reason]);
    stdout.write(table(brokenColumns, rows));
  }
  const others = settings.heldBack.length - held.length;
  const remarks = [
    `Mode: ${modeWords(settings, session)}.`,
    ...(others > 0 ? [`${plural(others, "more setting")} held back: \`retinue trust --show\` shows.`] : []),
    ...(restrictionsAreBroken
      ? ["What should be restricted cannot be read; nothing runs until it is fixed: `retinue doctor`."]
      : []),
  ];
  stderr.write(`\n${remarks.join("\n")}\n`);
  return restrictionsAreBroken ? 1 : 0;
}

const ruleColumns: readonly Column[] = [
  { heading: "LIST", atLeast: 5, atMost: 5 },
  { heading: "RULE", atLeast: 16, style: "name" },
  { heading: "FROM", atLeast: 12, style: "dim" },
];

const heldColumns: readonly Column[] = [
  { heading: "SETTING", atLeast: 12, atMost: 34 },
  { heading: "VALUE", atLeast: 12, style: "name" },
  { heading: "FROM", atLeast: 12 },
  { heading: "WHY", atLeast: 12, elseBelow: 24, style: "dim" },
];

const brokenColumns: readonly Column[] = [
  { heading: "LIST", atLeast: 5, atMost: 5 },
  { heading: "RULE", atLeast: 12, atMost: 30, style: "name" },
  { heading: "FROM", atLeast: 12 },
  { heading: "WHY", atLeast: 12, elseBelow: 30, style: "dim" },
];

export const heldReasons: Readonly<Record<HeldBack["reason"], string>> = {
  "folder-not-trusted": "the folder is not trusted",
  "never-from-a-repository": "a repository can never say this",
  "managed-settings-forbid": "the organisation's settings forbid it",
  "others-can-write": "others can write the organisation's file",
};

function heldRow({ key, detail = "", reason, source }: HeldBack, session: GatheredSession): string[] {
  return [key, detail, sourceName(source, session), heldReasons[reason]];
}

export function sourceName({ file, scope }: SettingsSource, { nameOf }: GatheredSession): string {
  if (file !== undefined) return nameOf(file);
  return scope === "flags" ? "--settings" : scope;
}

const lists = ["deny", "ask", "allow"] as const;

function listRules(
  { permissions }: MergedSettings,
  { disallowedTools = [] }: SessionOptions,
  session: GatheredSession,
): readonly ListedRule[] {
  const flags = disallowedTools.map((rule) => ({ list: "deny" as const, rule, from: "--disallowedTools" }));
  const written = lists.flatMap((list) =>
    permissions[list].map(({ text, source }) => ({ list, rule: text, from: sourceName(source, session) })),
  );
  return [...flags, ...written];
}

function listBroken({ permissions }: MergedSettings, session: GatheredSession): readonly BrokenRule[] {
  return permissions.invalidRules.map(({ list, text, reason, source }) => ({
    list,
    rule: text,
    from: sourceName(source, session),
    reason,
  }));
}

function modeWords({ permissions, sources }: MergedSettings, session: GatheredSession): string {
  const source = sources.get("permissions.defaultMode");
  if (permissions.defaultMode === undefined || source === undefined) return "default";
  return `${permissions.defaultMode}, from ${sourceName(source, session)}`;
}

function listAsJson(found: {
  readonly session: GatheredSession;
  readonly rules: readonly ListedRule[];
  readonly broken: readonly BrokenRule[];
  readonly held: readonly HeldBack[];
}) {
  const { session, rules, broken, held } = found;
  const { settings } = session.discovered.settings;
  return {
    version: 1,
    mode: settings.permissions.defaultMode ?? "default",
    trusted: session.trust.trusted,
    rules,
    heldBack: held.map(({ key, detail, reason, source }) => ({
      key,
      ...(detail === undefined ? {} : { detail }),
      reason,
      from: sourceName(source, session),
    })),
    broken,
  };
}
