import { type ComponentChild, h } from "preact";

/** Signs as paths; the state of a thing has a shape of its own, so that colour is never alone. */
const shapes = {
  run: () => [
    h("circle", {
      cx: 7,
      cy: 7,
      r: 5.2,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.5,
      opacity: 0.35,
    }),
    line("M7 1.8A5.2 5.2 0 0 1 12.2 7", 1.8),
    h("circle", { cx: 7, cy: 7, r: 2.2, fill: "currentColor" }),
  ],
  ok: () => [circle(), line("M4.4 7.2 6.3 9l3.4-3.8", 1.5)],
  taken: () => [
    h("circle", {
      cx: 7,
      cy: 7,
      r: 5.6,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.3,
      "stroke-dasharray": "2.2 1.6",
    }),
    line("M4.4 7.2 6.3 9l3.4-3.8", 1.5),
  ],
  partial: () => [circle(), h("path", { d: "M7 1.4a5.6 5.6 0 0 0 0 11.2z", fill: "currentColor" })],
  bad: () => [
    h("circle", { cx: 7, cy: 7, r: 6, fill: "currentColor" }),
    h("path", { class: "on", d: "m5 5 4 4m0-4L5 9" }),
  ],
  wait: () => [
    h("path", { d: "M7 .8 13.2 7 7 13.2.8 7z", fill: "currentColor" }),
    h("path", { class: "on", d: "M7 4v3.4M7 9.6v.1" }),
  ],
  off: () => [
    h("circle", {
      cx: 7,
      cy: 7,
      r: 5.2,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.3,
      "stroke-dasharray": "2 2",
    }),
  ],
  chevron: () => [line("m5 3 4 4-4 4", 1.5)],
  find: () => [
    h("circle", { cx: 6, cy: 6, r: 4, fill: "none", stroke: "currentColor", "stroke-width": 1.4 }),
    line("m9 9 3.4 3.4", 1.4),
  ],
  theme: () => [circle(), h("path", { d: "M7 1.7a5.3 5.3 0 0 1 0 10.6z", fill: "currentColor" })],
  live: () => [line("M1 7h3l2-4 2.5 8 2-4H13", 1.3)],
  list: () => [line("M2 3.5h10M2 7h10M2 10.5h7", 1.3)],
  check: () => [line("M2 3.6 3.1 4.8 5 2.6M2 9 3.1 10.2 5 8M7 3.8h5M7 9.2h5", 1.3)],
  team: () => [
    h("circle", { cx: 5, cy: 5, r: 2.3, fill: "none", stroke: "currentColor", "stroke-width": 1.3 }),
    line(
      "M1.2 12c0-2.3 1.6-3.6 3.8-3.6S8.8 9.7 8.8 12M9.4 3a2.2 2.2 0 0 1 0 4.2M10.3 8.7c1.5.4 2.5 1.6 2.5 3.3",
      1.3,
    ),
  ],
  inbox: () => [line("M1.7 8 3.5 2.5h7L12.3 8v3.5H1.7zM1.7 8h3l1 1.7h2.6l1-1.7h3", 1.2)],
} as const;

export type IconName = keyof typeof shapes;

function circle(): ComponentChild {
  return h("circle", { cx: 7, cy: 7, r: 5.6, fill: "none", stroke: "currentColor", "stroke-width": 1.3 });
}

function line(d: string, width: number): ComponentChild {
  return h("path", {
    d,
    fill: "none",
    stroke: "currentColor",
    "stroke-width": width,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });
}

/** Where an icon is within another picture. */
interface IconPlace {
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

export function Icon(props: { name: IconName; label?: string; at?: IconPlace | undefined }): ComponentChild {
  const { name, label, at } = props;
  const spoken =
    label === undefined ? { "aria-hidden": true } : { role: "img" as const, "aria-label": label };
  const box = at === undefined ? { class: `i st-${name}` } : { class: `st-${name}`, ...placed(at) };
  return h("svg", { ...box, viewBox: "0 0 14 14", ...spoken }, ...shapes[name]());
}

function placed({ x, y, size }: IconPlace) {
  return { x, y, width: size, height: size };
}

const signs: Readonly<Record<string, IconName>> = {
  running: "run",
  completed: "ok",
  answered: "ok",
  ok: "ok",
  done: "ok",
  taken: "taken",
  integrated: "ok",
  merged: "ok",
  rebasing: "run",
  resolving: "run",
  checking: "run",
  // A person has to continue it by hand.
  left: "wait",
  allowed: "ok",
  "used up": "ok",
  partial: "partial",
  failed: "bad",
  refused: "bad",
  denied: "bad",
  waiting: "wait",
};

/** The sign of a state; what has none of its own is a dashed ring. */
export function StateSign({ state, at }: { state: string; at?: IconPlace }): ComponentChild {
  const name = signs[state] ?? "off";
  return at === undefined ? h(Icon, { name, label: state }) : h(Icon, { name, at });
}
