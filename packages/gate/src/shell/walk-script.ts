import type {
  AndOr,
  Assignment,
  Command,
  CommandNode,
  CompoundList,
  For,
  HereDoc,
  If,
  ParsedScript,
  Pipeline,
  PipelineNode,
  Redirection,
  Statement,
  SyntaxNode,
  Word as SyntaxWord,
  TestExpression,
  While,
} from "unbash";
import { toOperands, writtenText } from "./create-unit.ts";
import { expandParameter } from "./expand-parameter.ts";
import { escapeDouble, expandSingle, expandWord, unescapeDocument } from "./expand-word.ts";
import type { Flow, Scene, ShellUnit, State, Step, Walk, Word } from "./model.ts";
import { isPlainSetting, isSafeVariable, isSteeringVariable, privateName } from "./private-name.ts";
import { namesOf } from "./programs/judge-find.ts";
import { arithmeticText, renderArithmetic, renderPart } from "./render-arithmetic.ts";
import { type RunContext, runWords } from "./run-words.ts";
import {
  assign,
  assignedNames,
  either,
  heldBy,
  isNumber,
  lost,
  markOpaque,
  spend,
  staying,
  visitNested,
} from "./walk.ts";
import { plainWord, quoteWord } from "./word.ts";

/** Walks all commands of a script in their order; where the shell is afterwards matters only for `eval`. */
export function walkScript(walk: Walk, script: ParsedScript, scene: Scene): Step {
  if (script.errors !== undefined && script.errors.length > 0)
    markOpaque(walk, "it is not valid shell syntax");
  return walkStatements(walk, script.commands, scene);
}

function walkList(walk: Walk, list: CompoundList, scene: Scene): Step {
  return walkStatements(walk, list.commands, scene);
}

function walkStatements(walk: Walk, statements: readonly Statement[], scene: Scene): Step {
  let flow = staying(scene.state);
  const texts: string[] = [];
  for (const { command, background } of statements) {
    spend(walk, 1 + scene.state.variables.size);
    const state = either(flow.success, flow.failure);
    const step = walkNode(walk, command, { ...scene, state });
    spend(walk, step.text.length);
    texts.push(background === true ? `${step.text} &` : step.text);
    flow = background === true ? staying(state) : step.flow;
  }
  return { flow, text: texts.join("\n") };
}

function walkNode(walk: Walk, node: PipelineNode | AndOr, scene: Scene): Step {
  switch (node.type) {
    case "AndOr":
      return walkAndOr(walk, node, scene);
    case "Pipeline":
      return walkPipeline(walk, node, scene);
    default:
      return walkAny(walk, node, scene);
  }
}

function walkAndOr(walk: Walk, { commands, operators }: AndOr, scene: Scene): Step {
  let flow = staying(scene.state);
  let text = "";
  commands.forEach((command, at) => {
    const operator = operators[at - 1];
    const state = operator === "||" ? flow.failure : flow.success;
    const step = walkNode(walk, command, { ...scene, state });
    spend(walk, 1 + state.variables.size);
    text += operator === undefined ? step.text : ` ${operator} ${step.text}`;
    if (operator === undefined) flow = step.flow;
    else if (operator === "&&")
      flow = { success: step.flow.success, failure: either(flow.failure, step.flow.failure) };
    else flow = { success: either(flow.success, step.flow.success), failure: step.flow.failure };
  });
  return { flow, text };
}

function walkPipeline(walk: Walk, { prefixes, commands, operators }: Pipeline, scene: Scene): Step {
  let found: Scene["found"];
  const steps = commands.map((command, at) => {
    const before = walk.units.length;
    const step = walkAny(walk, command, { ...scene, found });
    found = operators[at] === "|" ? foundNames(walk.units.slice(before)) : undefined;
    return step;
  });
  const before = prefixes.map((prefix) => {
    if (prefix.type === "Negation") return "! ";
    return prefix.posix === undefined ? "time " : "time -p ";
  });
  const text =
    before.join("") +
    steps.map((step, at) => (at === 0 ? step.text : ` ${operators[at - 1]} ${step.text}`)).join("");
  const only = steps.length === 1 ? steps[0]?.flow : undefined;
  if (only === undefined) return { flow: staying(scene.state), text };
  const negated = prefixes.filter(({ type }) => type === "Negation").length % 2 === 1;
  return { flow: negated ? { success: only.failure, failure: only.success } : only, text };
}

/** What a search prints that runs alone and prints names only. */
function foundNames(units: readonly ShellUnit[]): Scene["found"] {
  const [unit] = units;
  const program = unit?.words[0]?.text ?? "";
  if (unit === undefined || units.length !== 1 || !unit.readOnly) return undefined;
  const options = unit.words.slice(1).map(({ text }) => text);
  const isSearch =
    program === "find"
      ? !options.some((text) => /^-(?:printf|ls|exec.*|ok.*|.?newer.*|samefile|files0-from)$/.test(text))
      : /^(?:grep|rg)$/.test(program) &&
        options.some((text) => /^-[a-zA-Z]*l$|^--files(?:-with-matches)?$/.test(text));
  const places = unit.operands.filter(({ use }) => use === "read");
  if (!isSearch || places.length === 0 || places.some(({ literal }) => !literal)) return undefined;
  const names = program === "find" ? namesOf(unit.words.slice(1)) : {};
  return {
    places: places.map((place) => ({ ...place, ...names })),
    isExact: program === "find" && options.includes("-print0"),
  };
}

function walkAny(walk: Walk, node: CommandNode, scene: Scene): Step {
  spend(walk, 1);
  switch (node.type) {
    case "Command":
      return walkCommand(walk, node, scene);
    case "Redirected": {
      const { text } = walkRedirections(walk, node.redirects, scene);
      const { flow, text: command } = walkAny(walk, node.command, { ...scene, found: undefined });
      // Where a file cannot be opened, nothing runs.
      const failure = either(flow.failure, scene.state);
      return { flow: { success: flow.success, failure }, text: `${command}${text}` };
    }
    case "Subshell":
      return { flow: staying(scene.state), text: `( ${walkList(walk, node.body, scene).text}\n)` };
    case "BraceGroup": {
      const step = walkList(walk, node.body, scene);
      return { flow: step.flow, text: `{ ${step.text}\n}` };
    }
    case "If":
      return walkIf(walk, node, scene);
    case "While":
      return walkWhile(walk, node, scene);
    case "For":
      return walkFor(walk, node, scene);
    case "Case":
      return walkCase(walk, node, scene);
    case "TestCommand":
      onlyInBash(walk, scene);
      return { flow: staying(scene.state), text: walkTest(walk, node.expression, scene) };
    case "ArithmeticCommand":
      return walkArithmetic(walk, node, scene);
    case "ArithmeticFor":
      return walkCountingFor(walk, node, scene);
    default:
      return walkUnknown(walk, node, scene);
  }
}

const unknownKinds: ReadonlyMap<string, string> = new Map([
  ["Function", "it defines a function"],
  ["Coproc", "it starts a coprocess"],
  ["Select", "it asks for a choice"],
]);

/** Commands in what is not understood are still seen by deny rules. */
function walkUnknown(walk: Walk, node: CommandNode, scene: Scene): Step {
  markOpaque(walk, unknownKinds.get(node.type) ?? "it has a kind of command that is not understood");
  const inside = { ...scene, state: lost(scene.state) };
  if (node.type === "Select") for (const word of node.wordlist ?? []) expandWord(walk, word, scene);
  if (node.type === "Function" || node.type === "Coproc" || node.type === "Select") {
    if (node.body.type === "CompoundList") walkList(walk, node.body, inside);
    else walkAny(walk, node.body, inside);
  }
  return { flow: staying(inside.state), text: "" };
}

function onlyInBash(walk: Walk, { dialect }: Scene): void {
  if (dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
}

function walkArithmetic(
  walk: Walk,
  node: Extract<CommandNode, { type: "ArithmeticCommand" }>,
  scene: Scene,
): Step {
  onlyInBash(walk, scene);
  visitNested(walk, node, scene);
  const rendered = renderArithmetic(node.body, scene.state);
  if (rendered === undefined) markOpaque(walk, "an arithmetic expression evaluates text");
  return { flow: staying(withNumbers(scene.state, rendered?.assigned)), text: rendered?.text ?? "" };
}

function withNumbers(state: State, names: readonly string[] = []): State {
  if (names.length === 0) return state;
  const variables = new Map(state.variables);
  for (const name of names) variables.set(name, { type: "number" });
  return { ...state, variables };
}

function walkIf(walk: Walk, node: If, scene: Scene): Step {
  let left: State | undefined;
  let text = "";
  let test: Flow = staying(scene.state);
  const branch = (clause: CompoundList, body: CompoundList, word: string): void => {
    const tested = walkList(walk, clause, { ...scene, state: test.failure });
    test = tested.flow;
    const step = walkList(walk, body, { ...scene, state: test.success });
    const after = either(step.flow.success, step.flow.failure);
    left = left === undefined ? after : either(left, after);
    text += `${word} ${tested.text}\nthen ${step.text}\n`;
  };
  branch(node.clause, node.then, "if");
  for (const { clause, then: body } of node.elif) branch(clause, body, "elif");
  const last =
    node.else === undefined ? undefined : walkList(walk, node.else, { ...scene, state: test.failure });
  if (last !== undefined) text += `else ${last.text}\n`;
  const end = last === undefined ? test.failure : either(last.flow.success, last.flow.failure);
  return { flow: staying(either(left ?? scene.state, end)), text: `${text}fi` };
}

/** The scene at the start of any iteration: what the body sets is not known, and it may have moved. */
function loopScene(walk: Walk, scene: Scene, body: readonly SyntaxNode[]): Scene {
  const { names, moves } = assignedNames(walk, body, scene.state);
  const variables = new Map(scene.state.variables);
  for (const [name, value] of names) variables.set(name, value);
  const { directories } = scene.state;
  if (!moves) return { ...scene, state: { ...scene.state, variables }, settled: true };
  return { ...scene, state: { directories: [...new Set([...directories, "unknown"])], variables } };
}

function walkWhile(walk: Walk, { kind, clause, body }: While, scene: Scene): Step {
  const inside = loopScene(walk, scene, [clause, body]);
  const test = walkList(walk, clause, inside);
  const tested = either(test.flow.success, test.flow.failure);
  const step = walkList(walk, body, { ...inside, state: tested });
  const after = either(tested, either(step.flow.success, step.flow.failure));
  return { flow: staying(after), text: `${kind} ${test.text}\ndo ${step.text}\ndone` };
}

const maxIterations = 100;
const maxCommands = 400;

/** A loop over words that are known is the sequence of its iterations. */
function walkFor(walk: Walk, node: For, scene: Scene): Step {
  const words = (node.wordlist ?? []).flatMap((word) => expandWord(walk, word, scene));
  if (node.wordlist === undefined) markOpaque(walk, "a loop goes over arguments that are not known");
  const name = node.name.value;
  const isKnown = words.every(({ literal }) => literal) && words.length <= maxIterations;
  if (!isKnown || leavesLoop(walk, node.body) || readsStatus(walk, node.body.commands[0]))
    return walkUnknownFor(walk, node, words, scene);
  let state = scene.state;
  const texts: string[] = [];
  for (const { value } of words) {
    if (walk.size > maxCommands) {
      markOpaque(walk, "its loops run too many commands");
      break;
    }
    const set = assign(walk, name, { type: "text", text: value }, { ...scene, state });
    const step = walkList(walk, node.body, { ...scene, state: set });
    state = either(step.flow.success, step.flow.failure);
    texts.push(`${privateName(name)}=${quoteWord(value)}\n${step.text}`);
  }
  return { flow: staying(state), text: texts.length === 0 ? ":" : `{ ${texts.join("\n")}\n}` };
}

/** `for ((i=0; i<3; i++))`: its variables are numbers before it, and nothing in it makes them anything else. */
function walkCountingFor(
  walk: Walk,
  node: Extract<CommandNode, { type: "ArithmeticFor" }>,
  scene: Scene,
): Step {
  onlyInBash(walk, scene);
  for (const part of [node.initialize, node.test, node.update])
    if (part !== undefined) visitNested(walk, part, scene);
  const read = (part: typeof node.test, state: State) => {
    const text = part === undefined ? "" : arithmeticText(part);
    return text === undefined ? undefined : renderPart(text, state);
  };
  const first = read(node.initialize, scene.state);
  const state = withNumbers(scene.state, first?.assigned);
  const inside = loopScene(walk, { ...scene, state }, [node]);
  const test = read(node.test, inside.state);
  const update = read(node.update, inside.state);
  const step = walkList(walk, node.body, inside);
  if (first === undefined || test === undefined || update === undefined)
    markOpaque(walk, "a loop that counts evaluates text");
  const header = [first, test, update].map((part) => part?.expression ?? "").join("; ");
  const after = either(inside.state, either(step.flow.success, step.flow.failure));
  return { flow: staying(after), text: `for ((${header}))\ndo ${step.text}\ndone` };
}

function walkUnknownFor(walk: Walk, node: For, words: readonly Word[], scene: Scene): Step {
  const name = node.name.value;
  const value = words.every(
    ({ literal, numeric, text }) => numeric === true || (literal && isNumber({ type: "text", text })),
  );
  const before = assign(walk, name, { type: value ? "number" : "unknown" }, scene);
  const inside = loopScene(walk, { ...scene, state: before }, [node.body]);
  const step = walkList(walk, node.body, inside);
  const list = words.map(({ rendered }) => ` ${rendered}`).join("");
  // `break` leaves it in the middle of an iteration.
  const after = either(inside.state, either(step.flow.success, step.flow.failure));
  return {
    flow: staying(either(before, after)),
    text: `for ${privateName(name)} in${list}\ndo ${step.text}\ndone`,
  };
}

/** Whether `break` or `continue` is in the body, which a sequence cannot do. */
function leavesLoop(walk: Walk, node: SyntaxNode): boolean {
  spend(walk, 1);
  if (node.type === "Command") return /^(?:break|continue|return|exit)$/.test(node.name?.value ?? "");
  let found = false;
  walk.grammar.forEachChild(node, (child) => {
    found ||= leavesLoop(walk, child);
  });
  return found;
}

/** Whether `$?` is read, which the assignment before an iteration in a sequence would change. */
function readsStatus(walk: Walk, node: SyntaxNode | undefined): boolean {
  if (node === undefined) return false;
  spend(walk, 1);
  if ("text" in node && /^\$\{?[#!]?\?/.test(node.text)) return true;
  let found = false;
  walk.grammar.forEachChild(node, (child) => {
    found ||= readsStatus(walk, child);
  });
  return found;
}

function walkCase(walk: Walk, { word, items }: Extract<CommandNode, { type: "Case" }>, scene: Scene): Step {
  const subject = expandSingle(walk, word, scene);
  let left = scene.state;
  let text = `case ${subject.rendered} in\n`;
  for (const { pattern, body, terminator } of items) {
    const patterns = pattern.map((choice) =>
      casePattern(walk, choice.text, expandSingle(walk, choice, scene)),
    );
    const step = walkList(walk, body, { ...scene, state: left });
    left = either(left, either(step.flow.success, step.flow.failure));
    text += `(${patterns.join("|")}) ${step.text}\n${terminator ?? ";;"}\n`;
  }
  return { flow: staying(left), text: `${text}esac` };
}

/** A pattern that bash reads as written, or a word. */
function casePattern(walk: Walk, source: string, word: Word): string {
  if (/^[\w./*?@%+:,-]+$/.test(source)) return source;
  if (/[*?[\]]/.test(source.replace(/\\[\s\S]|'[^']*'|"[^"]*"/g, "")))
    markOpaque(walk, "a pattern is not understood");
  return word.literal ? quoteWord(word.value) : word.rendered;
}

/** What looking up the program and the folder of a command costs, in characters: a thousand of them are too many. */
const stepsOfCommand = 400;

/** Walks one simple command: what is expanded in it, the files it opens, and what it runs. */
function walkCommand(walk: Walk, command: Command, scene: Scene): Step {
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
function walkRedirections(
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

const unary = /^-[abcdefghknoprstuwxzGLNOS]$/;
const textComparison = new Set(["=", "==", "!="]);
const orderComparison = new Set(["<", ">", "-nt", "-ot", "-ef"]);
const numberComparison = /^-(?:eq|ne|lt|le|gt|ge)$/;

/** Renders `[[ … ]]`; operators that evaluate text are opaque. */
function walkTest(walk: Walk, expression: TestExpression, scene: Scene): string {
  return `[[ ${render(walk, expression, scene)} ]]`;
}

function render(walk: Walk, node: TestExpression, scene: Scene): string {
  switch (node.type) {
    case "TestUnary":
      if (node.operator === "-v" || node.operator === "-R")
        markOpaque(walk, "the test evaluates a variable's name");
      else if (!unary.test(node.operator)) markOpaque(walk, "a test is not understood");
      return `${node.operator} ${operand(walk, node.operand, scene)}`;
    case "TestBinary":
      return renderBinary(walk, node, scene);
    case "TestLogical":
      return node.operands.map((part) => render(walk, part, scene)).join(` ${node.operator} `);
    case "TestNot":
      return `${"! ".repeat(node.negations.length)}${render(walk, node.operand, scene)}`;
    case "TestGroup":
      return `( ${render(walk, node.expression, scene)} )`;
    default:
      markOpaque(walk, "a test is not understood");
      return "";
  }
}

function renderBinary(
  walk: Walk,
  { operator, left, right }: Extract<TestExpression, { type: "TestBinary" }>,
  scene: Scene,
): string {
  if (numberComparison.test(operator))
    return `${number(walk, left, scene)} ${operator} ${number(walk, right, scene)}`;
  if (!textComparison.has(operator) && !orderComparison.has(operator))
    markOpaque(walk, "a test is not understood");
  const first = operand(walk, left, scene);
  const isPattern = textComparison.has(operator) && /^[\w./*?@%+:,-]+$/.test(right.text);
  if (isPattern) return `${first} ${operator} ${right.text}`;
  if (textComparison.has(operator) && /[*?[\]()|]/.test(right.text.replace(/\\[\s\S]|'[^']*'|"[^"]*"/g, "")))
    markOpaque(walk, "a pattern is not understood");
  return `${first} ${operator} ${operand(walk, right, scene)}`;
}

function operand(walk: Walk, word: SyntaxWord, scene: Scene): string {
  const expanded = expandSingle(walk, word, scene);
  return expanded.literal ? quoteOperand(expanded.value) : expanded.rendered;
}

/** Bash takes `-n` without quotes for an operator, wherever it is. */
function quoteOperand(text: string): string {
  return text.startsWith("-") ? `'${text.replaceAll("'", "'\\''")}'` : quoteWord(text);
}

/** Bash evaluates the operands of a comparison of numbers as arithmetic. */
function number(walk: Walk, word: SyntaxWord, scene: Scene): string {
  const { literal, text, numeric, rendered } = expandSingle(walk, word, scene);
  const isCertain = numeric === true || (literal && /^-?\d+$/.test(text));
  if (!isCertain) markOpaque(walk, "a comparison of numbers evaluates text");
  return rendered;
}
