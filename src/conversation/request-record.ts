/** What a transcript keeps of a request, so that a replay can prove that it makes the same one. */
export interface RequestRecord {
  /** Over everything that was sent, to the byte. */
  readonly digest: string;
  /** The names under which the session keeps the system prompt and the tools. */
  readonly system: string;
  readonly tools: string;
  /** Everything else but the messages; absent where there was nothing else. */
  readonly options?: Readonly<Record<string, unknown>>;
}
