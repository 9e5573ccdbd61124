import type { Assignment, Command, HereDoc, Redirection } from "unbash";
import { toOperands, writtenText } from "./create-unit.ts";
import { escapeDouble, unescapeDocument } from "./expand-braces.ts";
import { expandParameter } from "./expand-parameter.ts";
import { expandSingle, expandWord } from "./expand-word.ts";
import type { Scene, Step, Walk, Word } from "./model.ts";
import { isPlainSetting, isSafeVariable, isSteeringVariable, privateName } from "./private-name.ts";
import { type RunContext, runWords } from "./run-words.ts";
import { assign, heldBy, markOpaque, spend, staying, visitNested } from "./walk.ts";
import { plainWord, quoteWord } from "./word.ts";

/** What looking up the program and the folder of a command costs, in characters: a thousand of them are too many. */
const stepsOfCommand = 400;

/** Walks one simple command: what is expanded in it, the files it opens, and what it runs. */
export function walkCommand(walk: Walk, command: Command, scene: Scene): Step {
  walk.size += 1;
  spend(walk, stepsOfCommand);
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
    found: command.redirects.some(({ operator }) => operator.includes("<")) ? undefined : scene.found,
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
    ({ name, append, value, index }) =>
      append === true ||
      !(
        isSafeVariable(name) ||
        (isRead && name === "IFS") ||
        (index === undefined && value.type === "Word" && isPlainSetting(name, value.text))
      ),
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

interface WalkedRedirections {
  /** In shell syntax, each with a blank before it. */
  readonly text: string;
  /** Text that is fed to the command, as far as it is certain. */
  readonly input: readonly string[];
}

/** Notes the files that redirections open. */
export function walkRedirections(
  walk: Walk,
  redirections: readonly Redirection[],
  scene: Scene,
): WalkedRedirections {
  const input: string[] = [];
  const texts = redirections.map((redirection) => {
    const { descriptor } = redirection;
    if (descriptor?.type === "FileDescriptorVariable") markOpaque(walk, "a redirection sets a variable");
    const number = descriptor?.type === "FileDescriptor" ? String(descriptor.value) : "";
    switch (redirection.type) {
      case "HereDoc": {
        const document = walkDocument(walk, redirection, scene);
        if (document.text !== undefined) input.push(document.text);
        return ` ${number}${document.rendered}`;
      }
      case "HereString": {
        onlyInBash(walk, scene);
        if (redirection.target === undefined || redirection.target.text.startsWith("<"))
          markOpaque(walk, "a redirection has no target");
        const word =
          redirection.target === undefined ? undefined : expandSingle(walk, redirection.target, scene);
        if (word?.literal === true) input.push(word.value);
        return ` ${number}<<<${word?.rendered ?? ""}`;
      }
      case "Redirect": {
        if (redirection.target === undefined) {
          markOpaque(walk, "a redirection has no target");
          return "";
        }
        const word = expandSingle(walk, redirection.target, scene, "target");
        noteTarget(walk, redirection.operator, word, scene);
        // `< <(…)` without the blank is a here-document.
        const blank = /^[<>&]/.test(word.rendered) ? " " : "";
        return ` ${number}${redirection.operator}${blank}${word.rendered}`;
      }
      default:
        markOpaque(walk, "a redirection is not understood");
        return "";
    }
  });
  return { text: texts.join(""), input };
}

function onlyInBash(walk: Walk, { dialect }: Scene): void {
  if (dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
}

/** A here-document becomes a string of one line, so that nothing depends on where lines end. */
function walkDocument(
  walk: Walk,
  { body, closing, delimiter, operator }: HereDoc,
  scene: Scene,
): { readonly text?: string; readonly rendered: string } {
  if (closing === undefined) markOpaque(walk, "a here-document has no end");
  const strip = (text: string): string => (operator === "<<-" ? text.replace(/^\t+/gm, "") : text);
  if (delimiter?.quoted === true) {
    const text = strip(body.text);
    if (scene.dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
    return { text, rendered: documentString(quoteWord(text.replace(/\n$/, "")), text === "") };
  }
  if (scene.dialect === "sh" || (operator === "<<-" && body.parts !== undefined))
    markOpaque(walk, "a here-document is not understood");
  if (body.parts === undefined) {
    const text = unescapeDocument(strip(body.text));
    return { text, rendered: documentString(quoteWord(text.replace(/\n$/, "")), text === "") };
  }
  let rendered = "";
  for (const part of body.parts) {
    if (part.type === "Literal") rendered += escapeDouble(unescapeDocument(part.text));
    else if (
      part.type === "SimpleExpansion" ||
      part.type === "ParameterExpansion" ||
      part.type === "ArithmeticExpansion"
    ) {
      const piece = expandParameter(walk, part, scene);
      if (piece.type === "unknown") rendered += piece.rendered;
      else rendered += escapeDouble(piece.type === "home" ? piece.path : piece.text);
    } else if (part.type === "CommandExpansion" && part.script !== undefined) {
      rendered += `$( ${walk.walkScript(walk, part.script, { ...scene, substituted: true }).text}\n)`;
    } else {
      markOpaque(walk, "a here-document is not understood");
      visitNested(walk, part, scene);
    }
  }
  if (!rendered.endsWith("\n")) markOpaque(walk, "a here-document is not understood");
  return { rendered: `<<<"${rendered.replace(/\n$/, "")}"` };
}

function documentString(quoted: string, empty: boolean): string {
  return empty ? "</dev/null" : `<<<${quoted}`;
}

function noteTarget(walk: Walk, operator: string, word: Word, { state: { directories } }: Scene): void {
  const copies = operator === ">&" || operator === "<&";
  if (copies && word.literal && /^(?:\d+-?|-)$/.test(word.text)) return;
  if (copies && !(word.literal && operator === ">&"))
    markOpaque(walk, "a redirection is only known when it runs");
  if (/^\/dev\/(?:tcp|udp)\//.test(word.text) || (!word.literal && /\/dev\/(?:tcp|udp)/.test(word.text)))
    markOpaque(walk, "a redirection opens a network connection");
  const target = { ...word, pathKnown: word.pathKnown && !word.glob && !word.loose };
  if (operator.startsWith("<"))
    walk.redirects.push(...toOperands([{ word: target, use: "read" }], directories));
  if (operator !== "<" && operator !== "<&")
    walk.redirects.push(...toOperands([{ word: target, use: "write" }], directories));
}
