import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, money, plainLine, withoutFolder } from "./format.ts";
import { StateSign } from "./icons.ts";
import { describeInFlight, labelOf, memo } from "./parts.ts";
import { agentLink, type Place } from "./route.ts";
import { isTyping } from "./timeline.ts";

export interface TreeAgent {
  readonly agent: OverviewAgent;
  /** `waiting` while it asks, else its own. */
  readonly state: string;
  /** What it asks, does, or has done. */
  readonly doing: string;
}

interface TreeProps {
  readonly place: Place;
  readonly agents: readonly TreeAgent[];
  readonly selected: string;
  readonly onOpen: () => void;
}

const rowHeight = 46;
/** With more agents, those below the first level are closed at first. */
const maxOpen = 200;

/** All agents below those that started them. The arrow keys and J, K walk through it. */
export function TreePart({ place, agents, selected, onOpen }: TreeProps): ComponentChild {
  const list = useRef<HTMLUListElement>(null);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [search, setSearch] = useState("");
  const parents = useMemo(() => new Set(agents.map(({ agent }) => agent.parentId)), [agents]);
  const isClosed = (id: string): boolean => toggled.has(id) !== (agents.length > maxOpen && id !== "main");
  const shown =
    search === ""
      ? visible(agents, isClosed)
      : agents.filter(({ agent }) =>
          `${labelOf(agent)} ${agent.agentType} ${agent.id} ${agent.state}`
            .toLowerCase()
            .includes(search.toLowerCase()),
        );
  const isWhole = shown.length <= 120;
  const [first, last] = useWindow(list, { rowHeight, count: shown.length, isWhole });
  const position = shown.findIndex(({ agent }) => agent.id === selected);
  useEffect(() => {
    const pane = list.current?.closest(".pane");
    if (!(pane instanceof HTMLElement) || list.current === null || position === -1) return;
    // On narrow screens the page scrolls, and not because of this list.
    if (pane.scrollHeight <= pane.clientHeight) return;
    const y = list.current.offsetTop - pane.offsetTop + position * rowHeight;
    const isSeen = y >= pane.scrollTop && y + rowHeight <= pane.scrollTop + pane.clientHeight;
    if (!isSeen) pane.scrollTop = y - pane.clientHeight / 2;
  }, [selected, position === -1]);
  const toggle = (id: string): void => {
    const next = new Set(toggled);
    if (!next.delete(id)) next.add(id);
    setToggled(next);
  };
  useTreeKeys({ place, shown, selected, toggle, isClosed, hasChildren: (id) => parents.has(id) });
  return h(
    "section",
    { class: "pane p-tree", "aria-labelledby": "agents" },
    h(
      "div",
      { class: "ph" },
      h("h2", { id: "agents" }, `Agents (${agents.length})`),
      h("span", { class: "grow" }),
      agents.length < 12
        ? null
        : h("input", {
            class: "field",
            type: "search",
            "aria-label": "Search agents",
            placeholder: "Filter",
            value: search,
            onInput: (event: Event) => setSearch((event.target as HTMLInputElement).value),
          }),
    ),
    h(
      "ul",
      {
        ref: list,
        class: isWhole ? "tree" : "tree virtual",
        role: "tree",
        onClick: onOpen,
        "aria-label": "Agents",
        style: isWhole ? {} : { height: `${shown.length * rowHeight}px` },
      },
      shown.slice(first, last).map((row, at) =>
        h(
          "li",
          { key: row.agent.id, role: "none", style: isWhole ? {} : { top: `${(first + at) * rowHeight}px` } },
          h(TreeRow, {
            place,
            row,
            position: first + at + 1,
            isSelected: row.agent.id === selected,
            closed: parents.has(row.agent.id) ? isClosed(row.agent.id) : undefined,
          }),
        ),
      ),
    ),
  );
}

function visible(agents: readonly TreeAgent[], isClosed: (id: string) => boolean): readonly TreeAgent[] {
  const hidden = new Set<string>();
  return agents.filter(({ agent: { id, parentId } }) => {
    const isHidden = parentId !== undefined && (hidden.has(parentId) || isClosed(parentId));
    if (isHidden) hidden.add(id);
    return !isHidden;
  });
}

interface RowProps {
  readonly place: Place;
  readonly row: TreeAgent;
  readonly position: number;
  readonly isSelected: boolean;
  readonly closed: boolean | undefined;
}

const tones: Readonly<Record<string, string>> = { waiting: " w", failed: " b", interrupted: " b" };

const TreeRow = memo(({ place, row, position, isSelected, closed }: RowProps): ComponentChild => {
  const { agent, state, doing } = row;
  const { totals } = agent;
  const tone = tones[state] ?? "";
  return h(
    "a",
    {
      href: agentLink(place, agent.id),
      role: "treeitem",
      class: `depth${Math.min(agent.depth, 6)}`,
      "aria-level": agent.depth + 1,
      "aria-posinset": position,
      "aria-selected": isSelected,
      tabIndex: isSelected ? 0 : -1,
      ...(closed === undefined ? {} : { "aria-expanded": !closed }),
    },
    h(StateSign, { state }),
    h("span", { class: "n clip" }, labelOf(agent), closed === true ? " …" : ""),
    h("span", { class: "m" }, money(totals.pricedCost, totals.costUsd !== undefined)),
    h("span", { class: `d clip${tone}`, title: doing }, doing),
    h("span", { class: "t" }, duration(totals.durationMs)),
  );
});

function useTreeKeys(options: {
  readonly place: Place;
  readonly shown: readonly TreeAgent[];
  readonly selected: string;
  readonly toggle: (id: string) => void;
  readonly isClosed: (id: string) => boolean;
  readonly hasChildren: (id: string) => boolean;
}): void {
  const { place, shown, selected, toggle, isClosed, hasChildren } = options;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      const isInTree = event.target instanceof HTMLElement && event.target.closest("[role=tree]") !== null;
      const step = { j: 1, k: -1, ...(isInTree ? { arrowdown: 1, arrowup: -1 } : {}) }[
        event.key.toLowerCase()
      ];
      const at = shown.findIndex(({ agent }) => agent.id === selected);
      if (step !== undefined) {
        const next = shown[Math.max(0, Math.min(shown.length - 1, at + step))];
        if (next === undefined) return;
        event.preventDefault();
        location.hash = agentLink(place, next.agent.id);
        requestAnimationFrame(() =>
          document.querySelector<HTMLElement>("[role=treeitem][aria-selected=true]")?.focus(),
        );
      } else if (
        isInTree &&
        hasChildren(selected) &&
        (event.key === "ArrowLeft") !== isClosed(selected) &&
        event.key.startsWith("Arrow")
      ) {
        event.preventDefault();
        toggle(selected);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

/** The end of what is being written, else what is under way or its outcome, on one line. */
export function doingOf(
  agent: OverviewAgent,
  writing: string | undefined,
  { now, folder }: { readonly now: number; readonly folder: string | undefined },
): string {
  if (writing !== undefined) return `Writes: ${tailOf(writing)}`;
  if (agent.state === "running")
    return withoutFolder(describeInFlight(agent.inFlight, now), folder) || "running";
  if (agent.state === "failed" || agent.state === "interrupted")
    return `${agent.state === "failed" ? "Failed" : "Interrupted"}: ${agent.error ?? agent.reason ?? "its process ended before it did"}`;
  return plainLine(agent.result ?? agent.reason ?? agent.state);
}

const maxTail = 90;

function tailOf(text: string): string {
  const line = plainLine(text.slice(-maxTail * 2));
  return line.length <= maxTail ? line : `…${line.slice(-maxTail)}`;
}

const margin = 12;

/** Of a long list, which rows are near the screen: from the first up to the second. */
function useWindow(
  list: { readonly current: HTMLUListElement | null },
  { rowHeight, count, isWhole }: { rowHeight: number; count: number; isWhole: boolean },
): readonly [number, number] {
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  useEffect(() => {
    if (isWhole) return;
    const measure = (): void => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / rowHeight) - margin);
      const last = Math.min(count, Math.max(first, Math.ceil((innerHeight - top) / rowHeight) + margin));
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    measure();
    // Whatever scrolls, the page or the box that the list is in.
    addEventListener("scroll", measure, { passive: true, capture: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure, { capture: true });
      removeEventListener("resize", measure);
    };
  }, [rowHeight, count, isWhole]);
  return isWhole ? [0, count] : range;
}
