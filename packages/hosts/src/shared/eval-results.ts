import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";

export interface EvalResult {
  readonly key: string;
  readonly task: string;
  readonly definition: string;
  readonly model: string;
  readonly repetition: number;
  readonly passed: boolean;
  /** From 0 to 1. */
  readonly score: number;
  /** Why it did not pass, as one sentence. */
  readonly reason?: string;
  readonly status: string;
  /** The exact reason of the end: a stop reason of the model, a limit, an error code. */
  readonly endedBy: string;
  /** US dollars, the judge included; absent where the price is not known. */
  readonly costUsd?: number;
  readonly turns: number;
  readonly durationMs: number;
  readonly sessionId?: string;
}

/** A line of the file of results; undefined where it is none. */
export function readResult(line: JsonRecord): EvalResult | undefined {
  const { key, task, definition, model, passed, score } = line;
  const isResult =
    [key, task, definition, model].every((value) => typeof value === "string") &&
    typeof passed === "boolean" &&
    typeof score === "number";
  if (!isResult) return undefined;
  // Written by us; what is shown of the other fields is shown as text.
  const result = line as unknown as EvalResult;
  return failedBeforeAnswer(result) ? undefined : result;
}

/** Failures that say something about the agent or model; others, such as a wrong key, say something about the set-up. */
const ownFailures: ReadonlySet<string> = new Set([
  "refusal",
  "max_structured_output_retries",
  "context_full",
  "context-too-long",
]);

/** Whether a run ended without anything that could be scored, so that it has no result and is run again. */
export function failedBeforeAnswer({
  status,
  endedBy,
  turns,
}: Pick<EvalResult, "status" | "endedBy" | "turns">): boolean {
  if (status === "completed") return false;
  return turns === 0 || (status === "failed" && !ownFailures.has(endedBy));
}

/** What one definition and model made of the tasks. */
export interface EvalSummary {
  readonly definition: string;
  readonly model: string;
  readonly runs: number;
  readonly passed: number;
  readonly score: number;
  readonly costUsd: number;
  readonly meanMs: number;
  readonly byTask: readonly { readonly task: string; readonly runs: number; readonly passed: number }[];
}

export function summarize(results: readonly EvalResult[]): readonly EvalSummary[] {
  const groups = Map.groupBy(results, ({ definition, model }) => JSON.stringify([definition, model]));
  return [...groups.values()].map((group) => {
    const tasks = Map.groupBy(group, ({ task }) => task);
    const sum = (pick: (result: EvalResult) => number): number =>
      group.reduce((total, result) => total + pick(result), 0);
    return {
      definition: group[0]?.definition ?? "",
      model: group[0]?.model ?? "",
      runs: group.length,
      passed: group.filter(({ passed }) => passed).length,
      score: sum(({ score }) => score) / group.length,
      costUsd: sum(({ costUsd = 0 }) => costUsd),
      meanMs: sum(({ durationMs }) => durationMs) / group.length,
      byTask: [...tasks].map(([task, own]) => ({
        task,
        runs: own.length,
        passed: own.filter(({ passed }) => passed).length,
      })),
    };
  });
}

export interface EvalReport {
  readonly version: 1;
  readonly file: string;
  readonly planned: number;
  readonly done: number;
  readonly costUsd: number;
  readonly budgetUsd?: number;
  /** Why not everything was run. */
  readonly stopped?: string;
  readonly summaries: readonly EvalSummary[];
  readonly results: readonly EvalResult[];
}

/** One page that needs nothing else. */
export function renderEvalPage(report: EvalReport): string {
  const tasks = [...new Set(report.results.map(({ task }) => task))];
  const rows = report.summaries.map(
    (
      row,
    ) => html`<tr><th scope="row">${row.definition}</th><td>${row.model}</td><td>${row.passed} of ${row.runs}</td>
<td>${row.score.toFixed(2)}</td><td>$${row.costUsd.toFixed(4)}</td><td>${(row.meanMs / 1000).toFixed(1)} s</td>${tasks.map((task) => cellOf(row, task))}</tr>
`,
  );
  const failures = report.results
    .filter(({ passed }) => !passed)
    .map(
      ({ task, definition, model, repetition, reason = "" }) =>
        html`<li><b>${task}</b>, ${definition}, ${model}, run ${repetition}: ${reason}</li>
`,
    );
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Evaluation of ${report.file}</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui;margin:2rem auto;max-width:72rem;padding:0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse}th,td{padding:.3rem .8rem;text-align:left;border-bottom:1px solid #8886}</style></head>
<body><main><h1>${report.file}</h1>
<p>${report.done} of ${report.planned} runs, $${report.costUsd.toFixed(4)}. ${report.stopped ?? ""}</p>
<div class="wide" tabindex="0" role="region" aria-label="Results"><table><thead><tr><th scope="col">Agent</th><th scope="col">Model</th><th scope="col">Passed</th><th scope="col">Score</th>
<th scope="col">Cost</th><th scope="col">Time</th>${tasks.map((task) => html`<th scope="col">${task}</th>`)}</tr></thead><tbody>
${rows}</tbody></table></div>
<h2>Not passed</h2><ul>
${failures}</ul></main></body></html>
`.html;
}

function cellOf({ byTask }: EvalSummary, task: string) {
  const own = byTask.find((candidate) => candidate.task === task);
  return own === undefined ? html`<td>–</td>` : html`<td>${own.passed} of ${own.runs}</td>`;
}

/** Text as text, in an element or a quoted attribute; what would hide or reorder it is replaced. */
function escapeHtml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\ufffd")
    .replace(/[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu, "\ufffd")
    .replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** HTML that was made here; a template may put it in as it is. */
interface Html {
  readonly html: string;
}

type Part = string | number | Html | readonly Html[];

/** A template in which everything but HTML made by this function is escaped. */
function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const out = texts.map((text, index) => text + (index < parts.length ? render(parts[index] ?? "") : ""));
  return { html: out.join("") };
}

function render(part: Part): string {
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "html" in part ? part.html : part.map((one) => one.html).join("");
}
