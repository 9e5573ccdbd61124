import { describeOffset } from "@retinue/core/inspection/describe-duration.ts";
import type { TimeAxis } from "@retinue/core/inspection/time-axis.ts";
import type {
  OverviewBar as Bar,
  OverviewBarKind as BarKind,
} from "@retinue/core/kernel/live/session-overview.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { timeOfDay } from "./format.ts";
import { StateSign } from "./icons.ts";

export interface Lane {
  readonly id: string;
  readonly label: string;
  readonly state: string;
  readonly depth: number;
  readonly bars: readonly Bar[];
}

type Placing = Pick<TimeAxis, "durationMs" | "place">;

interface Scale {
  /** Milliseconds of the axis at the left edge, and how many are shown. */
  readonly from: number;
  readonly span: number;
  readonly left: number;
  readonly width: number;
}

/** In one place the later ones win. */
const order: readonly BarKind[] = ["other", "agents", "model", "tool", "waiting", "refused", "failed"];
const thin: ReadonlySet<BarKind> = new Set(["other", "agents"]);
/** For names, on narrow and on other screens. */
const labelWidths = [118, 168] as const;
const narrow = 560;
const laneHeight = 20;
const top = 22;
const maxZoom = 64;

interface TimelineProps {
  readonly lanes: readonly Lane[];
  readonly axis: TimeAxis;
  readonly isLive: boolean;
  readonly selected: string;
  /** Of which agent, and which moment of the axis where a bar was hit. */
  readonly onSelect: (id: string, at?: number) => void;
}

/** What each agent did when: a lane for each, on the axis that all share. */
export function Timeline(props: TimelineProps): ComponentChild {
  const { lanes, axis, isLive, selected, onSelect } = props;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [view, setView] = useState<{ readonly at: number; readonly zoom: number }>({ at: 1, zoom: 1 });
  const labelWidth = labelWidths[width < narrow ? 0 : 1];
  const total = Math.max(1, axis.durationMs);
  const span = total / view.zoom;
  const scale: Scale = {
    span,
    from: Math.max(0, (total - span) * view.at),
    left: labelWidth,
    width: Math.max(50, width - labelWidth - 16),
  };
  const height = top + lanes.length * laneHeight + 6;
  const zoomBy = (factor: number, at = view.at): void =>
    setView(({ zoom }) => ({ zoom: Math.min(maxZoom, Math.max(1, zoom * factor)), at }));
  useZoomKeys(zoomBy, () => setView({ at: 1, zoom: 1 }));
  const position = lanes.findIndex(({ id }) => id === selected);
  useEffect(() => {
    const { current } = box;
    if (current === null || position === -1) return;
    const y = top + position * laneHeight;
    const isSeen = y >= current.scrollTop && y + laneHeight <= current.scrollTop + current.clientHeight;
    if (!isSeen) current.scrollTop = y - current.clientHeight / 2;
  }, [position]);
  return h(
    "section",
    { class: "tl", "aria-label": "Timeline" },
    h(TimelineHead, { zoom: view.zoom, onZoom: zoomBy, onFit: () => setView({ at: 1, zoom: 1 }) }),
    h(
      "div",
      {
        class: "lanes",
        ref: box,
        tabIndex: 0,
        role: "group",
        "aria-label": "Lanes by agent",
        onDblClick: () => setView({ at: 1, zoom: 1 }),
        onWheel: (event: WheelEvent) => {
          if (!event.ctrlKey) return;
          event.preventDefault();
          const place = (event.offsetX - scale.left) / scale.width;
          zoomBy(event.deltaY < 0 ? 1.5 : 1 / 1.5, clamp((scale.from + place * span) / total));
        },
        onPointerMove: (event: PointerEvent) => {
          if (event.buttons !== 1 || view.zoom === 1) return;
          setView({
            ...view,
            at: clamp(view.at - event.movementX / scale.width / Math.max(1, view.zoom - 1)),
          });
        },
      },
      h(
        "svg",
        {
          class: "lanes-svg",
          width,
          height,
          viewBox: `0 0 ${width} ${height}`,
          role: "img",
          "aria-label": `Timeline of ${lanes.length} agents from ${timeOfDay(axis.timeOf(0))} to ${timeOfDay(axis.timeOf(total))}, ${describeOffset(total)} of work; the tree has the same facts`,
        },
        h(Hatch, {}),
        ticks(scale, { height, axis }),
        lanes.map((lane, at) =>
          h(LaneRow, {
            key: lane.id,
            lane,
            y: top + at * laneHeight,
            scale,
            axis,
            width,
            isSelected: lane.id === selected,
            onSelect,
          }),
        ),
        isLive && scale.from + span >= total - 1 ? nowMark(scale, height) : null,
      ),
    ),
  );
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

function TimelineHead(props: {
  zoom: number;
  onZoom: (factor: number) => void;
  onFit: () => void;
}): ComponentChild {
  const { zoom, onZoom, onFit } = props;
  const legend = [
    ["model", "Model"],
    ["tool", "Tool"],
    ["waiting", "Waits for a person"],
    ["failed", "Error"],
    ["agents", "Waits for agents"],
  ] as const;
  return h(
    "div",
    { class: "ph" },
    h("h2", {}, "Timeline"),
    h(
      "div",
      { class: "legend" },
      legend.map(([kind, label]) =>
        h(
          "span",
          { key: kind },
          h(
            "svg",
            { width: 10, height: 8, "aria-hidden": true },
            h(Hatch, {}),
            h("rect", {
              class: `k-${kind}`,
              y: thin.has(kind) ? 3 : 0,
              width: 10,
              height: thin.has(kind) ? 3 : 8,
              rx: 1,
            }),
          ),
          label,
        ),
      ),
    ),
    h("span", { class: "grow" }),
    h(
      "div",
      { class: "seg", role: "group", "aria-label": "Zoom" },
      h("button", { type: "button", "aria-label": "Zoom out", onClick: () => onZoom(1 / 2) }, "−"),
      h("button", { type: "button", "aria-pressed": zoom === 1, onClick: onFit }, "Fit"),
      h("button", { type: "button", "aria-label": "Zoom in", onClick: () => onZoom(2) }, "+"),
    ),
  );
}

/** Waiting is hatched. Each picture has its own, since pictures that are not shown lend none. */
function Hatch(): ComponentChild {
  return h(
    "defs",
    {},
    h(
      "pattern",
      { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      h("rect", { class: "hatch-1", width: 6, height: 6 }),
      h("rect", { class: "hatch-2", width: 2.5, height: 6 }),
    ),
  );
}

interface LaneRowProps {
  readonly lane: Lane;
  readonly y: number;
  readonly scale: Scale;
  readonly axis: TimeAxis;
  readonly width: number;
  readonly isSelected: boolean;
  readonly onSelect: (id: string, at?: number) => void;
}

function LaneRow({ lane, y, scale, axis, width, isSelected, onSelect }: LaneRowProps): ComponentChild {
  const indent = 10 + Math.min(lane.depth, 4) * 8;
  const room = Math.floor((scale.left - indent - 24) / (isSelected ? 6.8 : 6.3));
  const label = lane.label.length > room ? `${lane.label.slice(0, room - 1).trimEnd()}…` : lane.label;
  return h(
    "g",
    {
      class: isSelected ? "lane sel" : "lane",
      onClick: (event: MouseEvent) => onSelect(lane.id, momentAt(event, scale)),
    },
    h("rect", { class: "ground", x: 0, y, width, height: laneHeight }),
    h(StateSign, { state: lane.state, at: { x: indent, y: y + 4, size: 12 } }),
    // Letters are of different widths, so what is still too long is cut off before the bars.
    h(
      "svg",
      { x: indent + 18, y, width: Math.max(10, scale.left - indent - 22), height: laneHeight },
      h("text", { x: 0, y: laneHeight / 2 + 4 }, label),
    ),
    lanePaths(lane.bars, { axis, scale, y, height: laneHeight }).map(({ kind, d }) =>
      h("path", { key: kind, class: `k-${kind}`, d }),
    ),
  );
}

/** The moment of the axis that was clicked at; undefined beside the bars. */
function momentAt(
  { clientX, currentTarget }: MouseEvent,
  { from, span, left, width }: Scale,
): number | undefined {
  const picture = currentTarget instanceof Element ? currentTarget.closest(".lanes-svg") : null;
  const x = clientX - (picture?.getBoundingClientRect().left ?? 0);
  return picture === null || x < left ? undefined : from + ((x - left) / width) * span;
}

const binWidth = 2;
const ends: ReadonlySet<BarKind> = new Set(["refused", "failed"]);
const endWidth = 4;

/** One path for each kind. What is shorter than a bin takes a whole one, so that short failures are seen. */
export function lanePaths(
  bars: readonly Bar[],
  place: { readonly axis: Placing; readonly scale: Scale; readonly y: number; readonly height: number },
): readonly { readonly kind: BarKind; readonly d: string }[] {
  const { axis, scale, y, height } = place;
  const end = scale.left + scale.width;
  return order.flatMap((kind) => {
    const thickness = thin.has(kind) ? 3 : height - 8;
    let drawnTo = -1;
    const parts: string[] = [];
    for (const bar of bars) {
      if (bar.kind !== kind) continue;
      const to = scale.left + ((axis.place(bar.to) - scale.from) / scale.span) * scale.width;
      const begin = scale.left + ((axis.place(bar.from) - scale.from) / scale.span) * scale.width;
      // How a call ended is seen at its end, however short that moment is.
      const from = ends.has(kind) ? Math.min(begin, to - endWidth) : begin;
      if (to < scale.left || from > end) continue;
      const x = Math.max(scale.left, from, drawnTo);
      const right = Math.min(end, Math.max(to, from + binWidth));
      if (right - x < 0.5) continue;
      drawnTo = right;
      parts.push(
        `M${x.toFixed(1)} ${y + (height - thickness) / 2}h${(right - x).toFixed(1)}v${thickness}H${x.toFixed(1)}z`,
      );
    }
    return parts.length === 0 ? [] : [{ kind, d: parts.join("") }];
  });
}

const steps = [
  ...[1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600],
  ...[43_200, 86_400, 172_800, 604_800, 2_592_000],
].map((seconds) => seconds * 1000);

/** Round times of day as long as nothing was left out; where a new day begins, its date. */
function ticks(scale: Scale, { height, axis }: { height: number; axis: TimeAxis }): ComponentChild {
  const step = steps.find((size) => (size / scale.span) * scale.width > 64) ?? scale.span;
  const marks: ComponentChild[] = [];
  const first = step - (axis.timeOf(0) % step);
  let day = dayOf(axis.timeOf(0));
  for (let at = first; at <= scale.from + scale.span; at += step) {
    const time = axis.timeOf(at);
    const isNewDay = dayOf(time) !== day;
    day = dayOf(time);
    if (at < scale.from) continue;
    const x = scale.left + ((at - scale.from) / scale.span) * scale.width;
    if (x > scale.left + scale.width - 60) break;
    marks.push(
      h("line", { key: `l${at}`, class: "grid", x1: x, x2: x, y1: top - 4, y2: height }),
      h("text", { key: `t${at}`, class: "ax", x: x + 4, y: 13 }, isNewDay ? day : clock(time, step)),
    );
  }
  return marks;
}

function clock(at: number, step: number): string {
  return step < 60_000 ? timeOfDay(at) : timeOfDay(at).slice(0, 5);
}

function dayOf(at: number): string {
  return new Date(at).toLocaleDateString([], { month: "short", day: "numeric" });
}

function nowMark(scale: Scale, height: number): ComponentChild {
  const x = scale.left + scale.width;
  return [
    h("line", { key: "line", class: "nowl", x1: x, x2: x, y1: 16, y2: height }),
    h("rect", { key: "box", class: "nowt", x: x - 22, y: 2, width: 34, height: 15, rx: 3 }),
    h("text", { key: "text", class: "nowx", x: x - 5, y: 13, "text-anchor": "middle" }, "now"),
  ];
}

function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, current.clientWidth)));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return width;
}

function useZoomKeys(zoomBy: (factor: number) => void, fit: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      if (event.key === "+") zoomBy(2);
      else if (event.key === "-") zoomBy(1 / 2);
      else if (event.key === "0") fit();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** Keys do nothing while a field has the focus, or with another key held. */
export function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  const isField = target instanceof HTMLElement && target.matches("input, select, textarea");
  return isField || ctrlKey || metaKey || altKey;
}

/** A small picture of a running session, without labels. */
export function MiniTimeline({
  lanes,
  axis,
}: {
  lanes: readonly (readonly Bar[])[];
  axis: Placing;
}): ComponentChild {
  const height = 56;
  const each = Math.min(14, (height - 4) / Math.max(1, lanes.length));
  const first = (height - each * lanes.length) / 2;
  const scale = { from: 0, span: Math.max(1, axis.durationMs), left: 0, width: 300 };
  return h(
    "svg",
    { class: "mini", viewBox: `0 0 300 ${height}`, preserveAspectRatio: "none", "aria-hidden": true },
    lanes.flatMap((bars, at) =>
      lanePaths(bars, { axis, scale, y: first + at * each, height: Math.max(each, 3) + 6 }).map(
        ({ kind, d }) =>
          h("path", { key: `${at}${kind}`, class: `k-${kind} flat`, d, transform: "translate(0 -3)" }),
      ),
    ),
  );
}
