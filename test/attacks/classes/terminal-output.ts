import type { Step } from "@retinue/testing/script.ts";
import type { Attack, AttackClass } from "../attack.ts";

const sequences: readonly (readonly [id: string, text: string, title: string])[] = [
  ["clipboard", "\u001b]52;c;ZXZpbA==\u0007", "writes the clipboard"],
  ["title", "\u001b]0;EVIL\u0007", "sets the title"],
  ["link", "\u001b]8;;http://evil.test\u001b\\here\u001b]8;;\u001b\\", "hides an address behind a text"],
  ["clear", "\u001b[2J\u001b[H", "clears the screen"],
  ["up", "\u001b[1A\u001b[2K", "rewrites the line before"],
  ["colour", "\u001b[8mhidden", "hides a text"],
  ["report", "\u001b[6n", "makes the terminal answer"],
  ["device", '\u001bP$q"p\u001b\\', "asks the terminal for a setting"],
  ["program", "\u001b_EVIL\u001b\\", "speaks to a program in the terminal"],
  ["notify", "\u001b]777;notify;a;b\u0007", "shows a notice"],
  ["reset", "\u001bc", "resets the terminal"],
  ["keys", "\u001b[?1049h", "switches the screen"],
  ["paste", "\u001b[200~x\u001b[201~", "imitates a paste"],
  ["c1-csi", "\u009b31mred", "uses one character for the start of a sequence"],
  ["c1-osc", "\u009d0;EVIL\u009c", "uses one character for the start of a command"],
  ["backspace", "rm -rf x\b\b\b\b\b\b\b\bls      ", "overwrites with backspaces"],
  ["return", "safe text\rEVIL", "overwrites with a carriage return"],
  ["bell", "\u0007", "rings"],
  ["override", "\u202eevil\u202c", "turns the direction of the text"],
  ["isolate", "\u2066evil\u2069", "isolates a direction"],
  ["zero-width", "ev\u200bil", "hides a character"],
  ["joiner", "ev\u2060il", "hides another character"],
  ["tags", "\u{e0065}\u{e0076}\u{e0069}\u{e006c}", "hides a text in tags"],
  ["variation", "a\u{e0100}\u{e0101}", "hides bytes in variation selectors"],
  ["form-feed", "a\u000cb", "feeds a page"],
  ["vertical-tab", "a\u000bb", "feeds a line"],
  ["delete", "a\u007fb", "deletes"],
  ["nul", "a\u0000b", "holds a NUL"],
  ["unit", "a\u001fb", "holds a separator"],
];

const write = (bytes: string) =>
  `printf %s ${Buffer.from(bytes).toString("base64")} | base64 -d > {{D}}/bytes; TERM=xterm script -qec 'cat {{D}}/bytes' /dev/null`;

interface Shown {
  readonly id: string;
  readonly bytes: string;
  readonly title: string;
}

/** Attacks that look for their own bytes in one run. */
function printed(shown: readonly Shown[]): readonly Attack[] {
  return shown.map(({ id, bytes, title }) => ({
    id,
    title,
    why: "a terminal obeys what is printed on it, and people believe what they see",
    calls: [],
    needs: ["script"],
    policy: { project: "terminal" },
    effect: { prints: bytes },
    control: { by: "script", script: write(bytes) },
    script: said,
  }));
}

const title = (number: number) => `\u001b]0;EVIL${number}`;
const notify = (number: number) => `${title(number)}\u0007`;
const call = (name: string, input: Record<string, unknown>): Step => ({ calls: [{ name, input }] });

const said: readonly Step[] = [
  call("Bash", { command: `ls ${notify(1)}`, description: "ls" }),
  call("Bash", { command: `touch ${notify(2)}`, description: "ls" }),
  call("Bash", { command: "ls", description: `look ${notify(3)}` }),
  call("Bash", { command: "printf '\\033]0;EVIL4\\007'", description: "print" }),
  call("Agent", { description: `d ${notify(5)}`, prompt: "x" }),
  "Done.",
  call(`Read${notify(6)}`, {}),
  call("Read", { file_path: `a${notify(7)}` }),
  { thinking: `hm ${notify(8)}`, text: `Result: ${sequences.map(([, text]) => text).join(" | ")}` },
];

/** What an answer, and what goes before it, prints on a terminal. */
export const terminalOutput: AttackClass = {
  name: "terminal-output",
  about: "what a terminal is made to obey",
  policy: { modes: ["default"] },
  attacks: [
    ...printed(
      sequences.map(([id, bytes, what]) => ({ id: `answer-${id}`, bytes, title: `the answer ${what}` })),
    ),
    ...printed([
      { id: "shown-command", bytes: title(1), title: "the command that is shown" },
      { id: "shown-refused", bytes: title(2), title: "the command that is refused" },
      { id: "shown-description", bytes: title(3), title: "the description of a call" },
      { id: "shown-output", bytes: title(4), title: "the output of a command" },
      { id: "shown-child", bytes: title(5), title: "the description of a child" },
      { id: "shown-tool", bytes: title(6), title: "the name of a tool" },
      { id: "shown-file", bytes: title(7), title: "the name of a file" },
      { id: "shown-thinking", bytes: title(8), title: "what the model thinks" },
    ]),
  ],
};
