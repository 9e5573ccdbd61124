import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface TortureProvider extends AsyncDisposable {
  readonly url: string;
  /** Resolves when the next answer but `skipped` begins to be sent. */
  nextAnswer(skipped: number): Promise<void>;
}

export type TortureModel = "alone" | "children" | "storm" | "team" | "worktrees";

/** Which model it serves: of one agent alone, or of one with children in some situation. */
export async function startTortureProvider(of: TortureModel = "alone"): Promise<TortureProvider> {
  const child = fork(fileURLToPath(new URL("serve-torture.ts", import.meta.url)), [of]);
  const [ready]: readonly unknown[] = await once(child, "message");
  return {
    url: String(Reflect.get(Object(ready), "url")),
    nextAnswer: (skipped) =>
      new Promise((resolve) => {
        let left = skipped;
        const listen = (): void => {
          left -= 1;
          if (left >= 0) return;
          child.removeListener("message", listen);
          resolve();
        };
        child.on("message", listen);
      }),
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}
