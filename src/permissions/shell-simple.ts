import type { Assignment, Command } from "unbash";
import { steeringReason, visitAssignment } from "./shell-assignments.ts";
import { type Flow, staying } from "./shell-directory.ts";
import { isSafeVariable } from "./shell-environment.ts";
import { visitWord } from "./shell-expansions.ts";
import { walkRedirections } from "./shell-redirections.ts";
import { runWords } from "./shell-run.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";
import { readWord, type Word } from "./shell-word.ts";

/** Walks one simple command: what is expanded in it, the files it opens, and what it runs. */
export function walkSimple(walk: Walk, command: Command, scene: Scene): Flow {
  const assignments = command.prefix.filter((part) => part.type === "Assignment");
  for (const assignment of assignments) visitAssignment(walk, assignment, scene);
  const words = readWords(walk, command, scene);
  const input = walkRedirections(walk, command.redirects, scene);
  if (hasHiddenDescriptor(command)) markOpaque(walk, "a line goes on between a number and its redirection");
  if (words.length === 0) return noteAssignments(walk, assignments, scene);
  const before = assignments.map(({ text }) => text);
  const written = [...before, ...words.map(({ source }) => source)].join(" ");
  const inside: Scene = {
    ...scene,
    outer: before.length === 0 ? scene.outer : [...scene.outer, written],
    because: scene.because ?? environmentReason(assignments),
  };
  return runWords(walk, words, { scene: inside, input });
}

function readWords(walk: Walk, command: Command, scene: Scene): Word[] {
  const words: Word[] = [];
  if (command.name === undefined) return words;
  visitWord(walk, command.name, scene);
  words.push(readWord(command.name));
  for (const argument of command.args) {
    if (argument.type === "Word") {
      visitWord(walk, argument, scene);
      words.push(readWord(argument));
    } else {
      visitAssignment(walk, argument, scene);
      words.push(assignedWord(argument));
    }
  }
  return words;
}

/** `1\` at the end of a line and `>x` on the next are one redirection for bash, a word and one for the parser. */
function hasHiddenDescriptor({ name, args, redirects }: Command): boolean {
  const words = name === undefined ? args : [name, ...args];
  return words.some(
    ({ text, end }) =>
      /^[\d{\w}\\\n]*\\\n/.test(text) && text.endsWith("\n") && redirects.some(({ pos }) => pos === end),
  );
}

/** `export A=b` has an assignment for an argument. */
function assignedWord({ text: source, name, value, append, index }: Assignment): Word {
  const word = value.type === "Word" ? readWord(value) : undefined;
  const plain = word?.literal === true && index === undefined;
  const text = plain ? `${name}${append === true ? "+" : ""}=${word.text}` : source;
  return { text, source, literal: plain, glob: false, loose: false, path: text, pathKnown: plain };
}

function environmentReason(assignments: readonly Assignment[]): string | undefined {
  const unsafe = assignments.find(({ name, append }) => !isSafeVariable(name) || append === true);
  return unsafe === undefined ? undefined : `the variable ${unsafe.name} may change what the command does`;
}

/** Assignments alone run nothing, but may steer what comes after them. */
function noteAssignments(walk: Walk, assignments: readonly Assignment[], scene: Scene): Flow {
  if (assignments.length === 0) return staying(scene.directories);
  const because = scene.because ?? steeringReason(assignments.map(({ name }) => name));
  const words = assignments.map(assignedWord);
  const written = assignments.map(({ text }) => text).join(" ");
  const plain = words.map(({ text }) => text).join(" ");
  walk.units.push({
    words: words.map(({ text, literal, glob }) => ({ text, literal, glob })),
    written,
    restrictTexts: [...new Set([plain, written, ...scene.outer])],
    readOnly: because === undefined,
    operands: [],
    ...(because === undefined ? { grantText: plain } : { because }),
  });
  return staying(scene.directories);
}
