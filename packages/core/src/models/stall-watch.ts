/** How long a provider may be silent. */
export interface StallLimits {
  /** Until the first piece of the answer, and later between two pieces while only signs of life come. */
  readonly firstTokenMs: number;
  /** Without any sign of life once the answer has started. */
  readonly betweenTokensMs: number;
}

export interface StallWatch {
  /** What did not come in time, once a limit was passed. */
  readonly stalled: string | undefined;
  /** From here on the provider is waited for; what the reader does between `rest` and `wait` does not count. */
  wait(): void;
  rest(): void;
  /** A piece of the answer arrived since the wait began, not only a sign of life. */
  answerStarted(): void;
  [Symbol.dispose](): void;
}

/** Calls `onStall` once when the provider is silent for too long while it is being waited for. */
export function createStallWatch(limits: StallLimits, onStall: () => void): StallWatch {
  const pieceLimit = Math.max(limits.firstTokenMs, limits.betweenTokensMs);
  let isWaiting = false;
  let hasStarted = false;
  let isPieceDue = true;
  let stalled: string | undefined;
  let pieceTimer = setTimeout(
    () => missPiece(`did not start an answer within ${limits.firstTokenMs} ms`),
    limits.firstTokenMs,
  );
  let silenceTimer: NodeJS.Timeout | undefined;

  function pass(what: string): void {
    if (!isWaiting || stalled !== undefined) return;
    stalled = what;
    onStall();
  }

  function missPiece(what: string): void {
    isPieceDue = true;
    pass(what);
  }

  function begin(): void {
    hasStarted = true;
    clearTimeout(pieceTimer);
    pieceTimer = setTimeout(() => missPiece(`sent nothing of its answer for ${pieceLimit} ms`), pieceLimit);
    const silence = `fell silent for ${limits.betweenTokensMs} ms in the middle of its answer`;
    silenceTimer = setTimeout(() => pass(silence), limits.betweenTokensMs);
  }

  return {
    get stalled() {
      return stalled;
    },
    wait() {
      isWaiting = true;
      silenceTimer?.refresh();
      if (isPieceDue) pieceTimer.refresh();
      isPieceDue = false;
    },
    rest() {
      isWaiting = false;
    },
    answerStarted() {
      isPieceDue = true;
      if (!hasStarted) begin();
    },
    [Symbol.dispose]() {
      clearTimeout(pieceTimer);
      clearTimeout(silenceTimer);
    },
  };
}
