import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { WorkerSettings } from "./worker-process.ts";

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly id: string;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Ends it with SIGTERM and resolves with its exit code. */
  drain(): Promise<number | null>;
  memory(): Promise<number>;
  readonly exited: Promise<number | null>;
  errors(): string;
}

const script = fileURLToPath(new URL("worker-process.ts", import.meta.url));

/** Starts workers and ends all of them when it is disposed. */
export function createFleet(defaults: WorkerSettings) {
  const processes = new Set<ChildProcess>();
  const end = async (): Promise<void> => {
    const running = [...processes].filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    await Promise.all(
      running.map((child) => {
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        return gone;
      }),
    );
  };
  return {
    async start(settings: Partial<WorkerSettings> = {}): Promise<WorkerProcess> {
      const child = fork(script, [JSON.stringify({ ...defaults, ...settings })], {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        execArgv: [],
      });
      processes.add(child);
      let said = "";
      child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
        said += chunk;
      });
      const exited = once(child, "exit").then(([code]) => code as number | null);
      const failed = exited.then((code) =>
        Promise.reject(new Error(`The worker ended with ${code}: ${said}`)),
      );
      failed.catch(() => undefined);
      const [message] = (await Promise.race([once(child, "message"), failed])) as [{ ready: string }];
      return {
        id: message.ready,
        pid: child.pid ?? 0,
        kill: (signal) => void child.kill(signal),
        async drain() {
          child.kill("SIGTERM");
          return exited;
        },
        async memory() {
          const answer = once(child, "message") as Promise<[{ rss: number }]>;
          child.send("memory");
          return (await answer)[0].rss;
        },
        exited,
        errors: () => said,
      };
    },
    [Symbol.asyncDispose]: end,
  };
}
