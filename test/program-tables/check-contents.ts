import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import { gitReadingCommands } from "@retinue/gate/shell/programs/git-commands.ts";
import { type Laboratory, quote } from "./laboratory.ts";
import { rowWords, secret } from "./row-samples.ts";
import { gitTable, rowsOf, type TableRow } from "./table-rows.ts";

/** Commands of git whose options are tried; where the contents are shown by default, with an option that leaves them out. */
const forms = [
  "log",
  "whatchanged",
  "reflog",
  "show --stat",
  "show -s",
  "show --name-only",
  "diff --stat HEAD~1",
  "diff --raw HEAD~1",
  "diff-tree HEAD~1 HEAD",
  "diff-index HEAD~1",
  "diff-files",
  "stash list",
  "stash show --stat",
  "rev-list HEAD",
  "shortlog HEAD",
  "ls-files",
  "ls-tree HEAD",
];

interface Call {
  readonly text: string;
  readonly judged: string;
}

/**
 * Whether git prints contents of tracked files only where the tables allow it, since files that rules deny are left out of
 * those commands alone. A path that is named does not count: it is judged by itself.
 */
export async function checkContents(
  laboratory: Laboratory,
  choose: (rows: readonly (readonly [string, TableRow])[]) => readonly (readonly [string, TableRow])[],
): Promise<{ readonly calls: number; readonly diagnostics: readonly string[] }> {
  const rows = forms.flatMap((form) => {
    const [name = ""] = form.split(" ");
    const command = gitReadingCommands.find(([known]) => known === name)?.[1];
    const table = command === undefined ? [] : rowsOf(gitTable(name, command.options, true, false));
    return table.map((row) => [form, row] as const);
  });
  const judged = await Promise.all(choose(rows).map((pair) => silentCall(pair, laboratory)));
  const calls = judged.flat();
  const outcomes = await laboratory.run(calls.map((call) => call.judged));
  return {
    calls: calls.length,
    diagnostics: calls.flatMap(({ text }, at) =>
      outcomes[at]?.output.includes(secret) === true ? [`${text} shows contents`] : [],
    ),
  };
}

/** The call, if it needs no question and is not said to show contents. */
async function silentCall(
  [form, row]: readonly [string, TableRow],
  { home, work }: Laboratory,
): Promise<Call[]> {
  const [name = "", ...rest] = form.split(" ");
  const verbs = name === "stash" ? rest.slice(0, 1) : [];
  const option = rowWords({ ...row, table: { ...row.table, name: "git log" } }).filter(
    (word, at) => at >= row.table.command.length && word !== "a.txt",
  );
  const text = ["git", name, ...verbs, ...option, ...rest.slice(verbs.length)].map(quote).join(" ");
  const { units, judged } = await loadAnalysis(text, { home, directory: work });
  const isFree =
    judged !== undefined && units.every(({ readOnly, showsTracked }) => readOnly && showsTracked !== true);
  return isFree ? [{ text, judged }] : [];
}
