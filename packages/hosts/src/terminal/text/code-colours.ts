import { languageOf } from "../../shared/language-of.ts";
import { type Row, type Span, span } from "../screen/row.ts";
import { bold, colours, combine, italic, type Style } from "../screen/style.ts";
import type { SessionEvent } from "../session/terminal-session.ts";
import type { Highlighter } from "./create-highlighter.ts";

type CodeTree = ReturnType<Highlighter["highlight"]>;
type CodeNode = CodeTree | CodeTree["children"][number];

/** Code that arrives line by line. */
export interface CodeStream {
  /** The next lines, which are complete; several together are read in less than half the time. */
  take(lines: readonly string[]): readonly Row[];
  /** The line that is being written; asked for each frame, read again when it has changed. */
  look(line: string): Row;
}

interface Split {
  readonly rows: readonly Row[];
  /** The line since which a comment, a text or the like is open at the end. */
  readonly openFrom: number;
}

const maxCharacters = 60_000;
const maxLine = 1_000;
/** Of a comment or text that is longer, only its beginning and its end are read again with each line. */
const maxOpenLines = 24;

/** Colours of code. What finds them is loaded with the first code that is shown; before that, and where it is unknown, there are none. */
export class CodeColours {
  readonly #isOn: boolean;
  #highlighter: Highlighter | undefined;
  #loading: Promise<void> | undefined;
  #isTried = false;
  /** The last line of the text being streamed, as far as it has come. */
  #line = "";

  constructor(options: { readonly isOn: boolean }) {
    this.#isOn = options.isOn;
  }

  /** Whether the event shows code that can only be coloured after `load`. */
  isNeededFor(event: SessionEvent): boolean {
    if (!this.#isOn || this.#isTried) return false;
    if (event.type !== "text") return this.#holdsCode(event);
    const text = this.#line + event.text;
    this.#line = text.slice(text.lastIndexOf("\n") + 1).slice(0, maxFence);
    return fencePattern.test(text);
  }

  /** Resolves when it is loaded; where that fails, code has no colours. */
  load(): Promise<void> {
    this.#loading ??= import("./create-highlighter.ts")
      .then(({ createHighlighter }) => {
        this.#highlighter = createHighlighter();
      })
      .catch(() => undefined)
      .finally(() => {
        this.#isTried = true;
      });
    return this.#loading;
  }

  /** The lines of a whole code; undefined where it has no colours. */
  lines(code: string, language: string | undefined): readonly Row[] | undefined {
    if (language === undefined || code.length > maxCharacters || !this.#knows(language)) return undefined;
    return this.#split(code, language).rows;
  }

  ofFile(code: string, file: string): readonly Row[] | undefined {
    return this.lines(code, languageOf(file));
  }

  /** Undefined where the language is not known. */
  stream(language: string): CodeStream | undefined {
    if (!this.#knows(language)) return undefined;
    // The lines of a comment, a text or the like that has begun and not ended.
    let open: readonly string[] = [];
    let looked: { readonly line: string; readonly row: Row } | undefined;
    const read = (lines: readonly string[]): Split => {
      const short = lines.map((line) => (line.length > maxLine ? "" : line));
      const { rows, openFrom } = this.#split([...open, ...short, ""].join("\n"), language);
      const own = lines.map((line, at) =>
        line.length > maxLine ? [span(line)] : (rows[open.length + at] ?? [span(line)]),
      );
      return { rows: own, openFrom };
    };
    return {
      take(lines) {
        looked = undefined;
        if (lines.length === 0) return [];
        const { rows, openFrom } = read(lines);
        open = [...open, ...lines].slice(openFrom);
        if (open.length > maxOpenLines) open = [...open.slice(0, 1), ...open.slice(-maxOpenLines / 2)];
        return rows;
      },
      look(line) {
        if (looked?.line !== line) looked = { line, row: read([line]).rows[0] ?? [span(line)] };
        return looked.row;
      },
    };
  }

  #knows(language: string): boolean {
    return this.#highlighter?.registered(language.toLowerCase()) === true;
  }

  #split(code: string, language: string): Split {
    const tree = this.#highlighter?.highlight(language.toLowerCase(), code);
    const rows: Span[][] = [[]];
    let openFrom = 0;
    const visit = (node: CodeNode, style: Style, depth: number): void => {
      const named = styleOf(node);
      const own = named === "outside" ? 0 : combine(style, named);
      if ("children" in node) for (const child of node.children) visit(child, own, depth + 1);
      if (node.type !== "text") return;
      for (const [at, line] of node.value.split("\n").entries()) {
        if (at > 0) {
          rows.push([]);
          if (depth <= 1) openFrom = rows.length - 1;
        }
        if (line !== "") rows.at(-1)?.push(span(line, style));
      }
    };
    if (tree !== undefined) visit(tree, 0, 0);
    return { rows, openFrom };
  }

  #holdsCode(event: SessionEvent): boolean {
    switch (event.type) {
      case "conversation-opened":
        return event.earlier.some(
          (entry) =>
            (entry.type === "text" && fencePattern.test(entry.text)) ||
            (entry.type === "result" && entry.result.diff !== undefined),
        );
      case "call-finished":
        return event.result.diff !== undefined;
      case "question-asked":
        return event.question.kind === "plan"
          ? fencePattern.test(event.question.plan)
          : event.question.kind === "permission" && event.question.diff !== undefined;
      default:
        return false;
    }
  }
}

/** A code block whose language is named. */
const fencePattern = /^[ \t]*(?:`{3,}|~{3,})[ \t]*\w/m;
const maxFence = 80;

function styleOf(node: CodeNode): Style | "outside" {
  const names = node.type === "element" ? node.properties.className : undefined;
  if (!Array.isArray(names)) return 0;
  for (const name of names) {
    const style = styles.get(String(name));
    if (style !== undefined) return style;
  }
  return 0;
}

/** `outside` is code again within a text. */
const styles: ReadonlyMap<string, Style | "outside"> = new Map<string, Style | "outside">([
  ["hljs-keyword", colours.keyword],
  ["hljs-literal", colours.number],
  ["hljs-number", colours.number],
  ["hljs-string", colours.string],
  ["hljs-regexp", colours.string],
  ["hljs-char", colours.string],
  ["hljs-comment", colours.comment],
  ["hljs-quote", colours.comment],
  ["hljs-doctag", colours.comment | italic],
  ["hljs-title", colours.title],
  ["hljs-function", 0],
  ["hljs-section", colours.title | bold],
  ["hljs-type", colours.type],
  ["hljs-attr", colours.attribute],
  ["hljs-attribute", colours.attribute],
  ["hljs-property", colours.attribute],
  ["hljs-variable", colours.attribute],
  ["hljs-template-variable", colours.attribute],
  ["hljs-params", 0],
  ["hljs-subst", "outside"],
  ["hljs-built_in", colours.builtIn],
  ["hljs-symbol", colours.builtIn],
  ["hljs-bullet", colours.builtIn],
  ["hljs-link", colours.link],
  ["hljs-meta", colours.builtIn],
  ["hljs-name", colours.keyword],
  ["hljs-tag", 0],
  ["hljs-selector-tag", colours.keyword],
  ["hljs-selector-id", colours.title],
  ["hljs-selector-class", colours.title],
  ["hljs-selector-attr", colours.attribute],
  ["hljs-selector-pseudo", colours.builtIn],
  ["hljs-addition", colours.added],
  ["hljs-deletion", colours.removed],
  ["hljs-emphasis", italic],
  ["hljs-strong", bold],
]);
