// @io
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { version } from "../../foundation/version.ts";
import { fileError } from "../../storage/file-error.ts";
import { takeOwnerLock } from "../../storage/owner-lock.ts";
import { thisProcess } from "../../storage/process-identity.ts";
import type { Bus, JsonValue, Store } from "../store.ts";
import { createFileLog } from "./create-file-log.ts";
import { createFileEngine } from "./file-engine.ts";

export interface FileStoreOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * A store in a folder of this machine, for one process at a time: files have no fence between two writers, so a lock keeps
 * the second one out.
 */
export async function openFileStore(
  folder: string,
  { now = Date.now }: FileStoreOptions = {},
): Promise<Store> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileError("make the folder", folder, error);
  }
  const answer = takeOwnerLock(join(folder, "store"), { now });
  if (answer.type === "held") throw storeInUse(folder, answer.by?.pid);
  try {
    const { machine, pid } = thisProcess();
    const identity = { machine: machine.split(" ")[0] ?? machine, pid, version };
    const log = createFileLog(join(folder, "logs"), now);
    const engine = await createFileEngine({ log: createFileLog(join(folder, "engine"), now), now, identity });
    let isClosed = false;
    const close = async (): Promise<void> => {
      if (isClosed) return;
      isClosed = true;
      await engine.close();
      answer.lock.release();
    };
    return { label: folder, log, engine, bus: createLocalBus(), close, [Symbol.asyncDispose]: close };
  } catch (error) {
    answer.lock.release();
    throw error;
  }
}

function storeInUse(folder: string, pid: number | undefined): RetinueError {
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return new RetinueError(
    "store-in-use",
    `The store in ${folder} is in use by ${who}, and only one process may use it at a time.`,
    {
      advice: "End that process first, or use a PostgreSQL store, which any number of processes can share.",
    },
  );
}

/** Events within this process. */
function createLocalBus(): Bus {
  const topics = new Map<string, Set<(event: JsonValue) => void>>();
  return {
    publish(topic, event) {
      const text = JSON.stringify(event);
      // Each listener gets a copy of its own, later, as it would from another process.
      for (const listener of topics.get(topic) ?? [])
        queueMicrotask(() => {
          if (topics.get(topic)?.has(listener)) listener(JSON.parse(text));
        });
    },
    async subscribe(topic, listener) {
      const listeners = topics.get(topic) ?? new Set();
      // A function that subscribes twice hears twice.
      const own = (event: JsonValue): void => listener(event);
      topics.set(topic, listeners.add(own));
      return {
        close() {
          listeners.delete(own);
          if (listeners.size === 0 && topics.get(topic) === listeners) topics.delete(topic);
        },
      };
    },
  };
}
