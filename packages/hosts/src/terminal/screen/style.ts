/**
 * A style is one number: a colour role in the low byte, attributes above it, and a role of the background above them. So
 * styles compare, combine and cache at no cost, and no text can carry one: only this file turns a style into an escape sequence.
 */
export type Style = number;

export const plain: Style = 0;

/** What a colour is for. All but those of code are of the terminal's own 16, so that they fit its theme. */
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
  keyword: 17,
  string: 18,
  number: 19,
  comment: 20,
  title: 21,
  type: 22,
  attribute: 23,
  builtIn: 24,
} as const;

export const bold: Style = 1 << 8;
export const dim: Style = 1 << 9;
export const italic: Style = 1 << 10;
export const underline: Style = 1 << 11;
export const inverse: Style = 1 << 12;
export const strike: Style = 1 << 13;

/** What a background is for: lines of a change, and the words in them that have changed. */
export const backgrounds = {
  addedLine: 1 << 16,
  addedWord: 2 << 16,
  removedLine: 3 << 16,
  removedWord: 4 << 16,
} as const;

/** What becomes of a line, in one colour. */
const whole: ReadonlyMap<Style, Style> = new Map([
  [backgrounds.addedLine, colours.added],
  [backgrounds.addedWord, colours.added],
  [backgrounds.removedLine, colours.removed],
  [backgrounds.removedWord, colours.removed],
]);

const colourMask = 0xff;
const backgroundMask = 0x7 << 16;
const attributeMask = ~(colourMask | backgroundMask);

/** Both styles; colour and background of the second count where both have one. */
export function combine(outer: Style, inner: Style): Style {
  const colour = inner & colourMask || outer & colourMask;
  const background = inner & backgroundMask || outer & backgroundMask;
  return ((outer | inner) & attributeMask) | colour | background;
}

/** How many colours a terminal shows: none, its own 16, 256, or any. */
export type ColourDepth = "none" | "16" | "256" | "any";

export interface StyleOptions {
  /** `none` leaves only bold, dim and the like. */
  readonly depth: ColourDepth;
  readonly background: "light" | "dark";
}

/** The sequence that switches a style on after a reset; the empty text for plain. */
export type Palette = (style: Style) => string;

export function createPalette({ depth, background }: StyleOptions): Palette {
  const known = new Map<Style, string>();
  const codes = background === "light" ? lightCodes : darkCodes;
  const tones = tonesOf[background];
  const codeOf = (style: Style): readonly (string | number)[] => {
    const colour = style & colourMask;
    const under = (style & backgroundMask) >> 16;
    if (depth === "none") return [];
    if (depth === "16") {
      // There is no background that fits every theme, so the colour shows what becomes of the line.
      const own = codes[whole.get(style & backgroundMask) ?? colour];
      return own === undefined ? [] : [own];
    }
    const pick = ([few, any]: Tone, layer: 38 | 48): string =>
      depth === "any" ? `${layer};2;${any.join(";")}` : `${layer};5;${few}`;
    const tone = tones.code[colour];
    const own = tone === undefined ? codes[colour] : pick(tone, 38);
    const below = tones.backgrounds[under];
    return [...(own === undefined ? [] : [own]), ...(below === undefined ? [] : [pick(below, 48)])];
  };
  return (style) => {
    const cached = known.get(style);
    if (cached !== undefined) return cached;
    const parts = [
      ...attributes.flatMap(([bit, code]) => ((attributesOf(style, depth) & bit) === 0 ? [] : [code])),
      ...codeOf(style),
    ];
    const sequence = parts.length === 0 ? "" : `\u001b[${parts.join(";")}m`;
    known.set(style, sequence);
    return sequence;
  };
}

/** Where there is no background for it, a word that has changed is underlined. */
function attributesOf(style: Style, depth: ColourDepth): Style {
  if (depth === "256" || depth === "any") return style;
  const under = style & backgroundMask;
  const isWord = under === backgrounds.addedWord || under === backgrounds.removedWord;
  const isAdded = under === backgrounds.addedLine || under === backgrounds.addedWord;
  return style | (isWord ? underline : 0) | (isAdded ? bold : 0);
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
  35,
  32,
  33,
  90,
  94,
  36,
  36,
  36,
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
  35,
  32,
  31,
  90,
  34,
  36,
  34,
  36,
];

/** A colour of the 256, and the same as red, green and blue. */
type Tone = readonly [few: number, any: readonly [red: number, green: number, blue: number]];

interface Tones {
  /** By colour role; of the other roles the terminal's own colours are used. */
  readonly code: readonly (Tone | undefined)[];
  /** By background role. */
  readonly backgrounds: readonly (Tone | undefined)[];
}

function byRole(
  roles: Readonly<Record<string, number>>,
  tones: Readonly<Record<string, Tone>>,
): Tones["code"] {
  const list: (Tone | undefined)[] = [];
  for (const [name, tone] of Object.entries(tones)) list[roles[name] ?? 0] = tone;
  return list;
}

const backgroundRoles = { addedLine: 1, addedWord: 2, removedLine: 3, removedWord: 4 } as const;

/** Each can be read on the backgrounds of changed lines as well: a contrast of 3 and more. */
const tonesOf: Readonly<Record<"light" | "dark", Tones>> = {
  dark: {
    code: byRole(colours, {
      keyword: [177, [207, 142, 241]],
      string: [114, [152, 204, 128]],
      number: [215, [233, 172, 110]],
      comment: [248, [168, 172, 182]],
      title: [75, [110, 182, 255]],
      type: [186, [226, 206, 130]],
      attribute: [180, [222, 178, 138]],
      builtIn: [80, [98, 204, 212]],
    }),
    backgrounds: byRole(backgroundRoles, {
      addedLine: [22, [20, 48, 32]],
      addedWord: [28, [26, 80, 44]],
      removedLine: [52, [60, 24, 28]],
      removedWord: [88, [122, 34, 42]],
    }),
  },
  light: {
    code: byRole(colours, {
      keyword: [90, [137, 32, 145]],
      string: [22, [24, 96, 36]],
      number: [94, [132, 72, 0]],
      comment: [240, [88, 96, 106]],
      title: [25, [10, 82, 176]],
      type: [58, [106, 88, 0]],
      attribute: [88, [130, 50, 20]],
      builtIn: [23, [0, 92, 102]],
    }),
    backgrounds: byRole(backgroundRoles, {
      addedLine: [194, [220, 252, 228]],
      addedWord: [157, [166, 240, 184]],
      removedLine: [224, [255, 232, 230]],
      removedWord: [217, [255, 200, 198]],
    }),
  },
};

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
