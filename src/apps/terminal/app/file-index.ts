import type { SessionLibrary } from "../session/terminal-session.ts";

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
