export interface TortureRequest {
  /** How many kills; each mode has its own number where none is given. */
  readonly rounds?: number;
  readonly random: () => number;
  readonly say: (text: string) => void;
}

/** One way of torture. It says what it found, and whether all promises held. */
export type TortureMode = (request: TortureRequest) => Promise<boolean>;
