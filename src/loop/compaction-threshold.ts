/** What settings and variables say about compaction. */
export interface CompactionSettings {
  /** Of the window, in percent; can only lower the usual share. */
  readonly percent?: number | undefined;
  /** Windows that compaction reckons with in place of the model's own; only smaller ones count. */
  readonly windows?: readonly (number | undefined)[];
  /** False: the conversation is compacted only when somebody asks for it. */
  readonly automatic: boolean;
}

const defaultPercent = 95;

/** How full a conversation may be, in tokens, before it is compacted by itself; undefined where it never is. */
export function compactionThreshold(
  contextWindow: number,
  { percent = defaultPercent, windows = [], automatic }: CompactionSettings,
): number | undefined {
  if (!automatic) return undefined;
  const narrowed = windows.filter((window) => window !== undefined);
  const window = Math.min(contextWindow, ...narrowed);
  return Math.floor((window * Math.min(percent, defaultPercent)) / 100);
}

/** Beyond this share of the real window a conversation cannot sensibly continue. */
export function fullTokens(contextWindow: number): number {
  return Math.floor((contextWindow * defaultPercent) / 100);
}
