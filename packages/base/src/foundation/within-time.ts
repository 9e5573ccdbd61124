import { createContext, Script } from "node:vm";

export type WithinTime<Result> =
  | { readonly type: "done"; readonly result: Result }
  | { readonly type: "too-long" };

const script = new Script("call()");

/** Calls what waits for nothing, and ends it after its time even inside a regular expression, which nothing else can stop. */
export function withinTime<Result>(call: () => Result, timeoutMs: number): WithinTime<Result> {
  const results: Result[] = [];
  const context = createContext({ call: () => void results.push(call()) });
  try {
    script.runInContext(context, { timeout: timeoutMs });
  } catch (error) {
    if (Reflect.get(Object(error), "code") === "ERR_SCRIPT_EXECUTION_TIMEOUT") return { type: "too-long" };
    throw error;
  }
  return { type: "done", result: results[0] as Result };
}
