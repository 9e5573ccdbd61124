import type { MergeView } from "@retinue/core/kernel/live/merge-view.ts";
import type { MergeEntry, MergeQueue } from "@retinue/core/protocol/merge-step.ts";
import { type ComponentChild, h } from "preact";
import { mergeOutcome } from "../../shared/merge-outcome.ts";
import { CheckList } from "./check-list.ts";
import { counted, timeOfDay } from "./format.ts";
import { Icon, StateSign } from "./icons.ts";
import { Breadcrumb, Commands, Facts } from "./parts.ts";
import { agentLink, type Place } from "./route.ts";
import { Shell } from "./shell.ts";
import { type SessionState, useMerge } from "./use-events.ts";

/** How the changes of a session's children come back: the queue, in the order in which they are integrated. */
export function MergeScreen({ place }: { place: Place }): ComponentChild {
  const { state, problem } = useMerge(place);
  return h(
    Shell,
    { active: "sessions", inbox: state?.inbox, problem },
    h(
      "div",
      { class: "wrap" },
      h(Breadcrumb, { place, title: state?.session?.overview.session.title, here: "Merge" }),
      state === undefined && problem !== undefined ? null : h(Shown, { place, state }),
    ),
  );
}

function Shown({ place, state }: { place: Place; state: SessionState | undefined }): ComponentChild {
  const merge = state?.merge;
  if (merge === undefined) return h("p", { class: "dim", role: "status" }, "Reading the merge…");
  if (merge === null) return h(NoMerge, { place });
  const { queue, summary } = merge;
  const isRunning = summary.state === "running";
  return [
    h(Head, { key: "head", merge }),
    h(
      "div",
      { key: "cols", class: "beside" },
      h(
        "section",
        { "aria-labelledby": "queue" },
        h("div", { class: "sh" }, h("h2", { id: "queue" }, "Queue"), h(Checked, { queue })),
        queue.entries.length === 0
          ? h("p", { class: "panel empty" }, "No child has changes in a worktree of its own.")
          : h(
              "ol",
              { class: "steps panel" },
              queue.entries.map((entry, at) =>
                h(Entry, { key: entry.agent, entry, position: at + 1, place, isRunning }),
              ),
            ),
      ),
      h(Outcome, { merge, place }),
    ),
  ];
}

function NoMerge({ place }: { place: Place }): ComponentChild {
  return h(
    "div",
    { class: "panel empty" },
    h("h2", {}, "Nothing was merged yet"),
    h(
      "p",
      {},
      "Agents with ",
      h("code", {}, "isolation: worktree"),
      " leave their changes on branches. ",
      h("code", {}, `retinue merge ${place.id.slice(0, 8)}`),
      " brings them back, and the queue appears here while it does.",
    ),
  );
}

function Head({ merge }: { merge: MergeView }): ComponentChild {
  const { queue, summary, changedAt } = merge;
  return h(
    "div",
    { class: "title" },
    h(StateSign, { state: summary.state }),
    h("h1", {}, "Merge"),
    h("span", { class: `chip of-${summary.state}` }, summary.state),
    queue.into === "" ? null : h("span", { class: "dim mono clip" }, `→ ${queue.into}`),
    h(Facts, {
      facts: [
        ["Agents", String(summary.children)],
        ["Done", String(summary.done)],
        ["Left", String(summary.left)],
        ["Last step", timeOfDay(changedAt)],
      ],
    }),
  );
}

function Checked({ queue: { checks } }: { queue: MergeQueue }): ComponentChild {
  if (checks.length === 0) return h("span", { class: "dim" }, "no checks are named, so nothing is tested");
  return h(
    "span",
    { class: "dim" },
    "each commit checked with ",
    checks.map((run, at) => [at === 0 ? "" : ", ", h("code", { key: run }, run)]),
  );
}

/** In the studio "waiting" means waiting for a person. */
function wordOf({ state }: MergeEntry, isRunning: boolean): string {
  if (!isRunning && active.has(state)) return "cut off";
  return state === "waiting" ? "queued" : state;
}

const active: ReadonlySet<MergeEntry["state"]> = new Set(["rebasing", "resolving", "checking"]);

const notes: Partial<Record<MergeEntry["state"], string>> = {
  waiting: "comes after those above",
  rebasing: "is put on top of the integration branch",
  checking: "its checks run on the commit",
  integrated: "on the integration branch",
  merged: "in your branch; worktree and branch are gone",
  discarded: "worktree and branch are gone",
};

function noteOf({ state, reason, resolver }: MergeEntry, isRunning: boolean): string {
  if (!isRunning && active.has(state)) return "the merge ended while it was at work; another one continues";
  if (state === "resolving") return `${resolver ?? "an agent"} resolves its conflict`;
  if (state === "left" || state === "empty") return reason ?? "";
  const by = resolver === undefined ? "" : `; ${resolver} resolved its conflict`;
  return `${notes[state] ?? ""}${by}`;
}

function Entry(props: {
  entry: MergeEntry;
  position: number;
  place: Place;
  isRunning: boolean;
}): ComponentChild {
  const { entry, position, place, isRunning } = props;
  const {
    agent,
    agentType,
    description,
    branch,
    files = [],
    checks = [],
    commands = [],
    commit,
    tip,
  } = entry;
  const isLeft = entry.state === "left";
  const passed = checks.filter((check) => check.passed).length;
  const word = wordOf(entry, isRunning);
  return h(
    "li",
    {},
    h(
      "details",
      { open: isLeft },
      h(
        "summary",
        {},
        h(Icon, { name: "chevron" }),
        h("span", { class: "dim num" }, position),
        h(StateSign, { state: word }),
        h("span", { class: "what" }, h("b", { class: "clip" }, description || agentType)),
        h("span", { class: "dim clip side" }, files.length === 0 ? "" : counted(files.length, "file")),
        h(
          "span",
          { class: `clip side${passed < checks.length ? " st-bad" : " dim"}` },
          checksText(checks.length, checks.length - passed),
        ),
        h("span", { class: `chip of-${word.replace(" ", "-")}` }, word),
        h("span", { class: isLeft ? "why st-wait" : "why dim" }, noteOf(entry, isRunning)),
      ),
      h(
        "div",
        { class: "inside" },
        h(
          "dl",
          { class: "dl" },
          h("dt", {}, "Agent"),
          h(
            "dd",
            {},
            h("a", { class: "link", href: agentLink(place, agent) }, agentType),
            h("span", { class: "dim mono" }, ` ${agent}`),
          ),
          h("dt", {}, "Branch"),
          h("dd", { class: "mono" }, branch, tip === undefined ? "" : ` at ${tip.slice(0, 12)}`),
          commit === undefined
            ? null
            : [
                h("dt", { key: "t" }, "Commit"),
                h("dd", { key: "d", class: "mono" }, `${commit.slice(0, 12)} on the integration branch`),
              ],
          files.length === 0
            ? null
            : [h("dt", { key: "ft" }, "Files"), h("dd", { key: "fd", class: "mono" }, shownFiles(files))],
        ),
        h(CheckList, { checks }),
        h(Commands, { label: "Continue by hand", commands }),
      ),
    ),
  );
}

function checksText(count: number, failed: number): string {
  if (count === 0) return "";
  return failed === 0
    ? `${counted(count, "check")} passed`
    : `${failed} of ${counted(count, "check")} failed`;
}

const maxFiles = 40;

function shownFiles(files: readonly string[]): string {
  const rest = files.length - maxFiles;
  return `${files.slice(0, maxFiles).join("\n")}${rest > 0 ? `\nand ${rest} more` : ""}`;
}

/** The outcome of the whole, and what a person can do next. */
function Outcome({ merge, place }: { merge: MergeView; place: Place }): ComponentChild {
  const { queue, summary } = merge;
  const command = `retinue merge ${place.id.slice(0, 8)}`;
  const { state, left } = summary;
  const canContinue = state !== "running" && (left > 0 || state === "interrupted" || state === "stopped");
  return h(
    "aside",
    { "aria-label": "Outcome" },
    h("div", { class: "sh" }, h("h2", {}, "Outcome")),
    h(
      "div",
      { class: "panel pad" },
      outcomeLines(merge, command).map((line) => h("p", { key: line }, withCode(line))),
      h(Commands, { label: "Do", commands: queue.notApplied?.commands ?? [] }),
      canContinue ? h(Commands, { label: "Continue", commands: [command] }) : null,
    ),
  );
}

function outcomeLines({ queue, summary: { state } }: MergeView, command: string): readonly string[] {
  if (state === "running") return ["Your branch is touched only at the end, and only with `--apply`."];
  if (state === "interrupted")
    return ["Its process ended before it did. Your branch was not touched; another merge continues."];
  // Commands are shown below, where they can be copied.
  const lines = mergeOutcome(queue, { applyWith: `${command} --apply` });
  return lines.filter((line) => !line.startsWith(" "));
}

/** What is between backticks as code. */
function withCode(line: string): ComponentChild {
  return line.split("`").map((part, at) => (at % 2 === 1 ? h("code", { key: at }, part) : part));
}
