import { definitionFields } from "@retinue/config/agents/agent-definition.ts";
import { commandFlags, type Flag, programFlags, runFlags } from "@retinue/hosts/shared/flags.ts";

type Row = Pick<Flag<never>, "flags" | "description" | "docs" | "group">;

/** Writes the tables of flags into the page of the command line, between their marks. */
export function withOptionTables(page: string): string {
  const shown = Object.values<Row>(programFlags).filter(({ docs }) => docs !== undefined);
  const everywhere = "Every command:";
  const ofCommands = shown.filter(({ group }) => group === everywhere);
  const ofRuns = shown.filter(({ group }) => group !== everywhere);
  const last =
    "| `-v`, `--version`; `-h`, `--help` | alone, or `--help` after a command; `--help all` describes every option, grouped |";
  const tables = new Map([
    ["every command", [...[...Object.values<Row>(commandFlags), ...ofCommands].map(toLine), last]],
    ["a run", [...Object.values<Row>(runFlags), ...ofRuns].map(toLine)],
  ]);
  return page.replace(
    /(<!-- options: ([\w ]+) -->)[\s\S]*?(?=<!-- end -->)/g,
    (_, mark: string, name: string) =>
      [mark, "", "| option | means |", "|---|---|", ...(tables.get(name) ?? []), "", ""].join("\n"),
  );
}

/** Writes the table of the fields of a definition into their page. */
export function withFieldTable(page: string): string {
  const rows = Object.entries(definitionFields).map(
    ([key, { docs }]) => `| \`${key}\` | ${docs.join(" | ")} |`,
  );
  const lines = ["| field | value | means | default |", "|---|---|---|---|", ...rows];
  return page.replace(
    /(<!-- fields -->)[\s\S]*?(?=<!-- end -->)/,
    (_, mark: string) => `${mark}\n\n${lines.join("\n")}\n\n`,
  );
}

/** `--a, --b <json|file>` becomes `--b JSON|FILE`, and the means end in the other spelling. */
function toLine({ flags, description, docs = description }: Row): string {
  const [, names = "", value = ""] = /^([^<[]*?)( [<[].*)?$/.exec(flags) ?? [];
  const spellings = names.split(", ");
  const isAlias = spellings.length > 1 && spellings.every((name) => name.startsWith("--"));
  const main = isAlias ? spellings.slice(-1) : spellings;
  const written = value
    .replace(/<(.*)>/, "$1")
    .toUpperCase()
    .replaceAll("|", "\\|");
  const option = main.map((name, at) => `\`${name}${at === main.length - 1 ? written : ""}\``).join(", ");
  return `| ${option} | ${docs}${isAlias ? `; also \`${spellings[0]}\`` : ""} |`;
}
