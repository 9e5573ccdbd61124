import { type Draft, draftOf, emptyDraft } from "./draft.ts";

const maxEntries = 500;

/** Earlier prompts, newest first; going back keeps the draft, coming forward again gives it back. */
export class PromptHistory {
  #entries: string[] = [];
  #at = -1;
  #isLoaded = false;
  #draft: Draft = emptyDraft;

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** What was sent in earlier sessions; what was sent in this one stays newer. */
  load(entries: readonly string[]): void {
    this.#isLoaded = true;
    this.#entries = [...new Set([...this.#entries, ...entries])].slice(0, maxEntries);
  }

  add(text: string): void {
    this.#entries = [text, ...this.#entries.filter((entry) => entry !== text)].slice(0, maxEntries);
    this.#at = -1;
  }

  get isBrowsing(): boolean {
    return this.#at >= 0;
  }

  older(current: Draft): Draft | undefined {
    const entry = this.#entries[this.#at + 1];
    if (entry === undefined) return undefined;
    if (this.#at === -1) this.#draft = current;
    this.#at += 1;
    return draftOf(entry);
  }

  newer(): Draft | undefined {
    if (this.#at < 0) return undefined;
    this.#at -= 1;
    const entry = this.#entries[this.#at];
    return entry === undefined ? this.#draft : draftOf(entry);
  }

  leave(): void {
    this.#at = -1;
  }

  /** The newest entry that holds the words, after `skip` others that do. */
  search(words: string, skip: number): string | undefined {
    const wanted = words.toLowerCase();
    if (wanted === "") return undefined;
    return this.#entries.filter((entry) => entry.toLowerCase().includes(wanted))[skip];
  }
}
