export interface CachedPage {
  readonly url: string;
  readonly status: number;
  readonly mediaType: string;
  readonly bytes: number;
  readonly text: string;
  readonly title?: string;
}

/** Pages of this session by address, for a while. */
export interface PageCache {
  get(url: string): CachedPage | undefined;
  set(url: string, page: CachedPage): void;
}

export function createPageCache(
  now: () => number,
  { keepMs = 15 * 60_000, maxPages = 50, maxCharacters = 10_000_000 } = {},
): PageCache {
  const pages = new Map<string, { readonly page: CachedPage; readonly until: number }>();
  let characters = 0;
  const forget = (url: string) => {
    characters -= pages.get(url)?.page.text.length ?? 0;
    pages.delete(url);
  };
  return {
    get(url) {
      const found = pages.get(url);
      if (found !== undefined && found.until <= now()) forget(url);
      return pages.get(url)?.page;
    },
    set(url, page) {
      forget(url);
      if (page.text.length > maxCharacters) return;
      pages.set(url, { page, until: now() + keepMs });
      characters += page.text.length;
      for (const oldest of pages.keys()) {
        if (pages.size <= maxPages && characters <= maxCharacters) return;
        forget(oldest);
      }
    },
  };
}
