import type { LockDifference } from "@retinue/core/kernel/project/lock/project-lock.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";

/** Everything that the reports of a lock say. */
export interface LockReport {
  /** The lock, as it is shown. */
  readonly file: string;
  readonly differences: readonly LockDifference[];
  readonly missingPlugins: readonly string[];
}

const statusWords: Readonly<Record<LockDifference["status"], string>> = {
  added: "new",
  removed: "removed",
  widened: "may do more",
  narrowed: "may do less",
  changed: "changed, with the same rights",
  moved: "moved",
  formatted: "comments or formatting",
};

/** Those that have to be accepted. */
export function openDifferences(differences: readonly LockDifference[]): readonly LockDifference[] {
  return differences.filter(({ status }) => status !== "formatted");
}

export function isWider(differences: readonly LockDifference[]): boolean {
  return differences.some(({ widenings }) => widenings.length > 0);
}

/** What became of one part, as lines: what it may do more comes first. */
export function differenceLines(difference: LockDifference): readonly string[] {
  const { kind, name, file, status, from, widenings, narrowings, changes } = difference;
  const place = from === undefined ? file : `${from} is now ${file}`;
  return [
    `${kind} ${name}: ${statusWords[status]}  (${place})`,
    ...widenings.map((text) => `  + ${text}`),
    ...narrowings.map((text) => `  - ${text}`),
    ...tableLines(difference),
    ...changes.map((text) => `    ${text}`),
  ].map(stripControlCharacters);
}

function tableLines({ table = [], status }: LockDifference): readonly string[] {
  if (status === "added" || status === "removed") return [];
  const rows = table.filter((row) => row.before !== row.after);
  return rows.map((row) => `    ${row.class.padEnd(10)} ${row.before.padEnd(9)} now ${row.after}`);
}

export function lockAsJson({ file, differences, missingPlugins }: LockReport) {
  const open = openDifferences(differences);
  return {
    version: 1,
    lock: file,
    fits: open.length === 0,
    wider: isWider(open),
    differences,
    missingPlugins,
  };
}

interface Rule {
  readonly id: string;
  readonly level: "error" | "warning" | "note";
  readonly text: string;
}

const rules: Readonly<Record<LockDifference["status"], Rule>> = {
  widened: { id: "lock-widened", level: "error", text: "A part of the configuration may do more." },
  added: { id: "lock-added", level: "error", text: "A part of the configuration is new." },
  removed: { id: "lock-removed", level: "warning", text: "A part of the configuration is gone." },
  narrowed: { id: "lock-narrowed", level: "warning", text: "A part of the configuration may do less." },
  changed: { id: "lock-changed", level: "warning", text: "A part changed and has the same rights." },
  moved: { id: "lock-moved", level: "warning", text: "A part is in another file." },
  formatted: { id: "lock-formatted", level: "note", text: "Only comments or formatting changed." },
};

/** For code scanning: SARIF 2.1.0, with one result for each difference. */
export function lockAsSarif({ file, differences }: LockReport, version: string) {
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "retinue",
            version,
            rules: Object.values(rules).map(({ id, level, text }) => ({
              id,
              shortDescription: { text },
              defaultConfiguration: { level },
            })),
          },
        },
        results: openDifferences(differences).map((difference) => {
          const { status, kind, name, widenings } = difference;
          const { level } = rules[status];
          const harmless = level === "error" ? "warning" : level;
          return {
            ruleId: rules[status].id,
            level: widenings.length > 0 ? "error" : harmless,
            message: { text: differenceLines(difference).join("\n") },
            locations: [
              {
                physicalLocation: {
                  artifactLocation: { uri: uriOf(difference, file) },
                  region: { startLine: 1 },
                },
              },
            ],
            partialFingerprints: { retinuePart: `${kind}/${difference.file}/${name}/${status}` },
          };
        }),
      },
    ],
  };
}

/** Files of plugins and those that are gone are not in the repository: there the lock is shown. */
function uriOf({ file, status }: LockDifference, lock: string): string {
  const path = file.startsWith("plugin:") || status === "removed" ? lock : file;
  return path.split("/").map(encodeURIComponent).join("/");
}

/** A body for a comment on a pull request. Nothing of the files can become a link, a mention or markup in it. */
export function lockAsComment({ file, differences, missingPlugins }: LockReport): string {
  const open = openDifferences(differences);
  const wider = open.filter(({ widenings }) => widenings.length > 0);
  const heading = headingOf({ open: open.length, wider: wider.length }, file);
  const rows = open.map((difference) => {
    const { kind, name, file: path, status, widenings, narrowings, changes } = difference;
    const texts = [
      ...widenings.map((text) => `➕ ${code(text)}`),
      ...narrowings.map((text) => `➖ ${code(text)}`),
      ...changes.map(escapeText),
    ];
    const shown =
      texts.length > maxTexts ? [...texts.slice(0, maxTexts), `… ${texts.length - maxTexts} more`] : texts;
    return `| ${kind} ${code(name)} | ${statusWords[status]} | ${shown.join("<br>")} | ${code(path)} |`;
  });
  const table = open.length === 0 ? [] : ["", "| part | | difference | file |", "|---|---|---|---|", ...rows];
  const advice =
    open.length === 0 ? [] : ["", "To accept this, run `retinue agents lock` and commit the file."];
  const missing = missingPlugins.map(
    (name) => `Not compared, because it is not installed here: ${code(name)}.`,
  );
  return `${["<!-- retinue.lock -->", "### Rights of agents", "", heading, ...table, ...advice, ...(missing.length === 0 ? [] : ["", ...missing])].join("\n")}\n`;
}

function headingOf({ open, wider }: { readonly open: number; readonly wider: number }, file: string): string {
  if (open === 0) return `The configuration of agents fits ${code(file)}.`;
  if (wider === 0) return `${plural(open, "part")} of the configuration of agents changed; none may do more.`;
  return `**${plural(wider, "part")} of the configuration of agents may do more than ${code(file)} accepts.**`;
}

const maxTexts = 20;
const maxTextLength = 300;

/** A span of code on one line of a table. */
function code(text: string): string {
  const line = stripControlCharacters(text).replace(/\s+/g, " ").replaceAll("|", "\\|");
  const short = line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
  const longest = Math.max(0, ...[...short.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `\`${short}\`` : `${fence} ${short} ${fence}`;
}

function escapeText(text: string): string {
  return stripControlCharacters(text).replace(/[\\`*_{}[\]<>()#+!|@~]/g, "\\$&");
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
