import type { ScriptAnswer, ScriptError, ScriptMessage, ScriptStart, StepOptions } from "./script-message.ts";

/** The functions that a workflow has besides JavaScript's own. */
export interface WorkflowFunctions {
  /** Runs one agent; its last text, the value for `schema`, or null where the provider failed or a person skipped it. */
  agent(prompt: unknown, options?: StepOptions): Promise<unknown>;
  /** Waits for all; one that throws becomes null. */
  parallel(thunks: readonly (() => unknown)[]): Promise<unknown[]>;
  /** Each item through all stages alone; one that throws, or gets null, becomes null. */
  pipeline(
    items: readonly unknown[],
    ...stages: readonly ((previous: never, item: never, index: number) => unknown)[]
  ): Promise<unknown[]>;
  phase(title: unknown): void;
  log(...values: readonly unknown[]): void;
  /** Runs another workflow within this one. */
  workflow(nameOrFile: unknown, args?: unknown): Promise<unknown>;
  readonly budget: {
    readonly total: number | null;
    spent(): number;
    remaining(): number;
  };
}

export interface ScriptFunctions {
  readonly functions: WorkflowFunctions;
  /** Takes an answer of the runtime. */
  answer(answer: ScriptAnswer): void;
  /** Calls the body and reports how it ended. */
  run(body: () => unknown): void;
  /** Ends it with an error that came from outside its body. */
  fail(error: unknown): void;
  /** Whether its body has not ended and waits for no answer: nothing but a timer can continue it. */
  isIdle(): boolean;
}

/**
 * The functions of one script around a way to send messages. Its text also runs in the realm of scripts, which has nothing of this
 * process: so it uses nothing but its parameters and JavaScript's own, like the parts it is made of.
 */
export function createScriptFunctions(
  send: (message: ScriptMessage) => void,
  start: Pick<ScriptStart, "total" | "spent">,
  { createValues, createLists, describeThrown }: typeof scriptParts,
): ScriptFunctions {
  const { textOf, reasonOf, toPlain, toJson } = createValues();
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  /** Errors that `parallel` and `pipeline` let through. */
  const final = new WeakSet<object>();
  let calls = 0;
  let hasEnded = false;
  let spent = start.spent;
  let phase: string | undefined;

  function request(message: (id: number) => ScriptMessage): Promise<unknown> {
    calls += 1;
    const id = calls;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send(message(id));
    });
  }

  function optionsOf(given: unknown): StepOptions {
    if (typeof given !== "object" || given === null) return phase === undefined ? {} : { phase };
    const { label, phase: own, schema, model, effort, isolation, agentType, verify } = given as StepOptions;
    const texts = { label, phase: own ?? phase, model, effort, isolation, agentType };
    const entries = Object.entries(texts).flatMap(([key, value]) =>
      value === undefined || value === null ? [] : [[key, String(value)]],
    );
    return {
      ...Object.fromEntries(entries),
      ...(schema === undefined || schema === null ? {} : { schema: toPlain(schema, []) }),
      ...(verify === undefined || verify === null ? {} : { verify: toPlain(verify, []) }),
    } as StepOptions;
  }

  const functions: WorkflowFunctions = {
    async agent(prompt, options) {
      const text = typeof prompt === "string" ? prompt : String(prompt);
      const read = optionsOf(options);
      return request((id) => ({ type: "agent", id, prompt: text, options: read }));
    },
    ...createLists({ send, reasonOf, final }),
    phase(title) {
      phase = textOf(title);
      send({ type: "phase", title: phase });
    },
    log(...values) {
      send({ type: "log", text: values.map(textOf).join(" ") });
    },
    async workflow(nameOrFile, args) {
      const json = toJson(args).value;
      const given = json === undefined ? {} : { args: json };
      if (typeof nameOrFile === "object" && nameOrFile !== null) {
        const scriptPath = Reflect.get(nameOrFile, "scriptPath");
        if (typeof scriptPath !== "string")
          throw new TypeError("workflow() expects the name of a saved workflow, or { scriptPath }.");
        return request((id) => ({ type: "workflow", id, scriptPath, ...given }));
      }
      const name = String(nameOrFile);
      return request((id) => ({ type: "workflow", id, name, ...given }));
    },
    budget: Object.freeze({
      total: start.total,
      spent: () => spent,
      remaining: () => (start.total === null ? Number.POSITIVE_INFINITY : Math.max(0, start.total - spent)),
    }),
  };

  function errorOf({ name, message }: ScriptError): Error {
    const error = name === "TypeError" ? new TypeError(message) : new Error(message);
    if (error.name !== name) Object.defineProperty(error, "name", { value: name });
    if (name === "WorkflowAgentCapError") final.add(error);
    return error;
  }

  return {
    functions,
    answer({ id, value, error, spent: now }) {
      spent = now;
      const call = waiting.get(id);
      waiting.delete(id);
      if (error !== undefined) call?.reject(errorOf(error));
      else call?.resolve(value === undefined ? undefined : JSON.parse(value));
    },
    fail(error) {
      hasEnded = true;
      send(describeThrown(error));
    },
    isIdle: () => !hasEnded && waiting.size === 0,
    run(body) {
      const ended = async (): Promise<void> => {
        try {
          const json = toJson(await body());
          hasEnded = true;
          send({ type: "returned", ...json });
        } catch (error) {
          hasEnded = true;
          send(describeThrown(error));
        }
      };
      void ended();
    },
  };
}

/** How values of a script become texts and JSON. */
function createValues() {
  const textOf = (value: unknown): string =>
    (typeof value === "object" && value !== null) || typeof value === "function" ? "[object]" : String(value);
  /** Total: what was thrown may act when it is read. */
  const reasonOf = (error: unknown): string => {
    try {
      const message =
        typeof error === "object" && error !== null && "message" in error ? error.message : error;
      return String(message);
    } catch {
      return "a value that has no text was thrown";
    }
  };

  /** Own fields only, so that the same value looks the same whatever class it has. */
  function toPlain(value: unknown, above: readonly unknown[]): unknown {
    if (typeof value === "function" || typeof value === "bigint" || typeof value === "symbol")
      throw new TypeError(`A ${typeof value} cannot leave the workflow; pass plain JSON.`);
    if (typeof value !== "object" || value === null) return value;
    if (above.includes(value)) throw new TypeError("A value that contains itself cannot leave the workflow.");
    const inside = [...above, value];
    if (Array.isArray(value)) return value.map((entry) => toPlain(entry, inside));
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, toPlain(entry, inside)]));
  }
  const toJson = (value: unknown): { value?: string } => {
    const json = JSON.stringify(toPlain(value, []));
    return json === undefined ? {} : { value: json };
  };

  return { textOf, reasonOf, toPlain, toJson };
}

/** The functions that take lists. `final` has the errors that they let through. */
function createLists({
  send,
  reasonOf,
  final,
}: {
  readonly send: (message: ScriptMessage) => void;
  readonly reasonOf: (error: unknown) => string;
  readonly final: WeakSet<object>;
}): Pick<WorkflowFunctions, "parallel" | "pipeline"> {
  const maxEntries = 4096;
  const isPromise = (value: unknown): boolean =>
    typeof value === "object" && value !== null && typeof Reflect.get(value, "then") === "function";
  const checkLength = ({ length }: readonly unknown[]): void => {
    if (length > maxEntries)
      throw new Error(`The list has ${length} entries; a workflow accepts at most ${maxEntries} at a time.`);
  };
  const isFinal = (error: unknown): boolean =>
    typeof error === "object" && error !== null && final.has(error);
  const failed = (name: string, index: number, error: unknown): null => {
    send({ type: "failure", text: `${name}[${index}] failed: ${reasonOf(error)}` });
    return null;
  };

  return {
    async parallel(thunks) {
      if (!Array.isArray(thunks)) throw new TypeError("parallel() expects an array of functions.");
      checkLength(thunks);
      if (thunks.some(isPromise))
        throw new TypeError(
          "parallel() expects an array of functions, not promises. Wrap each call: () => agent(…).",
        );
      if (thunks.some((thunk) => typeof thunk !== "function"))
        throw new TypeError("parallel() expects an array of functions.");
      const errors: unknown[] = [];
      try {
        return await Promise.all(
          thunks.map(async (thunk, index) => {
            try {
              return await thunk();
            } catch (error) {
              if (isFinal(error)) throw error;
              errors[index] = error;
              return null;
            }
          }),
        );
      } finally {
        // In the order of the list, so that the lines of a resumed run are the same.
        for (const index of errors.keys()) if (index in errors) failed("parallel", index, errors[index]);
      }
    },
    async pipeline(items, ...stages) {
      if (!Array.isArray(items)) throw new TypeError("pipeline() expects an array of items, then functions.");
      checkLength(items);
      if (stages.some((stage) => typeof stage !== "function"))
        throw new TypeError(
          "The stages of pipeline() must be functions: pipeline(items, (item) => …, (result) => …).",
        );
      return Promise.all(
        items.map(async (item, index) => {
          try {
            let previous: unknown = item;
            for (const stage of stages) {
              previous = await stage(previous as never, item as never, index);
              if (previous === null) return null;
            }
            return previous;
          } catch (error) {
            if (isFinal(error)) throw error;
            return failed("pipeline", index, error);
          }
        }),
      );
    },
  };
}

/** What the runtime is shown of something that a script has thrown. Total: that may act when it is read. */
function describeThrown(error: unknown): ScriptMessage {
  try {
    const stack: unknown =
      typeof error === "object" && error !== null ? Reflect.get(error, "stack") : undefined;
    const found = typeof stack === "string" ? /workflow\.js:([1-9]\d{0,6})/.exec(stack) : null;
    const line = found === null ? {} : { line: Number(found[1]) };
    const isError = typeof error === "object" && error !== null && "message" in error;
    const name = isError && "name" in error ? String(error.name) : "Error";
    return { type: "threw", name, message: isError ? String(error.message) : String(error), ...line };
  } catch {
    return { type: "threw", name: "Error", message: "The workflow threw a value that has no text." };
  }
}

export const scriptParts = { createValues, createLists, describeThrown };
