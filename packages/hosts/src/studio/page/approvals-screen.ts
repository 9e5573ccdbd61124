import type { InboxQuestion } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { timeOfDay } from "./format.ts";
import { Icon, StateSign } from "./icons.ts";
import { QuestionCard, requestOf } from "./question-card.ts";
import { Shell } from "./shell.ts";
import { isTyping } from "./timeline.ts";
import { useActs, useList } from "./use-events.ts";

/** All calls that wait for a person, of all sessions, the one that waits longest first. */
export function ApprovalsScreen(): ComponentChild {
  const { state, problem } = useList();
  const inbox = state?.inbox;
  const waiting = (inbox ?? []).filter((question) => question.state === "waiting");
  const [chosen, setChosen] = useState<string>();
  const current = waiting.find(({ id }) => id === chosen) ?? waiting[0];
  useMoves(waiting, current, setChosen);
  return h(
    Shell,
    { active: "approvals", inbox, problem },
    h(
      "div",
      { class: "wrap inbox" },
      h(
        "div",
        {},
        h(
          "div",
          { class: "sh" },
          h("h1", {}, "Approvals"),
          waiting.length === 0
            ? null
            : h("span", { class: "chip wait" }, h(Icon, { name: "wait" }), `${waiting.length} waiting`),
          h("span", { class: "grow" }),
          h(
            "span",
            { class: "dim hide-s row" },
            h("kbd", {}, "J"),
            h("kbd", {}, "K"),
            " move ",
            h("kbd", {}, "E"),
            " edit rule ",
            h("kbd", {}, "?"),
            " keys",
          ),
        ),
        inbox === undefined ? h("p", { role: "status", class: "dim" }, "Reading questions…") : null,
        waiting.map((question) =>
          h(QuestionCard, {
            key: `${question.sessionId} ${question.id}`,
            question,
            isCurrent: question.id === current?.id,
            onChoose: () => setChosen(question.id),
          }),
        ),
        inbox !== undefined && waiting.length === 0 ? h(Nothing, {}) : null,
      ),
      h(Aside, { inbox: inbox ?? [] }),
    ),
  );
}

function Nothing(): ComponentChild {
  return h(
    "div",
    { class: "panel empty" },
    h("h2", {}, "Nothing waits for you"),
    h(
      "p",
      {},
      "Calls that no rule decides appear here while their agent pauses. What a terminal asks is answered there; the list of sessions shows it.",
    ),
  );
}

function useMoves(
  waiting: readonly InboxQuestion[],
  current: InboxQuestion | undefined,
  choose: (id: string | undefined) => void,
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const step = { j: 1, k: -1, arrowdown: 1, arrowup: -1 }[event.key.toLowerCase()];
      if (step === undefined || isTyping(event)) return;
      const at = waiting.findIndex(({ id }) => id === current?.id);
      const next = waiting[Math.max(0, Math.min(waiting.length - 1, at + step))];
      event.preventDefault();
      choose(next?.id);
      document.getElementById(`question-${next?.id}`)?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

function Aside({ inbox }: { inbox: readonly InboxQuestion[] }): ComponentChild {
  const grants = inbox.filter(({ state }) => state === "allowed");
  const answered = inbox.filter(({ state }) => state !== "waiting" && state !== "allowed");
  return h(
    "aside",
    { "aria-label": "Grants and answers" },
    h("div", { class: "sh" }, h("h2", {}, "Grants that hold")),
    grants.length === 0
      ? h("p", { class: "dim" }, "None.")
      : h(
          "ul",
          { class: "panel mini-l" },
          grants.map((question) => h(Grant, { key: question.id, question })),
        ),
    h("div", { class: "sh" }, h("h2", {}, "Answered")),
    answered.length === 0
      ? h("p", { class: "dim" }, "Nothing yet.")
      : h(
          "ul",
          { class: "panel mini-l" },
          answered.map((question) =>
            h(
              "li",
              { key: question.id },
              h(
                "div",
                { class: "row" },
                h(StateSign, { state: question.state }),
                h("code", { class: "clip" }, aboutOf(question)),
              ),
              h(
                "span",
                { class: "dim" },
                [question.answer ?? question.state, timeOfDay(question.answeredAt)].join(", "),
              ),
            ),
          ),
        ),
  );
}

function Grant({ question }: { question: InboxQuestion }): ComponentChild {
  const { status, isBusy, act } = useActs();
  return h(
    "li",
    {},
    h(
      "div",
      { class: "row" },
      h("code", { class: "grow clip" }, aboutOf(question)),
      h(
        "button",
        {
          class: "btn ghost bad",
          type: "button",
          disabled: isBusy,
          onClick: () => void act({ ...requestOf(question), action: "revoke" }),
        },
        "Revoke",
      ),
    ),
    h("span", { class: "dim" }, question.answer ?? ""),
    h("span", { role: "status" }, status),
  );
}

function aboutOf({ tool, command, edit }: InboxQuestion): string {
  return `${tool} ${command ?? edit?.path ?? ""}`.trim();
}
