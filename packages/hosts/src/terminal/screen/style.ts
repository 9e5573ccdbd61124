/**
 * A style is one number: a colour role in the low byte, attributes above it. So styles compare, combine and cache at
 * no cost, and no text can carry one: only this file turns a style into an escape sequence.
 */
export type Style = number;

export const plain: Style = 0;

/** What a colour is for; the terminal's own 16 colours follow them, so light and dark themes both work. */
export const colours = {
  accent: 1,
  good: 2,
  warning: 3,
  error: 4,
  added: 5,
  removed: 6,
  code: 7,
  link: 8,
  red: 9,
  orange: 10,
  yellow: 11,
  green: 12,
  cyan: 13,
  blue: 14,
  purple: 15,
  pink: 16,
} as const;

export const bold: Style = 1 << 8;
export const dim: Style = 1 << 9;
export const italic: Style = 1 << 10;
export const underline: Style = 1 << 11;
export const inverse: Style = 1 << 12;
export const strike: Style = 1 << 13;

const colourMask = 0xff;

/** Both styles; the colour of the second counts where both have one. */
export function combine(outer: Style, inner: Style): Style {
  const colour = inner & colourMask || outer & colourMask;
  return ((outer | inner) & ~colourMask) | colour;
}

export interface StyleOptions {
  /** False leaves only bold, dim and the like. */
  readonly colours: boolean;
  readonly background: "light" | "dark";
}

/** The sequence that switches a style on after a reset; the empty text for plain. */
export type Palette = (style: Style) => string;

export function createPalette({ colours: hasColours, background }: StyleOptions): Palette {
  const known = new Map<Style, string>();
  const codes = background === "light" ? lightCodes : darkCodes;
  return (style) => {
    const cached = known.get(style);
    if (cached !== undefined) return cached;
    const parts = attributes.flatMap(([bit, code]) => ((style & bit) === 0 ? [] : [code]));
    const colour = hasColours ? codes[style & colourMask] : undefined;
    if (colour !== undefined) parts.push(colour);
    const sequence = parts.length === 0 ? "" : `\u001b[${parts.join(";")}m`;
    known.set(style, sequence);
    return sequence;
  };
}

export const resetSequence = "\u001b[0m";

const attributes: readonly (readonly [Style, number])[] = [
  [bold, 1],
  [dim, 2],
  [italic, 3],
  [underline, 4],
  [inverse, 7],
  [strike, 9],
];

/** By role. Yellow and cyan cannot be read on white, so light backgrounds get their darker neighbours. */
const darkCodes: readonly (number | undefined)[] = [
  undefined,
  36,
  32,
  33,
  31,
  32,
  31,
  36,
  34,
  31,
  33,
  33,
  32,
  36,
  34,
  35,
  95,
];
const lightCodes: readonly (number | undefined)[] = [
  undefined,
  34,
  32,
  35,
  31,
  32,
  31,
  34,
  34,
  31,
  31,
  35,
  32,
  36,
  34,
  35,
  95,
];

/** The colour an agent's definition names. */
export function agentColour(name: string | undefined): Style {
  const byName: Readonly<Record<string, Style>> = colours;
  const style = name === undefined || !agentColourNames.has(name) ? undefined : byName[name];
  return style ?? colours.accent;
}

const agentColourNames: ReadonlySet<string> = new Set([
  "red",
  "orange",
  "yellow",
  "green",
  "cyan",
  "blue",
  "purple",
  "pink",
]);
