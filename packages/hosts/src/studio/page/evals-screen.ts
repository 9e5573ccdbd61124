import { type ComponentChild, h } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { EvalRow } from "../find-evals.ts";
import { counted, duration, money, startOf } from "./format.ts";
import { Table } from "./parts.ts";
import { sessionLink } from "./route.ts";
import { Search, Shell } from "./shell.ts";
import { useList } from "./use-events.ts";

interface Loaded {
  readonly evals?: readonly EvalRow[];
  readonly problem?: string;
}

/** The evaluations of the folder, the newest first: what each agent and model made of the tasks, and what did not pass. */
export function EvalsScreen(): ComponentChild {
  const { state, problem } = useList();
  const { text } = useContext(Search);
  const [loaded, setLoaded] = useState<Loaded>({});
  useEffect(() => {
    const leaving = new AbortController();
    loadEvals(leaving.signal).then(setLoaded, (error: unknown) => {
      if (!leaving.signal.aborted)
        setLoaded({ problem: error instanceof Error ? error.message : String(error) });
    });
    return () => leaving.abort();
  }, []);
  const { evals } = loaded;
  const found = (evals ?? []).filter(({ file }) => file.toLowerCase().includes(text.toLowerCase()));
  const projects = new Map((state?.list?.sessions ?? []).map(({ id, project }) => [id, project]));
  return h(
    Shell,
    { active: "evals", inbox: state?.inbox, problem: problem ?? loaded.problem },
    h(
      "div",
      { class: "wrap" },
      h(
        "div",
        { class: "sh" },
        h("h1", {}, "Evals"),
        h("span", { class: "dim" }, counted(found.length, "file")),
      ),
      evals === undefined && loaded.problem === undefined
        ? h("p", { role: "status", class: "dim" }, "Reading evaluations…")
        : null,
      evals !== undefined && found.length === 0 ? h(NoEval, { isEmpty: evals.length === 0 }) : null,
      found.map((row) => h(Evaluation, { key: row.file, row, projects })),
    ),
  );
}

async function loadEvals(signal: AbortSignal): Promise<Loaded> {
  const response = await fetch("api/evals", { signal });
  if (!response.ok) throw new Error(`The studio answered ${response.status}.`);
  return (await response.json()) as Loaded; // The server's own form.
}

function Evaluation({
  row,
  projects,
}: {
  row: EvalRow;
  projects: ReadonlyMap<string, string>;
}): ComponentChild {
  const { file, modified, costUsd, summaries, failures, problem } = row;
  const tasks = [...new Set(summaries.flatMap(({ byTask }) => byTask.map(({ task }) => task)))];
  return h(
    "section",
    { class: "panel eval", "aria-label": file },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "clip mono grow" }, file),
      h("span", { class: "dim" }, `${startOf(modified)} · ${money(costUsd)}`),
    ),
    problem === undefined ? null : h("p", { class: "ban bad" }, problem),
    h(Table, {
      caption: `Results of ${file}`,
      heads: ["Agent", "Model", "Passed", "Score", "Cost", "Time", ...tasks],
      rows: summaries.map((one) => [
        one.definition,
        one.model,
        `${one.passed} of ${one.runs}`,
        one.score.toFixed(2),
        money(one.costUsd),
        duration(one.meanMs),
        ...tasks.map((task) => {
          const own = one.byTask.find((candidate) => candidate.task === task);
          return own === undefined ? "–" : `${own.passed} of ${own.runs}`;
        }),
      ]),
    }),
    failures.length === 0
      ? null
      : h(
          "ul",
          { class: "plain-l", "aria-label": "Not passed" },
          failures.map(({ task, definition, model, repetition, reason, sessionId }, at) => {
            const project = sessionId === undefined ? undefined : projects.get(sessionId);
            const name = `${task}, ${definition}, ${model}, run ${repetition}`;
            return h(
              "li",
              { key: at },
              h("span", { class: "st-bad" }, "not passed "),
              project === undefined || sessionId === undefined
                ? name
                : h("a", { class: "link", href: sessionLink({ project, id: sessionId }) }, name),
              reason === "" ? null : h("span", { class: "dim" }, `: ${reason}`),
            );
          }),
        ),
  );
}

function NoEval({ isEmpty }: { isEmpty: boolean }): ComponentChild {
  if (!isEmpty) return h("p", { class: "panel empty" }, "No file matches. Clear the search.");
  return h(
    "div",
    { class: "panel empty" },
    h("h2", {}, "No evaluation in this folder"),
    h("p", {}, "Run one with ", h("code", {}, "retinue eval FILE"), "; its results appear here."),
  );
}
