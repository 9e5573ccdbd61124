/** A question with choices, as the AskUserQuestion tool puts it. */
export interface HostQuestion {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiSelect: boolean;
}

export interface TodoItem {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly activeForm: string;
}

/** What tools may ask of the program around them. A part that is absent does not exist for this run. */
export interface ToolHost {
  /** Puts questions to a person; absent when no one can be asked. */
  readonly ask?: (
    questions: readonly HostQuestion[],
    options: {
      readonly signal: AbortSignal;
      /** The agent that asks. */
      readonly agent?: { readonly id: string; readonly name: string };
    },
  ) => Promise<Readonly<Record<string, string>>>;
  readonly todosChanged?: (todos: readonly TodoItem[]) => void;
  /** Whether a host name outside may be fetched although it is private or loopback. */
  readonly mayFetchPrivate?: (host: string) => boolean;
}
