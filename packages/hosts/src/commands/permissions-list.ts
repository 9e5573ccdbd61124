import { plural } from "@retinue/base/foundation/diagnostic.ts";
import type {
  BrokenRule,
  HeldBack,
  ListedRule,
  RuleOverview,
  SettingsSource,
} from "@retinue/core/kernel/project/project-permissions.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { type Column, renderTable } from "./views/render-table.ts";

/** `retinue permissions list`: every rule with its file, and what does not count and why. */
export async function permissionsList(
  context: CommandContext,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context.host;
  const { permissions, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const found = await permissions.list();
  const { rules, broken, heldBack: held, otherHeldBack, isBroken } = found;
  if (options.json === true) {
    stdout.write(`${JSON.stringify(listAsJson(found, nameOf), undefined, 2)}\n`);
    return isBroken ? 1 : 0;
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
        rules.map((rule) => [rule.list, rule.rule, placeOf(rule, nameOf)]),
      ),
    );
  if (held.length > 0) {
    stdout.write(`\n${paint.bold("Held back")}\n`);
    stdout.write(
      table(
        heldColumns,
        held.map((one) => heldRow(one, nameOf)),
      ),
    );
  }
  if (broken.length > 0) {
    stdout.write(`\n${paint.bold("Broken")}\n`);
    const rows = broken.map((rule) => [rule.list, rule.rule, placeOf(rule, nameOf), rule.reason]);
    stdout.write(table(brokenColumns, rows));
  }
  const others = otherHeldBack.length;
  const remarks = [
    `Mode: ${modeWords(found, nameOf)}.`,
    ...(others > 0 ? [`${plural(others, "more setting")} held back: \`retinue trust --show\` shows.`] : []),
    ...(isBroken
      ? ["What should be restricted cannot be read; nothing runs until it is fixed: `retinue doctor`."]
      : []),
  ];
  stderr.write(`\n${remarks.join("\n")}\n`);
  return isBroken ? 1 : 0;
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

function heldRow({ key, detail = "", reason, source }: HeldBack, nameOf: NameOf): string[] {
  return [key, detail, sourceName(source, { nameOf }), heldReasons[reason]];
}

type NameOf = (file: string) => string;

export function sourceName({ file, scope }: SettingsSource, { nameOf }: { readonly nameOf: NameOf }): string {
  if (file !== undefined) return nameOf(file);
  return scope === "flags" ? "--settings" : scope;
}

function placeOf({ source }: ListedRule | BrokenRule, nameOf: NameOf): string {
  return source === undefined ? "--disallowedTools" : sourceName(source, { nameOf });
}

function modeWords({ mode: { value, source } }: RuleOverview, nameOf: NameOf): string {
  return source === undefined ? "default" : `${value}, from ${sourceName(source, { nameOf })}`;
}

function listAsJson({ mode, trusted, rules, heldBack, broken }: RuleOverview, nameOf: NameOf) {
  return {
    version: 1,
    mode: mode.value,
    trusted,
    rules: rules.map((rule) => ({ list: rule.list, rule: rule.rule, from: placeOf(rule, nameOf) })),
    heldBack: heldBack.map(({ key, detail, reason, source }) => ({
      key,
      detail,
      reason,
      from: sourceName(source, { nameOf }),
    })),
    broken: broken.map((rule) => ({
      list: rule.list,
      rule: rule.rule,
      from: placeOf(rule, nameOf),
      reason: rule.reason,
    })),
  };
}
