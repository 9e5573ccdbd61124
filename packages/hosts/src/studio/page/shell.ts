import type { InboxQuestion } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, type ComponentChildren, createContext, h } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.ts";
import { pathOf } from "./question-card.ts";
import { mayStream, onStreamTurn, onWaitingCount, shareWaitingCount } from "./stream-turn.ts";
import { isTyping } from "./timeline.ts";
import { exported } from "./use-events.ts";

/** What is written in the search of the header, which the lists follow. */
export const Search = createContext<{ readonly text: string; readonly set: (text: string) => void }>({
  text: "",
  set: () => undefined,
});

const places = [
  ["live", "Live", "#/", "live", "l"],
  ["sessions", "Sessions", "#/sessions", "list", "s"],
  ["approvals", "Approvals", "#/approvals", "inbox", "a"],
  ["teams", "Teams", "#/teams", "team", "t"],
  ["evals", "Evals", "#/evals", "check", "e"],
] as const satisfies readonly (readonly [string, string, string, IconName, string])[];

export type PlaceName = (typeof places)[number][0];

interface ShellProps {
  readonly active: PlaceName;
  readonly inbox: readonly InboxQuestion[] | undefined;
  readonly problem: string | undefined;
  readonly children?: ComponentChildren;
}

/** What every screen has around it: where one is, what waits for a person, and whether the data are fresh. */
export function Shell({ active, inbox = [], problem, children }: ShellProps): ComponentChild {
  const waiting = inbox.filter(({ state }) => state === "waiting");
  // How many calls wait, also while another tab has to say so.
  const [shared, setShared] = useState<number>();
  const count = shared ?? waiting.length;
  useEffect(() => {
    document.title = count === 0 ? "Retinue" : `(${count}) Retinue`;
  }, [count]);
  useEffect(() => {
    if (mayStream()) shareWaitingCount(waiting.length);
  }, [waiting.length]);
  useEffect(() => {
    const forgetCount = onWaitingCount((other) => mayStream() || setShared(other));
    const forgetTurn = onStreamTurn(() => mayStream() && setShared(undefined));
    return () => {
      forgetCount();
      forgetTurn();
    };
  }, []);
  return [
    h("a", { key: "skip", class: "skip", href: "#main", onClick: skip }, "Skip to content"),
    exported === undefined ? h(Header, { key: "header", active, waiting: waiting.length, problem }) : null,
    h(
      "main",
      { key: "main", id: "main", tabIndex: -1 },
      problem === undefined
        ? null
        : h("p", { class: "ban bad", role: "alert" }, h(Icon, { name: "bad" }), problem),
      active === "approvals" ? null : h(WaitingBar, { waiting }),
      children,
    ),
  ];
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header(props: { active: PlaceName; waiting: number; problem: string | undefined }): ComponentChild {
  const { active, waiting, problem } = props;
  const keys = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const search = useContext(Search);
  useKeys(
    () => keys.current?.showModal(),
    () => field.current?.focus(),
  );
  const state = problem === undefined ? "Connected" : "Not connected";
  return h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: "#/", "aria-label": "Retinue" }, h(Brand, {}), h("span", {}, "Retinue")),
    h(
      "nav",
      { class: "nav", "aria-label": "Main" },
      places.map(([name, label, href, icon]) =>
        h(
          "a",
          { key: name, href, ...(name === active ? { "aria-current": "page" as const } : {}) },
          h(Icon, { name: icon }),
          label,
          name === "approvals" && waiting > 0
            ? h("span", { class: "count" }, waiting, h("span", { class: "vh" }, " waiting"))
            : null,
        ),
      ),
    ),
    h(
      "label",
      { class: "search" },
      h(Icon, { name: "find" }),
      h("span", { class: "vh" }, "Search"),
      h("input", {
        ref: field,
        type: "search",
        value: search.text,
        placeholder: "Search sessions, agents, folders",
        onInput: (event: Event) => search.set((event.target as HTMLInputElement).value),
        onKeyDown: (event: KeyboardEvent) => {
          if (event.key === "Escape") field.current?.blur();
          if (event.key === "Enter" && active !== "live") location.hash = "#/sessions";
        },
      }),
      h("kbd", {}, "/"),
    ),
    h(
      "span",
      { class: `link-state ${problem === undefined ? "st-ok" : "st-bad"}`, title: state },
      h(
        "svg",
        { class: "dot", viewBox: "0 0 8 8", "aria-hidden": true },
        h("circle", { cx: 4, cy: 4, r: 4, fill: "currentColor" }),
      ),
      h("span", { class: "dim hide-m" }, state),
    ),
    h(
      "button",
      { class: "btn ghost sq", type: "button", "aria-label": "Switch dark and light", onClick: switchTheme },
      h(Icon, { name: "theme" }),
    ),
    h(KeysDialog, { dialog: keys }),
  );
}

function Brand(): ComponentChild {
  return h(
    "svg",
    { width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": true },
    h("path", { class: "brand-line", d: "M5 4v8.5A3.5 3.5 0 0 0 8.500 16H15M5 8h10" }),
    h("circle", { class: "brand-1", cx: 5, cy: 4, r: 2.6 }),
    h("circle", { class: "brand-2", cx: 15.5, cy: 8, r: 2.2 }),
    h("circle", { class: "brand-2", cx: 15.5, cy: 16, r: 2.2 }),
  );
}

const keyRows = [
  ["/", "search; Esc leaves it"],
  ["G, then", "L live, S sessions, A approvals, T teams, E evals"],
  ["J, K", "next, previous agent or question"],
  ["A, S, D, E", "allow, allow for session, deny, edit the rule"],
  ["+, −, 0", "zoom the timeline, fit"],
  ["←, →", "close, open the agents below one"],
  ["T", "dark or light"],
  ["?", "these keys"],
] as const;

function KeysDialog({ dialog }: { dialog: { current: HTMLDialogElement | null } }): ComponentChild {
  return h(
    "dialog",
    { ref: dialog, "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h(
      "dl",
      { class: "dl" },
      keyRows.map(([key, does]) => [h("dt", { key: `${key}t` }, key), h("dd", { key }, does)]),
    ),
    h("button", { class: "btn", type: "button", onClick: () => dialog.current?.close() }, "Close"),
  );
}

const goMs = 900;

function useKeys(showKeys: () => void, search: () => void): void {
  useEffect(() => {
    let goAt = 0;
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      const key = event.key.toLowerCase();
      const isGoing = Date.now() - goAt < goMs;
      goAt = key === "g" ? Date.now() : 0;
      const target = places.find(([, , , , letter]) => letter === key);
      if (isGoing && target !== undefined) {
        // Not an answer to a question, though it is the same key.
        event.stopImmediatePropagation();
        location.hash = target[2];
      } else if (key === "/") {
        event.preventDefault();
        search();
      } else if (key === "t") switchTheme();
      else if (event.key === "?") showKeys();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, []);
}

const themeKey = "retinue-theme";

function switchTheme(): void {
  const root = document.documentElement;
  const shown = root.dataset["theme"];
  const isDark = shown === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : shown === "dark";
  root.dataset["theme"] = isDark ? "light" : "dark";
  try {
    localStorage.setItem(themeKey, root.dataset["theme"]);
  } catch {
    // It holds for this page alone.
  }
}

/** As it was chosen the last time. */
export function restoreTheme(): void {
  try {
    const chosen = localStorage.getItem(themeKey);
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset["theme"] = chosen;
  } catch {
    // Files and private windows may have no storage.
  }
}

/** What waits for a person is on top of every page. */
function WaitingBar({ waiting }: { waiting: readonly InboxQuestion[] }): ComponentChild {
  const [first, second] = waiting;
  const words = waiting.length === 1 ? "1 call waits for you" : `${waiting.length} calls wait for you`;
  return h(
    "div",
    { class: first === undefined ? "ask none" : "ask", role: "status" },
    first === undefined
      ? null
      : [
          h(Icon, { key: "i", name: "wait" }),
          h("b", { key: "b" }, words),
          h(Waiting, { key: 1, question: first }),
          second === undefined ? null : h(Waiting, { key: 2, question: second }),
          h("span", { key: "g", class: "grow" }),
          h(
            "a",
            { key: "r", class: "btn", href: "#/approvals" },
            "Review ",
            h("kbd", {}, "G"),
            h("kbd", {}, "A"),
          ),
        ],
  );
}

function Waiting({ question }: { question: InboxQuestion }): ComponentChild {
  const [place] = question.places;
  const who = place === undefined ? "" : (pathOf(place).split(" › ").at(-1) ?? "");
  return h(
    "a",
    { class: "q", href: "#/approvals" },
    h("span", { class: "sub clip" }, who),
    h("code", { class: "clip" }, question.command ?? `${question.tool} ${question.edit?.path ?? ""}`),
  );
}
