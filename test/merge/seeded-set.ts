import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { change, directoryOf, type FileChanges, isResolver } from "./merge-stage.ts";

/** The changes of one of several agents that worked at the same time. */
export interface SeededChange {
  readonly task: string;
  readonly files: FileChanges;
  /** Lines that must be in the result, each once. */
  readonly lines: readonly string[];
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function createRandom(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

const lineCount = 30;

/** Passes where every block is whole and no conflict is left; the files lie in `src`. */
export const blockCheck =
  "! grep -rqE '^(<<<<<<<|>>>>>>>)' src && test \"$(cat src/* | grep -c '^BEGIN')\" -eq \"$(cat src/* | grep -c '^END')\"";

export function seededBase(): Record<string, string> {
  const names = Array.from({ length: 6 }, (_, at) => `src/file ${at} ü.txt`);
  return Object.fromEntries(
    names.map((name) => [name, Array.from({ length: lineCount }, (_, at) => `${name} ${at}\n`).join("")]),
  );
}

/** Eight changes: four touch a file of their own or a new one, four share files; most of those meet at the same line. */
export function seededChanges(seed: number): readonly SeededChange[] {
  const random = createRandom(seed);
  const base = seededBase();
  const names = Object.keys(base);
  const shared = names[Math.floor(random() * 2)] ?? "";
  const meeting = 5 + Math.floor(random() * 20);
  return Array.from({ length: 8 }, (_, at): SeededChange => {
    const task = `s${seed}-${at}`;
    const block = [`BEGIN ${task}`, `body ${task} ${random()}`, `END ${task}`];
    const insert = (name: string, line: number): FileChanges => {
      const lines = (base[name] ?? "").split("\n");
      return { [name]: [...lines.slice(0, line), ...block, ...lines.slice(line)].join("\n") };
    };
    if (at >= 4) {
      const line = random() < 0.7 ? meeting : Math.floor(random() * lineCount);
      return { task, files: insert(shared, line), lines: block };
    }
    const own = names[at + 2] ?? "";
    if (random() < 0.3)
      return { task, files: { [`src/new ${at}.txt`]: `${block.join("\n")}\n` }, lines: block };
    if (random() < 0.3) {
      const content = insert(own, 3)[own] ?? null;
      return { task, files: { [own]: null, [`src/moved ${at}.txt`]: content }, lines: block };
    }
    return { task, files: insert(own, Math.floor(random() * lineCount)), lines: block };
  });
}

/** Both sides of each conflict, one after the other. */
export function keepBoth(text: string): string {
  return text.replace(/^<{7} .*\n([\s\S]*?)^\|{7} .*\n[\s\S]*?^={7}\n([\s\S]*?)^>{7} .*\n/gm, "$1$2");
}

/** A resolver that keeps both sides of each file in conflict. */
export const keepsBothSides: ScriptedStep = {
  match: isResolver,
  times: "any",
  respond(request) {
    const directory = directoryOf(request);
    const [first] = request.messages;
    const text = JSON.stringify(first?.content);
    for (const [, path = ""] of text.matchAll(/\\n- ([^:]+): both changed it/g))
      change(directory, { [path]: keepBoth(readFileSync(join(directory, path), "utf8")) });
    return "resolved";
  },
};
