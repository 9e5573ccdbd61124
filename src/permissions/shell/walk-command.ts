import type { Assignment, Command } from "unbash";
import { assign, heldBy } from "./assign.ts";
import { writtenText } from "./create-unit.ts";
import { expandSingle, expandWord } from "./expand-word.ts";
import { isSafeVariable, isSteeringVariable, privateName } from "./private-name.ts";
import { type RunContext, runWords } from "./run-words.ts";
import { staying } from "./state.ts";
import { markOpaque, type Scene, type Step, type Walk } from "./walk.ts";
import { walkRedirections } from "./walk-redirections.ts";
import { plainWord, quoteWord, type Word } from "./word.ts";

/** Walks one simple command: what is expanded in it, the files it opens, and what it runs. */
export function walkCommand(walk: Walk, command: Command, scene: Scene): Step {
  walk.size += 1;
  const assignments = command.prefix.filter((part) => part.type === "Assignment");
  const isAlone = command.name === undefined;
  let state = scene.state;
  const assigned = assignments.map((assignment) => {
    const word = assignedWord(walk, assignment, { ...scene, state }, isAlone);
    if (isAlone) state = assign(walk, assignment.name, word.holds, { ...scene, state });
    return word;
  });
  const words = expandWords(walk, command, scene);
  const redirections = walkRedirections(walk, command.redirects, scene);
  if (hasHiddenDescriptor(command)) markOpaque(walk, "a line continues between a number and its redirection");
  const before = assigned.map(({ rendered }) => `${rendered} `).join("");
  if (words.length === 0) {
    if (command.name !== undefined) markOpaque(walk, "which program runs is only known when it runs");
    noteAssignments(walk, assigned, scene);
    return { flow: staying(state), text: `${before.trimEnd()}${redirections.text}`.trim() || ":" };
  }
  const written = [...assigned.map(({ source }) => source), writtenText(words)].join(" ");
  const inside: Scene = {
    ...scene,
    outer: assigned.length === 0 ? scene.outer : [...scene.outer, written],
    reason: scene.reason ?? environmentReason(assignments, words),
  };
  const context: RunContext = { scene: inside, input: redirections.input };
  const ran = runWords(walk, words, context);
  return { flow: ran.flow, text: `${before}${ran.text}${redirections.text}` };
}

function expandWords(walk: Walk, command: Command, scene: Scene): Word[] {
  if (command.name === undefined) return [];
  if (command.name.parts?.some(({ type }) => type === "Glob") === true)
    markOpaque(walk, "which program runs is only known when it runs");
  const words = expandWord(walk, command.name, scene);
  const written = [command.name, ...command.args];
  // The parser ends a word at a process substitution, where bash continues.
  if (written.some(({ pos }, at) => pos === written[at - 1]?.end))
    markOpaque(walk, "it is not clear where a word ends");
  for (const argument of command.args) {
    if (argument.type === "Word") words.push(...expandWord(walk, argument, scene));
    else words.push(assignedWord(walk, argument, scene, false));
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

interface AssignedWord extends Word {
  readonly name: string;
  readonly holds: ReturnType<typeof heldBy>;
}

/** An assignment as a word: alone it sets a private variable, before a command and after `export` a real one. */
function assignedWord(walk: Walk, assignment: Assignment, scene: Scene, isAlone: boolean): AssignedWord {
  const { text: source, name, value, append, index } = assignment;
  if (index !== undefined) {
    expandSingle(walk, index, scene);
    if (!/^\d+$/.test(index.text)) markOpaque(walk, "an array subscript is evaluated");
  }
  if (scene.dialect === "sh" && (index !== undefined || append === true || value.type === "ArrayValue"))
    markOpaque(walk, "not every sh has arrays");
  const target = isAlone ? privateName(name) : name;
  const sign = append === true ? "+=" : "=";
  const start = `${target}${index === undefined ? "" : `[${index.text}]`}${sign}`;
  const unknown = { type: "unknown" } as const;
  const common = { ...plainWord(source), name, source, literal: false, pathKnown: false };
  if (value.type === "ArrayValue") {
    // Bash 5.2 reads such a substitution twice and may lose quotes, and then takes the next lines for commands.
    if (scene.substituted === true) markOpaque(walk, "an array is set in a substitution");
    if (!isAlone) markOpaque(walk, "an array is set where a command runs");
    const elements = value.elements.flatMap((element) => {
      if (element.text.startsWith("[")) markOpaque(walk, "an array subscript is evaluated");
      return expandWord(walk, element, scene);
    });
    const rendered = `${start}(${elements.map((element) => element.rendered).join(" ")})`;
    return { ...common, rendered, holds: unknown };
  }
  const word = expandSingle(walk, value, scene);
  const isPlain = word.literal && index === undefined;
  const isCertain = isPlain && append !== true;
  const text = isPlain ? `${name}${sign}${word.text}` : source;
  const plain = isPlain ? { ...plainWord(text), source } : common;
  return {
    ...plain,
    name,
    rendered: `${start}${word.literal ? quoteWord(word.value) : word.rendered}`,
    holds: isCertain || (!word.literal && append !== true && index === undefined) ? heldBy(word) : unknown,
    ...(word.environment !== undefined && { environment: word.environment }),
  };
}

/** `IFS= read` splits lines in its own way and steers nothing else. */
function environmentReason(assignments: readonly Assignment[], words: readonly Word[]): string | undefined {
  const isRead = words[0]?.literal === true && words[0].text === "read";
  const unsafe = assignments.find(
    ({ name, append }) => append === true || !(isSafeVariable(name) || (isRead && name === "IFS")),
  );
  return unsafe === undefined ? undefined : `the variable ${unsafe.name} may change what the command does`;
}

/** Assignments alone run nothing. */
function noteAssignments(walk: Walk, words: readonly AssignedWord[], scene: Scene): void {
  if (words.length === 0) return;
  const steering = words.find(({ name }) => isSteeringVariable(name));
  const reason =
    scene.reason ??
    (steering === undefined ? undefined : `the variable ${steering.name} changes what commands do`);
  const written = words.map(({ source }) => source).join(" ");
  const plain = words.map(({ text }) => text).join(" ");
  walk.units.push({
    words: words.map(({ text, literal, glob }) => ({ text, literal, glob })),
    written,
    restrictTexts: [...new Set([plain, written, ...scene.outer])],
    readOnly: reason === undefined && words.every(({ environment }) => environment === undefined),
    obeysDirectory: false,
    directories: scene.state.directories,
    operands: [],
    ...(reason === undefined ? { grantText: plain } : { reason }),
  });
}
