import { createScriptFunctions, type ScriptFunctions, scriptParts } from "./create-script-functions.ts";
import { readScriptMessage } from "./read-script-message.ts";
import type { ScriptAnswer } from "./script-message.ts";
import {
  type ProcessRealm,
  type RealmEvents,
  type RealmOptions,
  type ScriptRealm,
  startRealm,
} from "./start-realm.ts";

/**
 * Runs scripts in a process of their own, which is started with the first of them, and functions of the program in this one. A
 * function may call scripts, and no script calls a function.
 */
export function openRealm(
  events: RealmEvents,
  options: RealmOptions & { readonly turns?: RealmTurns },
): ScriptRealm {
  const functions = new Map<number, ScriptFunctions>();
  let scripts: Promise<ScriptRealm> | undefined;
  const inScripts = (what: (realm: ScriptRealm) => void): void => {
    const { turns = (begin) => begin() } = options;
    scripts ??= turns(() => startRealm(events, options));
    scripts.then(what).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      if (!options.signal.aborted) events.broke("all", `The process of scripts could not be started: ${why}`);
    });
  };
  return {
    begin(scope, body, start) {
      if (typeof body === "string") return inScripts((realm) => realm.begin(scope, body, start));
      const own = createScriptFunctions(
        (message) => {
          // Read like those of scripts, so that there is one form of messages.
          const read = readScriptMessage(JSON.parse(JSON.stringify(message)));
          if (!functions.has(scope)) return;
          if (read === undefined)
            events.broke(scope, "The function sent a workflow something that is not a message.");
          else events.message(scope, read);
        },
        start,
        scriptParts,
      );
      functions.set(scope, own);
      const args: unknown = start.args === undefined ? undefined : JSON.parse(start.args);
      own.run(() => body({ ...own.functions, args } as never));
    },
    answer(scope: number, answer: ScriptAnswer) {
      const own = functions.get(scope);
      if (own === undefined) inScripts((realm) => realm.answer(scope, answer));
      else own.answer(answer);
    },
    end(scope) {
      if (!functions.delete(scope)) inScripts((realm) => realm.end(scope));
    },
    async [Symbol.asyncDispose]() {
      functions.clear();
      await (await scripts?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}

/** Starts realms one after the other. */
export type RealmTurns = (begin: () => Promise<ProcessRealm>) => Promise<ProcessRealm>;

/** Runs that are started after one another also begin in this order: the next one when the first has something to wait for. */
export function createRealmTurns(): RealmTurns {
  let last: Promise<unknown> = Promise.resolve();
  return (begin) => {
    const mine = last.then(begin);
    last = mine.then(({ started }) => started).catch(() => undefined);
    return mine;
  };
}
