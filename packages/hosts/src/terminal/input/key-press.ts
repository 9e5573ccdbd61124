import { decodePrintableKey, isKeyRelease, parseKey } from "@earendil-works/pi-tui/dist/keys.js";

/** One press: its name, such as `ctrl+c`, `shift+enter` or `up`, and the text it types where it types one. */
export interface KeyPress {
  readonly name: string;
  readonly text?: string;
}

/** Understands one sequence of legacy keys, of the kitty protocol, of modifyOtherKeys or of Windows Terminal; undefined for all else. */
export function readKey(sequence: string): KeyPress | undefined {
  // Enter sends a return; a line feed alone is Ctrl+J.
  if (sequence === "\n") return { name: "ctrl+j" };
  const windows = readWindowsKey(sequence);
  if (windows !== undefined) return windows.isDown ? windows.key : undefined;
  if (isKeyRelease(sequence)) return undefined;
  const name = parseKey(sequence);
  if (name === "space") return { name, text: " " };
  if (name !== undefined && (name.length === 1 || !isNamed(name))) return { name, text: name };
  const shifted = /^shift\+([a-z])$/.exec(name ?? "")?.[1]?.toUpperCase();
  if (shifted !== undefined) return { name: shifted, text: shifted };
  const text = decodePrintableKey(sequence) ?? (isTyped(sequence) ? sequence : "");
  if (name !== undefined) return { name };
  return text === "" ? undefined : { name: text, text };
}

/** Names of keys are words; a character that is typed is one code point. */
function isNamed(name: string): boolean {
  return Array.from(name).length > 1;
}

function isTyped(sequence: string): boolean {
  const code = sequence.charCodeAt(0);
  return code >= 0x20 && code !== 0x7f && !(code >= 0x80 && code <= 0x9f);
}

/** `ESC [ Vk ; Sc ; Uc ; Kd ; Cs ; Rc _`, which Windows Terminal sends when it is asked to report keys exactly. */
function readWindowsKey(
  sequence: string,
): { readonly isDown: boolean; readonly key: KeyPress | undefined } | undefined {
  const found = /^\u001b\[(\d*);(\d*);(\d*);(\d*);(\d*);?(\d*)_$/.exec(sequence);
  if (found === null) return undefined;
  const [virtual = 0, , character = 0, down = 0, state = 0] = found.slice(1).map(Number);
  return { isDown: down === 1, key: windowsKey(virtual, character, state) };
}

function windowsKey(virtual: number, character: number, state: number): KeyPress | undefined {
  const hasAlt = (state & 0x3) !== 0;
  const hasControl = (state & 0xc) !== 0;
  const hasShift = (state & 0x10) !== 0;
  const prefix = `${hasControl ? "ctrl+" : ""}${hasAlt ? "alt+" : ""}${hasShift ? "shift+" : ""}`;
  const named = windowsKeys.get(virtual);
  if (named !== undefined) return { name: `${prefix}${named}` };
  // AltGr is reported as Ctrl and Alt together, and types what it types.
  if (character >= 0x20 && (!(hasControl || hasAlt) || (hasControl && hasAlt))) {
    const text = String.fromCodePoint(character);
    return { name: text === " " ? "space" : text, text };
  }
  const isLetter = virtual >= 0x41 && virtual <= 0x5a;
  return isLetter ? { name: `${prefix}${String.fromCharCode(virtual + 32)}` } : undefined;
}

const windowsKeys: ReadonlyMap<number, string> = new Map([
  [0x08, "backspace"],
  [0x09, "tab"],
  [0x0d, "enter"],
  [0x1b, "escape"],
  [0x21, "pageUp"],
  [0x22, "pageDown"],
  [0x23, "end"],
  [0x24, "home"],
  [0x25, "left"],
  [0x26, "up"],
  [0x27, "right"],
  [0x28, "down"],
  [0x2e, "delete"],
]);
