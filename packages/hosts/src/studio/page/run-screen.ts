import { describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import type {
  WorkflowPhaseView,
  WorkflowStepState,
  WorkflowStepView,
  WorkflowView,
} from "@retinue/core/kernel/live/workflow-view.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { counted, duration, money } from "./format.ts";
import { Icon, StateSign } from "./icons.ts";
import { Breadcrumb, Commands, Facts } from "./parts.ts";
import { agentLink, type Place } from "./route.ts";
import { Shell } from "./shell.ts";
import { doingOf } from "./tree-part.ts";
import { exported, type SessionState, useActs, useRun } from "./use-events.ts";

/** One run of a workflow: its phases, what became of each step, and what did not have to be done again. */
export function RunScreen({ place, runId }: { place: Place; runId: string }): ComponentChild {
  const { state, problem } = useRun(place, runId);
  return h(
    Shell,
    { active: "sessions", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h(Breadcrumb, {
        place,
        title: state?.session?.overview.session.title,
        here: `Workflow ${state?.run?.name ?? runId}`,
      }),
      state === undefined && problem !== undefined ? null : h(Shown, { place, runId, state }),
    ),
  );
}

function Shown(props: { place: Place; runId: string; state: SessionState | undefined }): ComponentChild {
  const { place, runId, state } = props;
  const run = state?.run;
  if (run === undefined) return h("p", { class: "dim", role: "status" }, "Reading the run…");
  if (run === null)
    return h(
      "div",
      { class: "panel empty" },
      h("h2", {}, "There is no such run here"),
      h("p", {}, h("code", {}, "retinue workflow list --runs"), ` shows those there are; ${runId} is none.`),
    );
  return [
    h(Head, { key: "head", run, place }),
    run.error === undefined
      ? null
      : h(
          "p",
          { key: "error", class: "ban bad" },
          h(Icon, { name: "bad" }),
          h(
            "span",
            {},
            run.error,
            run.errorLine === undefined ? "" : ` (line ${run.errorLine} of the script)`,
          ),
        ),
    h(
      "div",
      { key: "cols", class: "beside" },
      h(
        "div",
        {},
        run.phases.length === 0
          ? h("p", { class: "panel empty" }, "The script has started no agent yet.")
          : run.phases.map((phase) => h(Phase, { key: phase.title, phase, place, state })),
      ),
      h(Aside, { run, agents: state?.session?.agents ?? new Map() }),
    ),
  ];
}

function Head({ run, place }: { run: WorkflowView; place: Place }): ComponentChild {
  const { status, name, description, done, steps, tokens, costUsd } = run;
  return h(
    "div",
    { class: "title" },
    h(StateSign, { state: status }),
    h("h1", {}, name),
    h("span", { class: `chip of-${status}` }, status),
    h("span", { class: "dim clip" }, description),
    h(Facts, {
      facts: [
        ["Steps", `${done} of ${steps}`],
        ["Cost", money(costUsd)],
        ["Tokens", describeTokens(tokens)],
        ["Time", h(Elapsed, { run })],
      ],
    }),
    exported === undefined ? h(Act, { run, place }) : null,
  );
}

/** Counted on by the clock of the page while it runs. */
function Elapsed({ run: { startedAt, endedAt } }: { run: WorkflowView }): ComponentChild {
  const [now, setNow] = useState(Date.now());
  const isRunning = endedAt === undefined;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return duration(Math.max(0, (endedAt ?? now) - startedAt));
}

/** Stop asks once, in place. */
function Act({
  run: { runId, status, steps, done },
  place,
}: {
  run: WorkflowView;
  place: Place;
}): ComponentChild {
  const { status: outcome, isBusy, act } = useActs();
  const [isSure, setSure] = useState(false);
  useEffect(() => setSure(false), [status]);
  const send = (action: "stop" | "resume"): void =>
    void act({ project: place.project, sessionId: place.id, agentId: runId, action });
  const button = (text: string, onClick: () => void, tone = ""): ComponentChild =>
    h("button", { class: `btn ${tone}`, type: "button", disabled: isBusy, onClick }, text);
  const stopping = isSure
    ? [
        button(`Stop ${counted(steps - done, "step")}`, () => send("stop"), "bad"),
        button("Keep", () => setSure(false)),
      ]
    : button("Stop", () => setSure(true), "bad");
  return h(
    "span",
    { class: "row" },
    status === "running" ? stopping : null,
    status === "running" || status === "completed" ? null : button("Resume", () => send("resume")),
    h("span", { role: "status", class: "dim" }, outcome),
  );
}

const words: Readonly<Record<WorkflowStepState, string>> = {
  waiting: "queued",
  running: "running",
  done: "done",
  taken: "taken",
  failed: "failed",
  skipped: "skipped",
  "cut-off": "cut off",
  "not-begun": "not begun",
};

interface PhaseProps {
  readonly phase: WorkflowPhaseView;
  readonly place: Place;
  readonly state: SessionState | undefined;
}

function Phase({ phase, place, state: session }: PhaseProps): ComponentChild {
  const { title, detail, isChild, steps } = phase;
  const done = steps.filter(({ state }) => state === "done" || state === "taken").length;
  const state = phaseState(steps);
  return h(
    "section",
    { class: "phase", "aria-label": title || "Before the first phase" },
    h(
      "div",
      { class: "sh" },
      h(StateSign, { state }),
      h("h2", {}, title || "Before the first phase"),
      isChild === true ? h("span", { class: "chip" }, "workflow within") : null,
      h("span", { class: "dim" }, `${done} of ${counted(steps.length, "step")}`),
      detail === undefined ? null : h("span", { class: "dim clip" }, detail),
    ),
    steps.length === 0
      ? null
      : h(
          "ol",
          { class: "steps panel" },
          steps.map((step) => h(Step, { key: step.index, step, place, doing: activityOf(step, session) })),
        ),
  );
}

function phaseState(steps: readonly WorkflowStepView[]): string {
  const has = (state: WorkflowStepState): boolean => steps.some((step) => step.state === state);
  if (has("running")) return "running";
  if (has("failed")) return "failed";
  const isDone = steps.length > 0 && steps.every(({ state }) => state === "done" || state === "taken");
  return isDone ? "completed" : "queued";
}

const notes: Partial<Record<WorkflowStepState, string>> = {
  waiting: "waits for a free place",
  taken: "its result was in the journal, so no agent worked again",
  "cut-off": "its process ended while it worked; resuming continues it",
  "not-begun": "the run ended before it",
};

/** What the agent of a running step does now. */
function activityOf(
  { state, agentId = "" }: WorkflowStepView,
  session: SessionState | undefined,
): string | undefined {
  const agent = session?.session?.agents.get(agentId);
  if (state !== "running" || agent === undefined) return undefined;
  const overview = session?.session?.overview;
  return doingOf(agent, session?.live.get(agentId)?.text, {
    now: overview?.takenAt ?? Date.now(),
    folder: overview?.session.cwd,
  });
}

interface StepProps {
  readonly step: WorkflowStepView;
  readonly place: Place;
  readonly doing: string | undefined;
}

function Step({ step, place, doing }: StepProps): ComponentChild {
  const { index, label, state, why, error, durationMs, costUsd, calls, agentId, model, branch } = step;
  const word = words[state];
  const came = error ?? doing ?? notes[state] ?? step.result;
  const note = [why === undefined ? undefined : `not taken: ${why}`, came]
    .filter((text) => text !== undefined && text !== "")
    .join("; ");
  return h(
    "li",
    {},
    h(
      "details",
      {},
      h(
        "summary",
        {},
        h(Icon, { name: "chevron" }),
        h("span", { class: "dim num" }, index),
        h(StateSign, { state: word }),
        h("span", { class: "what" }, h("b", { class: "clip" }, label || `Step ${index}`)),
        h("span", { class: "dim side" }, state === "taken" || costUsd === undefined ? "" : money(costUsd)),
        h("span", { class: "dim side" }, duration(durationMs)),
        h("span", { class: `chip of-${word.replace(" ", "-")}` }, word),
        h("span", { class: state === "failed" ? "why st-bad" : "why dim" }, note),
      ),
      h(
        "div",
        { class: "inside" },
        h(
          "dl",
          { class: "dl" },
          agentId === undefined
            ? null
            : [
                h("dt", { key: "at" }, "Agent"),
                h(
                  "dd",
                  { key: "ad" },
                  h("a", { class: "link", href: agentLink(place, agentId) }, "Open its conversation"),
                ),
              ],
          rowsOf([
            ["Model", model],
            ["Calls", calls === 0 ? undefined : String(calls)],
            ["Tokens", step.tokens === 0 ? undefined : describeTokens(step.tokens)],
            ["Branch", branch],
            ["Not taken", why],
            ["Failed", error],
            ["Prompt", step.prompt],
            ["Result", step.result],
          ]),
        ),
      ),
    ),
  );
}

function rowsOf(rows: readonly (readonly [string, string | undefined])[]): ComponentChild {
  return rows.map(([name, value]) =>
    value === undefined || value === ""
      ? null
      : [h("dt", { key: `${name}t` }, name), h("dd", { key: name }, value)],
  );
}

function Aside(props: { run: WorkflowView; agents: ReadonlyMap<string, OverviewAgent> }): ComponentChild {
  const { run, agents } = props;
  return h(
    "aside",
    { "aria-label": "What is kept" },
    h("div", { class: "sh" }, h("h2", {}, "Kept in the journal")),
    h(
      "div",
      { class: "panel pad" },
      h("p", {}, keptText(run)),
      h("p", { class: "dim" }, savedText(run, agents)),
    ),
    run.status === "running" || run.status === "completed"
      ? null
      : h(Commands, { label: "Continue", commands: [`retinue workflow resume ${run.runId}`] }),
    run.result === undefined
      ? null
      : [
          h("div", { key: "rh", class: "sh" }, h("h2", {}, "Result")),
          h(
            "pre",
            { key: "r", class: "panel out", tabIndex: 0, role: "group", "aria-label": "Result" },
            run.result,
          ),
        ],
    run.logs.length === 0
      ? null
      : [
          h("div", { key: "lh", class: "sh" }, h("h2", {}, "Log")),
          h(
            "pre",
            { key: "l", class: "panel out", tabIndex: 0, role: "group", "aria-label": "Log" },
            run.logs.join("\n"),
          ),
        ],
  );
}

function stepsOf({ phases }: WorkflowView): readonly WorkflowStepView[] {
  return phases.flatMap(({ steps }) => steps);
}

function keptText(run: WorkflowView): string {
  const kept = stepsOf(run).filter(({ state }) => state === "done" || state === "taken").length;
  const open = run.steps - kept;
  const left = open === 0 ? "" : ` ${counted(open, "step")} would still be run.`;
  return `${counted(kept, "finished step")}: another run takes what has not changed.${left}`;
}

/** What steps that were taken had cost when agents worked on them, where this session has their records. */
function savedText(run: WorkflowView, agents: ReadonlyMap<string, OverviewAgent>): string {
  const taken = stepsOf(run).filter(({ state }) => state === "taken");
  if (taken.length === 0) return "This run took none of its steps from an earlier one.";
  const known = taken.flatMap(({ agentId = "" }) => agents.get(agentId) ?? []);
  const saved = known.reduce((sum, { totals }) => sum + totals.pricedCost, 0);
  const spent = saved === 0 ? "" : `, ${money(saved, known.length === taken.length)} not spent again`;
  return `${counted(taken.length, "step")} taken from an earlier run${spent}.`;
}
