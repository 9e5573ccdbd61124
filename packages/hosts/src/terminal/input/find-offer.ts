import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import { cutRow, cutText, padRow, type Row, span, textWidth } from "../screen/row.ts";
import { bold, combine, dim, inverse, plain } from "../screen/style.ts";
import type { SessionLibrary } from "../session/terminal-session.ts";

export interface CompletionItem {
  readonly value: string;
  readonly description?: string;
}

/** What is offered for a part of the draft. */
export interface Offer {
  readonly kind: "command" | "file";
  readonly start: number;
  readonly end: number;
  readonly items: readonly CompletionItem[];
}

export interface CompletionSources {
  readonly commands: () => readonly CompletionItem[];
  /** What is known of the files; asking loads them where they are not there yet. */
  readonly files: () => readonly string[];
}

const maxItems = 50;
const maxShown = 7;

/** What `/` at the start and `@` before a word offer; undefined where nothing fits. */
export function findOffer(text: string, cursor: number, sources: CompletionSources): Offer | undefined {
  const before = text.slice(0, cursor);
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command !== null) {
    const items = fuzzyFilter([...sources.commands()], command[1] ?? "", ({ value }) => value);
    return offer("command", { start: 0, end: endOfWord(text, cursor) }, items);
  }
  const file = /(?:^|\s)@("[^"]*|[^\s"]*)$/.exec(before);
  if (file === null) return undefined;
  const typed = file[1] ?? "";
  const query = typed.replace(/^"/, "");
  const start = cursor - typed.length;
  const paths = fuzzyFilter([...sources.files()], query, (path) => path);
  const items = paths.slice(0, maxItems).map((path) => ({ value: /\s/.test(path) ? `"${path}"` : path }));
  return offer("file", { start, end: endOfWord(text, cursor) }, items);
}

function offer(
  kind: Offer["kind"],
  range: Pick<Offer, "start" | "end">,
  items: readonly CompletionItem[],
): Offer | undefined {
  return items.length === 0 ? undefined : { kind, ...range, items: items.slice(0, maxItems) };
}

function endOfWord(text: string, cursor: number): number {
  const rest = /^[^\s]*/.exec(text.slice(cursor))?.[0] ?? "";
  return cursor + rest.length;
}

/** A window of the items around the selected one. */
export function offerRows({ items, kind }: Offer, selected: number, width: number): readonly Row[] {
  const first = Math.max(0, Math.min(selected - Math.floor(maxShown / 2), items.length - maxShown));
  const shown = items.slice(first, first + maxShown);
  const mark = kind === "command" ? "/" : "";
  const widest = Math.min(36, Math.max(...shown.map(({ value }) => textWidth(value) + mark.length)));
  const size = kind === "command" ? widest : Math.max(10, width - 4);
  const below = items.length - first - shown.length;
  const rest: readonly Row[] = below > 0 ? [[span(`  ↓ ${below} more`, dim)]] : [];
  const rows = shown.map(({ value, description }, at): Row => {
    const isSelected = first + at === selected;
    const name = span(cutText(`${mark}${value}`, size), combine(bold, isSelected ? inverse : plain));
    const more = description === undefined ? [] : [span(`  ${description}`, dim)];
    return cutRow([span("  "), ...padRow([name], kind === "command" ? size : 0), ...more], width);
  });
  return [...rows, ...rest];
}

/** How old the list of files may be before it is read again. */
const freshMs = 10_000;

/** The files that `@` offers: read when they are first asked for, and again when they may have changed. */
export class FileIndex {
  readonly #library: Pick<SessionLibrary, "files">;
  readonly #changed: () => void;
  #files: readonly string[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(library: Pick<SessionLibrary, "files">, changed: () => void) {
    this.#library = library;
    this.#changed = changed;
  }

  list(): readonly string[] {
    const now = performance.now();
    if (now - this.#readAt > freshMs) {
      this.#readAt = now;
      this.#library.files().then(
        (files) => {
          this.#files = files;
          this.#changed();
        },
        () => undefined,
      );
    }
    return this.#files;
  }
}
