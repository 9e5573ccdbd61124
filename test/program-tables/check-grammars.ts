import { relative } from "node:path";
import { loadAnalysis } from "@retinue/gate/shell/load-analysis.ts";
import { actingCalls, type GrammarRow, readingCalls } from "./grammar-calls.ts";
import { type Laboratory, type Outcome, quote } from "./laboratory.ts";

export interface GrammarVerdict {
  readonly row: GrammarRow;
  /** No call with it worked: this version of the program does not have it. */
  readonly isMissing: boolean;
  readonly diagnostics: readonly string[];
}

export interface Judged {
  readonly isFree: boolean;
  readonly text: string;
  /** Paths that it may read, as they are written. */
  readonly reads: readonly string[];
}

/** Whether the tables let a command run without a question, and in which form. */
export async function judge(command: string, { home, work }: Laboratory): Promise<Judged> {
  const { units, judged, listed, redirects } = await loadAnalysis(command, { home, directory: work });
  const isFree =
    judged !== undefined &&
    units.every(({ readOnly }) => readOnly) &&
    redirects.every(({ use, path }) => use === "read" || path === "/dev/null");
  const reads = [...units.flatMap(({ operands }) => operands), ...redirects, ...listed].map(
    ({ path }) => path,
  );
  return { isFree, text: judged ?? command, reads };
}

/** `q3` of sed ends it with 3. */
const worked = new Set([0, 3]);

export async function checkGrammars(
  rows: readonly GrammarRow[],
  laboratory: Laboratory,
): Promise<GrammarVerdict[]> {
  const calls = rows.flatMap((row) => row.calls.map((words) => ({ row, words })));
  const judged = await Promise.all(calls.map(({ words }) => judge(words.map(quote).join(" "), laboratory)));
  const outcomes = await laboratory.run(
    judged.map(({ isFree, text }) => (isFree ? `timeout -s KILL 20 ${text}` : "false")),
    { traced: true },
  );
  return rows.map((row) => {
    const own = calls.flatMap((call, at) => (call.row === row ? [at] : []));
    const diagnostics = own.flatMap((at) => {
      const { words } = calls[at] as (typeof calls)[number];
      const { isFree, reads } = judged[at] as Judged;
      const call = words.join(" ");
      if (!isFree) return [`${call}: asks`];
      return issues(outcomes[at], { laboratory, reads }).map((text) => `${call}: ${text}`);
    });
    const isMissing = own.every((at) => !worked.has(outcomes[at]?.code ?? -1));
    return { row, isMissing, diagnostics };
  });
}

function issues(
  outcome: Outcome | undefined,
  { laboratory: { work }, reads }: { readonly laboratory: Laboratory; readonly reads: readonly string[] },
): string[] {
  const { acts = [], touched = [] } = outcome ?? {};
  const other = touched
    .filter(({ path, use }) => use === "read" && path.startsWith(`${work}/`))
    .map(({ path }) => relative(work, path))
    .filter((path) => !reads.some((read) => path === read || path.startsWith(`${read}/`)));
  // The first is the program itself, behind what ends it.
  return [...acts.slice(1), ...other.map((path) => `read ${path}`)];
}

/** Calls that must ask, each of which is seen to act; what does not act or is not asked is a problem. */
export async function checkActing(laboratory: Laboratory, programs: readonly string[]): Promise<string[]> {
  const calls = [...actingCalls, ...readingCalls].filter(([program = ""]) => programs.includes(program));
  const judged = await Promise.all(calls.map((words) => judge(words.map(quote).join(" "), laboratory)));
  const outcomes = await laboratory.run(
    calls.map((words) => words.map(quote).join(" ")),
    { traced: true },
  );
  return calls.flatMap((words, at) => {
    const { acts = [], touched = [] } = outcomes[at] ?? {};
    const isSeen = actingCalls.includes(words)
      ? acts.length > 0
      : touched.some(({ path }) => /probe\.txt|d\.json|names/.test(path));
    return [
      ...(judged[at]?.isFree === true ? [`${words.join(" ")} does not ask`] : []),
      ...(isSeen || !laboratory.traces ? [] : [`${words.join(" ")} was not seen to act`]),
    ];
  });
}

const started = ["cat", "head -n 1", "grep -n a", "wc -l"].flatMap((program) => [
  { program, command: `find tree -exec ${program} {} \\;` },
  { program, command: `find tree -type d -o -exec ${program} {} +` },
]);
/** What `-exec` must not do without a question. */
const refused = [
  "find tree -exec rm {} \\;",
  "find tree -exec sh -c 'cat {}' \\;",
  "find tree -exec {} \\;",
  "find tree -exec sed {} a.txt \\;",
  "find tree -exec sort -o {} a.txt \\;",
  "find tree -exec env {} ls \\;",
  "find tree -exec uniq {} +",
  "find tree ! -exec cat {} \\;",
  "find -L tree -exec cat {} \\;",
  "find tree -execdir cat {} \\;",
  "find tree -ok cat {} \\;",
];

/**
 * Programs that only read, started by `find`: in the form that runs without a question they see no links, so that they
 * read nothing outside the folder; in the form that was written they would.
 */
export async function checkStarted(laboratory: Laboratory): Promise<string[]> {
  const judged = await Promise.all(started.map(({ command }) => judge(command, laboratory)));
  const asked = await Promise.all(refused.map((command) => judge(command, laboratory)));
  const outcomes = await laboratory.run(
    [...judged.map(({ text }) => text), ...started.map(({ command }) => command)],
    {
      traced: true,
    },
  );
  const leaves = (at: number): boolean =>
    outcomes[at]?.touched.some(({ path }) => path === `${laboratory.work}/outside.txt`) === true;
  return [
    ...started.flatMap(({ program, command }, at) => {
      const [name = ""] = program.split(" ");
      const others = (outcomes[at]?.acts ?? []).filter((act) => !act.includes(`/${name}", ["${name}"`));
      return [
        ...(judged[at]?.isFree === true ? [] : [`${command} asks`]),
        ...(leaves(at) ? [`${judged[at]?.text} reads outside.txt`] : []),
        ...(leaves(started.length + at) ? [] : [`${command} was not seen to read outside.txt`]),
        ...others.map((act) => `${command}: ${act}`),
      ];
    }),
    ...refused.filter((_, at) => asked[at]?.isFree === true).map((command) => `${command} does not ask`),
  ];
}
