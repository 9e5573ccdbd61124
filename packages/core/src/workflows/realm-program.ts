import { createScriptFunctions, type ScriptFunctions, scriptParts } from "./create-script-functions.ts";
import type { ScriptAnswer, ScriptMessage, ScriptStart } from "./script-message.ts";

/**
 * The program of the process that scripts run in. Functions below go there as text, so they use nothing of this module but what they
 * are given: each script has a context of its own, into and out of which only strings pass.
 */
export function realmProgram(): string {
  return `import vm from "node:vm";\n(${hostScripts.toString()})(vm, ${JSON.stringify(preludeText())});`;
}

/** What runs first in the context of each script; its value is what the process calls. */
function preludeText(): string {
  return `(() => { "use strict";
    const createScriptFunctions = ${createScriptFunctions.toString()};
    const parts = {
      createValues: ${scriptParts.createValues.toString()},
      createLists: ${scriptParts.createLists.toString()},
      describeThrown: ${scriptParts.describeThrown.toString()},
    };
    (${closeClock.toString()})(globalThis);
    (${lockDown.toString()})(globalThis);
    return (${openScript.toString()})((send, start) => createScriptFunctions(send, start, parts), globalThis);
  })()`;
}

/** What the process can call in the context of a script. All that comes back is a string. */
export interface ScriptContext {
  start(start: string, body: () => unknown): void;
  answer(answer: string): void;
  /** Calls the function of the timer that is due next. */
  fire(): void;
  /** What the script has sent since, how long until the next timer is due, and whether nothing can continue it; JSON. */
  collect(): string;
}

interface Timer {
  readonly id: number;
  readonly due: number;
  readonly wait: number;
  readonly call: () => void;
}

/** Sets up the globals of one script. Runs inside its context. */
function openScript(
  create: (
    send: (message: ScriptMessage) => void,
    start: Pick<ScriptStart, "total" | "spent">,
  ) => ScriptFunctions,
  global: typeof globalThis,
): ScriptContext {
  const maxTimers = 4096;
  /** So many timers in a row, with nothing else to wait for, lead nowhere. */
  const maxFired = 2_000;
  let sent: ScriptMessage[] = [];
  /** In the order in which they are due by a clock that only timers move, so that every run has the same order. */
  let timers: Timer[] = [];
  let clock = 0;
  let count = 0;
  let fired = 0;
  const setTimeout = (call: unknown, after?: unknown, ...given: readonly unknown[]): number => {
    if (typeof call !== "function") throw new TypeError("setTimeout() expects a function.");
    if (timers.length >= maxTimers)
      throw new Error(`A workflow may have at most ${maxTimers} timers at the same time.`);
    const asked = Math.trunc(Number(after));
    // As everywhere in JavaScript, a wait that is no time or too long is none.
    const wait = asked >= 1 && asked <= 2_147_483_647 ? asked : 1;
    count += 1;
    const timer = { id: count, due: clock + wait, wait, call: () => void call(...given) };
    const later = timers.findIndex(({ due }) => due > timer.due);
    timers.splice(later === -1 ? timers.length : later, 0, timer);
    return timer.id;
  };
  const clearTimeout = (id: unknown): void => {
    timers = timers.filter((timer) => timer.id !== id);
  };
  const define = (name: string, value: unknown): void => {
    Object.defineProperty(global, name, { value, writable: true, enumerable: false, configurable: true });
  };
  let answer: ((given: ScriptAnswer) => void) | undefined;
  let fail: ((error: unknown) => void) | undefined;
  let isIdle: (() => boolean) | undefined;
  return {
    start(json, body) {
      const start: ScriptStart = JSON.parse(json);
      const own = create((message) => void sent.push(message), start);
      ({ answer, fail, isIdle } = own);
      const { agent, parallel, pipeline, phase, log, workflow, budget } = own.functions;
      const console = { log, info: log, debug: log, warn: log, error: log };
      const given = { agent, parallel, pipeline, phase, log, workflow, setTimeout, clearTimeout };
      for (const [name, value] of Object.entries({ ...given, budget, console }))
        define(name, Object.freeze(value));
      define("args", start.args === undefined ? undefined : JSON.parse(start.args));
      own.run(body);
    },
    answer(json) {
      fired = 0;
      answer?.(JSON.parse(json));
    },
    fire() {
      fired += 1;
      const next = timers.shift();
      if (next === undefined) return;
      clock = next.due;
      try {
        next.call();
      } catch (error) {
        fail?.(error);
      }
    },
    collect() {
      const messages = sent;
      sent = [];
      const [next] = timers;
      const canContinue = next !== undefined && (fired < maxFired || isIdle?.() !== true);
      if (canContinue) return JSON.stringify({ messages, waitMs: next.due - clock });
      return JSON.stringify({ messages, isStuck: isIdle?.() === true });
    },
  };
}

/** Closes clock and chance whatever way leads to them. Runs inside the context, before the script. */
function closeClock(global: typeof globalThis): void {
  const noClock =
    "A workflow has no clock: Date.now(), new Date() and what else reads the time would make a resumed run differ. Pass the time with args, or add it after the workflow has returned.";
  const noChance =
    "A workflow has no chance: Math.random() would make a resumed run differ. For several independent answers, put a number into each prompt.";
  const refuse = (text: string) => (): never => {
    throw new Error(text);
  };
  const set = (target: object, key: PropertyKey, value: unknown): void => {
    Object.defineProperty(target, key, { value, writable: true, enumerable: false, configurable: true });
  };

  const RealDate = global.Date;
  function ClosedDate(this: unknown, ...given: readonly unknown[]): object {
    if (new.target === undefined || given.length === 0) throw new Error(noClock);
    return Reflect.construct(RealDate, given, new.target);
  }
  for (const key of ["parse", "UTC"]) set(ClosedDate, key, Reflect.get(RealDate, key));
  set(ClosedDate, "now", refuse(noClock));
  set(ClosedDate, "name", "Date");
  set(ClosedDate, "length", 7);
  Object.defineProperty(ClosedDate, "prototype", { value: RealDate.prototype, writable: false });
  set(RealDate.prototype, "constructor", ClosedDate);
  set(global, "Date", ClosedDate);
  set(global.Math, "random", refuse(noChance));

  const formats = global.Intl.DateTimeFormat.prototype;
  const formatOf = Object.getOwnPropertyDescriptor(formats, "format")?.get;
  const toParts = formats.formatToParts;
  Object.defineProperty(formats, "format", {
    configurable: true,
    get(this: unknown) {
      const format: (date: unknown) => string = formatOf?.call(this);
      return (date: unknown) => {
        if (date === undefined) throw new Error(noClock);
        return format(date);
      };
    },
  });
  set(formats, "formatToParts", function formatToParts(this: Intl.DateTimeFormat, date?: Date) {
    if (date === undefined) throw new Error(noClock);
    return Reflect.apply(toParts, this, [date]);
  });
  const now: unknown = Reflect.get(Object(Reflect.get(global, "Temporal")), "Now");
  if (typeof now === "object" && now !== null)
    for (const key of Reflect.ownKeys(now))
      if (typeof Reflect.get(now, key) === "function") set(now, key, refuse(noClock));
}

/** Leaves of the globals what a workflow may have, and freezes everything. Runs inside the context, before the script. */
function lockDown(global: typeof globalThis): void {
  const allowed = new Set<PropertyKey>(
    `Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Date Promise RegExp Error
    AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError globalThis JSON Math Intl ArrayBuffer
    Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array BigUint64Array BigInt64Array Uint8ClampedArray
    Float16Array Float32Array Float64Array DataView Map BigInt Set Iterator WeakMap WeakSet Proxy Reflect decodeURI
    decodeURIComponent encodeURI encodeURIComponent escape unescape eval isFinite isNaN SuppressedError DisposableStack
    AsyncDisposableStack Temporal`.split(/\s+/),
  );
  for (const key of Reflect.ownKeys(global)) if (!allowed.has(key)) Reflect.deleteProperty(global, key);
  // What carries messages out of here uses them, so a script that replaced JSON could write messages of its own.
  for (const key of Reflect.ownKeys(global)) {
    const own = Object.getOwnPropertyDescriptor(global, key);
    if (own?.configurable === true && "value" in own)
      Object.defineProperty(global, key, { writable: false, configurable: false });
  }

  // What formats a stack would be handed the functions on it.
  Object.defineProperty(global.Error, "prepareStackTrace", { value: undefined, writable: false });

  /** A frozen prototype must not keep objects that inherit from it from having a field of the same name. */
  function allowOverride(prototype: object): void {
    for (const key of Reflect.ownKeys(prototype)) {
      const own = Object.getOwnPropertyDescriptor(prototype, key);
      if (own === undefined || !("value" in own) || own.configurable !== true) continue;
      const { value, enumerable = false } = own;
      Object.defineProperty(prototype, key, {
        enumerable,
        configurable: false,
        get: () => value,
        set(this: object, next: unknown) {
          if (this === prototype || Object.isFrozen(this))
            throw new TypeError(
              `Cannot assign to ${String(key)}: JavaScript's built-ins are frozen in a workflow.`,
            );
          Object.defineProperty(this, key, {
            value: next,
            writable: true,
            enumerable: true,
            configurable: true,
          });
        },
      });
    }
  }
  const errors = [
    Error,
    AggregateError,
    EvalError,
    RangeError,
    ReferenceError,
    SyntaxError,
    TypeError,
    URIError,
  ];
  for (const { prototype } of [Object, Function, ...errors]) allowOverride(prototype);

  const from: unknown = Reflect.get(Object(Reflect.get(global, "Iterator")), "from");
  const helper: unknown = Reflect.get([].values(), "map");
  const iterators = [
    typeof from === "function" ? from({ next: () => ({ done: true, value: undefined }) }) : [],
    typeof helper === "function" ? Reflect.apply(helper, [].values(), [() => undefined]) : [],
  ];
  const waiting: unknown[] = [
    ...Reflect.ownKeys(global)
      .filter((key) => key !== "globalThis")
      .map((key) => Reflect.get(global, key)),
    // What only syntax leads to.
    Object.getPrototypeOf(function* () {}),
    Object.getPrototypeOf(async () => undefined),
    Object.getPrototypeOf(async function* () {}),
    Object.getPrototypeOf([][Symbol.iterator]()),
    Object.getPrototypeOf(new Map()[Symbol.iterator]()),
    Object.getPrototypeOf(new Set()[Symbol.iterator]()),
    Object.getPrototypeOf(""[Symbol.iterator]()),
    Object.getPrototypeOf("".matchAll(/x/g)),
    ...iterators.map((iterator) => Object.getPrototypeOf(iterator)),
    Object.getPrototypeOf(new global.Intl.Segmenter().segment("")),
    Object.getPrototypeOf(new global.Intl.Segmenter().segment("")[Symbol.iterator]()),
  ];
  const frozen = new Set<unknown>([global]);
  while (waiting.length > 0) {
    const value = waiting.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null || frozen.has(value))
      continue;
    frozen.add(value);
    // Elements of an array of bytes cannot be frozen, and there is none here.
    Object.freeze(value);
    waiting.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      const own = Object.getOwnPropertyDescriptor(value, key);
      waiting.push(own?.value, own?.get, own?.set);
    }
  }
}

/** The process itself: reads lines of JSON, runs what they ask for under the time limit, writes what scripts send. */
function hostScripts(vm: typeof import("node:vm"), prelude: string): void {
  const { process } = globalThis;
  const { stdin, stdout } = process;
  const { now } = Date;
  const exit = process.exit.bind(process);
  // A promise of a script that is not awaited is the script's affair.
  process.on("unhandledRejection", () => undefined);
  // Code that escapes from a context finds nothing here.
  const kept = new Set(
    "globalThis Object Array Number String Boolean Symbol Map Set Error TypeError JSON Reflect Promise Math setTimeout clearTimeout undefined NaN Infinity".split(
      " ",
    ),
  );
  for (const name of Reflect.ownKeys(globalThis))
    if (typeof name === "string" && !kept.has(name)) Reflect.deleteProperty(globalThis, name);
  interface Scope {
    readonly call: (code: string, isScript?: boolean) => unknown;
    readonly limitMs: number;
    timer: NodeJS.Timeout | undefined;
  }
  const scopes = new Map<number, Scope>();
  const write = (line: object): void => void stdout.write(`${JSON.stringify(line)}\n`);

  function open(name: string, limitMs: number): Scope {
    const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, {
      microtaskMode: "afterEvaluate",
      codeGeneration: { strings: false, wasm: false },
    });
    // Only lines of the script have its name; the call around it is in a line before the first.
    const call = (code: string, isScript = false): unknown => {
      const place = isScript ? { filename: "workflow.js", lineOffset: -1 } : { filename: "functions.js" };
      return new vm.Script(code, place).runInContext(context, { timeout: limitMs });
    };
    // Nothing of the script runs yet, so its time has not started.
    new vm.Script(`const ${name} = ${prelude};`, { filename: "functions.js" }).runInContext(context);
    return { call, limitMs, timer: undefined };
  }

  /** One call into a script, with everything that follows from it until it waits for something. */
  function turn(
    id: number,
    { name, code, isScript }: { name: string; code: string; isScript?: boolean },
  ): void {
    const scope = scopes.get(id);
    if (scope === undefined) return;
    const { limitMs } = scope;
    clearTimeout(scope.timer);
    const startedAt = now();
    try {
      scope.call(code, isScript);
      const collected = scope.call(`${name}.collect()`);
      if (typeof collected !== "string") throw new TypeError("The script sent no text.");
      const { messages, waitMs, isStuck } = JSON.parse(collected);
      for (const message of messages) write({ scope: id, message });
      if (isStuck === true) {
        write({ scope: id, broke: "stuck" });
        scopes.delete(id);
      }
      if (typeof waitMs === "number")
        scope.timer = setTimeout(() => {
          write({ began: true });
          turn(id, { name, code: `${name}.fire()` });
          write({ rested: true });
        }, waitMs);
    } catch (error) {
      // What a script throws is an object of its context, which is not looked into.
      const isLate = now() - startedAt >= limitMs;
      const text = error instanceof Error ? error.message : "its stack or memory was used up";
      write({ scope: id, broke: isLate ? "time" : "error", text });
      scopes.delete(id);
    }
  }

  function take(line: string): void {
    const order = JSON.parse(line);
    const { scope, name } = order;
    if (order.type === "begin") {
      scopes.set(scope, open(name, order.limitMs));
      const code = `${name}.start(${JSON.stringify(order.start)},\n${order.code});`;
      turn(scope, { name, code, isScript: true });
    } else if (order.type === "answer") {
      turn(scope, { name, code: `${name}.answer(${JSON.stringify(order.answer)});` });
    } else if (order.type === "end") {
      clearTimeout(scopes.get(scope)?.timer);
      scopes.delete(scope);
    }
    write({ rested: true });
  }

  let rest = "";
  stdin.setEncoding("utf8");
  stdin.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
  stdin.on("end", () => exit(0));
  stdout.on("error", () => exit(0));
  write({ ready: true });
}
