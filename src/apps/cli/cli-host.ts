/** One of the two streams a command writes to. */
export interface CliOutput {
  write(text: string): void;
  readonly isTerminal: boolean;
  /** Cells per line; absent when nobody said, as in a pipe. */
  readonly columns?: number;
  readonly isColourAllowed: boolean;
}

/** All that the command line takes from the world around it. */
export interface CliHost {
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
  /** Whether somebody sits at a terminal who can answer. */
  readonly canAsk: boolean;
  /** One line of an answer; a Fault `interrupted` when the person leaves instead. */
  ask(question: string): Promise<string>;
  /** Gives the terminal back after the last question. */
  endQuestions(): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly nodeVersion: string;
  /** The version of this package. */
  readonly version: () => string;
}
