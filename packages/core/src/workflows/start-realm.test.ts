import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { createWall, type Wall, type WallPlaces } from "../tools/sandbox/wall.ts";
import type { ScriptMessage } from "./script-message.ts";
import { realmLimits, startRealm } from "./start-realm.ts";

/** Runs a body in a realm of its own; agents answer with their prompt in capitals. */
async function play(
  body: string,
  given: { args?: unknown; timeMs?: number; memoryMb?: number; sentMb?: number; wall?: Wall } = {},
) {
  // Not through the reader, so that the realm alone has to close what the reader refuses by its form.
  const code = `(async () => {"use strict";\n${body}\n})`;
  const over = Promise.withResolvers<unknown>();
  const seen: ScriptMessage[] = [];
  await using realm = await startRealm(
    {
      message(scope, message) {
        seen.push(message);
        if (message.type === "agent")
          realm.answer(scope, {
            id: message.id,
            value: JSON.stringify(message.prompt.toUpperCase()),
            spent: 7,
          });
        if (message.type === "returned")
          over.resolve(message.value === undefined ? undefined : JSON.parse(message.value));
        if (message.type === "threw")
          over.resolve({ threw: `${message.name}: ${message.message}`, line: message.line });
      },
      broke: (_scope, reason) => over.resolve({ broke: reason }),
    },
    { signal: new AbortController().signal, limits: { ...realmLimits, ...given }, wall: given.wall },
  );
  realm.begin(1, code, {
    total: null,
    spent: 0,
    ...(given.args === undefined ? {} : { args: JSON.stringify(given.args) }),
  });
  return { result: await over.promise, seen };
}

it("a script has its functions and arguments, and what it returns comes back as JSON [WFL-1]", async () => {
  const { result, seen } = await play(
    `phase('P'); log('a', 1, {}); const x = await agent('hi ' + args.n, { label: 'l', other: 1 })
     args.n = 5
     return { x, n: args.n, spent: budget.spent(), left: String(budget.remaining()), total: budget.total, meta: typeof meta, d: new Map([[1, 2]]), nan: NaN, at: new Date(0).toISOString() }`,
    { args: { n: 1 } },
  );
  expect(result).toEqual({
    ...{ x: "HI 1", n: 5, spent: 7, left: "Infinity", total: null, meta: "undefined", d: {}, nan: null },
    at: "1970-01-01T00:00:00.000Z",
  });
  expect(seen).toEqual([
    { type: "phase", title: "P" },
    { type: "log", text: "a 1 [object]" },
    { type: "agent", id: 1, prompt: "hi 1", options: { label: "l", phase: "P" } },
    expect.objectContaining({ type: "returned" }),
  ]);
});

it("parallel never rejects but for the cap; pipeline drops what throws and ends at null [WFL-1]", async () => {
  const { result, seen } = await play(`
    const tryIt = async (f) => { try { return await f() } catch (e) { return e.name } }
    return [
      await parallel([() => agent('a'), () => { throw new Error('sync') }, () => 7, () => undefined]),
      await parallel([]), await tryIt(() => parallel([agent('b')])), await tryIt(() => parallel('x')),
      await tryIt(() => parallel(Array.from({ length: 4097 }, () => () => 1))),
      await pipeline([1, 2, 3], (p) => p + 1, (p) => { if (p === 3) throw new Error('no'); return p === 4 ? null : p }, (p, item, index) => [p, item, index]),
      await pipeline([1, 2]), await tryIt(() => pipeline([1], [(x) => x])),
    ]`);
  expect(result).toEqual([
    ...[["A", null, 7, null], [], "TypeError", "TypeError", "Error"],
    ...[[[2, 1, 0], null, null], [1, 2], "TypeError"],
  ]);
  expect(seen.filter(({ type }) => type === "failure")).toEqual([
    { type: "failure", text: "parallel[1] failed: sync" },
    { type: "failure", text: "pipeline[1] failed: no" },
  ]);
});

it("a throw is reported with the line of the script [WFL-2]", async () => {
  expect((await play("const a = 1\n\nthrow new RangeError('far')")).result).toEqual({
    threw: "RangeError: far",
    line: 4,
  });
  // Thrown by what a script calls, and by nothing in it.
  expect((await play("\nawait agent('a')\nawait parallel('x')")).result).toMatchObject({ line: 4 });
  for (const body of ["return 1n", "await agent('a'); return 1n"])
    expect((await play(body)).result).toEqual({ threw: expect.any(String), line: undefined });
  expect((await play("return () => 1")).result).toMatchObject({
    threw: expect.stringContaining("TypeError"),
  });
  expect((await play("const a = []; a.push(a); return a")).result).toMatchObject({
    threw: expect.stringContaining("TypeError"),
  });
});

it("fields named as those of a frozen prototype can be set on objects of a script [WFL-2]", async () => {
  const { result } = await play(`
    class Mine extends Error { constructor(m) { super(m); this.name = 'Mine' } }
    const o = {}; o.toString = () => 'own'; const e = new Error('x'); e.message = 'y'
    return [new Mine('m').name, String(o), e.message, Object.prototype.toString.call([]), Object.isFrozen(Array.prototype)]`);
  expect(result).toEqual(["Mine", "own", "y", "[object Array]", true]);
});

it("timers run in the order in which they are due, whatever the machine does meanwhile [WFL-2]", async () => {
  const { result } = await play(`
    const seen = []; let count = 0
    await new Promise((done) => { setTimeout(() => { seen.push('late ' + count); done() }, 30)
      const tick = () => { count += 1; setTimeout(tick, 10) }; setTimeout(tick, 10)
      clearTimeout(setTimeout(() => seen.push('never'), 1)) })
    return seen`);
  expect(result).toEqual(["late 2"]);
});

it("a wait that is no time, or longer than a timer can wait, is none [WFL-2]", async () => {
  const { result } = await play(`
    const seen = []
    const after = (ms) => new Promise((done) => setTimeout(() => { seen.push(String(ms)); done() }, ms))
    await Promise.all([after(20), after(Infinity), after(2 ** 31), after(-1), after('x')])
    return seen`);
  expect(result).toEqual(["Infinity", "2147483648", "-1", "x", "20"]);
});

const clockAndChance = [
  "Date['now']()",
  "Reflect.construct(Date, [])",
  "new (class extends Date {})()",
  "new (Object.getPrototypeOf(class extends Date {}))()",
  "new (new Date(0).constructor)()",
  "Reflect.construct(Object, [], Date) && Reflect.construct(Date, [], Array)",
  "new (Date.prototype.constructor.bind(null))()",
  "[Date].map((D) => new D())",
  "(0, Date)()",
  "Date.call(null)",
  "Reflect.apply(Date, null, [])",
  "Math['random']()",
  "Object.getOwnPropertyDescriptor(Math, 'random').value()",
  "new Intl.DateTimeFormat().format()",
  "new Intl.DateTimeFormat('en', { timeStyle: 'full' }).format(undefined)",
  "Intl.DateTimeFormat().formatToParts()",
  "Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format').get.call(new Intl.DateTimeFormat())()",
  "[undefined].map(new Intl.DateTimeFormat().format)",
  "Temporal.Now.instant()",
  "Temporal.Now.plainDateISO()",
];
const noWayOut = [
  "eval('1')",
  "(0, eval)('1')",
  "new Function('return 1')()",
  "(() => {}).constructor('return process')()",
  "(async () => {}).constructor('return process')()",
  "(function* () {}).constructor('return process')()",
  "(async function* () {}).constructor('return 1')()",
  "this.constructor.constructor('return process')()",
  "globalThis.constructor.constructor('return process')()",
  "agent.constructor.constructor('return process')()",
  "agent('x').constructor.constructor('return process')()",
  "args.constructor.constructor('return process')()",
  "budget.spent.constructor('return process')()",
  "console.log.constructor('return process')()",
  "setTimeout.constructor('return process')()",
  "Reflect.construct(Function, ['return 1'])()",
  "Reflect.getPrototypeOf(agent).constructor('return 1')()",
  "process.exit()",
  "require('fs')",
  "module.exports",
  "fetch('http://127.0.0.1')",
  "Buffer.from('x')",
  "new URL('http://x')",
  "new TextEncoder()",
  "structuredClone({})",
  "crypto.randomUUID()",
  "performance.now()",
  "queueMicrotask(() => 1)",
  "setInterval(() => 1)",
  "setImmediate(() => 1)",
  "new AbortController()",
  "new WebAssembly.Memory({ initial: 1 })",
  "new SharedArrayBuffer(8)",
  "Atomics.add(new Int32Array(8), 0, 1)",
  "new WeakRef({})",
  "new FinalizationRegistry(() => 1)",
  "atob('eA==')",
  "gc()",
  "meta.name",
  "Array.prototype.push = 1",
  "Object.prototype.x = 1",
  "Array.prototype.map = function () { return 1 }",
  "Object.prototype.toString = () => 'x'",
  "Promise.prototype.then = () => 1",
  "Promise.resolve = () => 1",
  "JSON.stringify = () => 'x'",
  "Object.setPrototypeOf(Array.prototype, null)",
  "Object.defineProperty(Map.prototype, 'get', { value: 1 })",
  "(function* () {})().__proto__.__proto__.next = 1",
  "Error.prepareStackTrace = (_, frames) => frames",
  "Error.captureStackTrace.constructor('return 1')()",
  "agent.x = 1",
  "budget.total = 5",
  "arguments.callee",
  "setTimeout('log(1)', 1)",
  "Error.stackTraceLimit = Infinity",
  "Reflect.apply(Function, null, ['return 1'])()",
  "Object.getPrototypeOf(Object.getPrototypeOf(async function* () {})).constructor('return 1')()",
  "Reflect.construct((() => {}).constructor, ['return 1'], Array)",
  "Function.prototype.caller",
  "(() => {}).caller",
  "Function.prototype.call.call(Function, null, 'return 1')()",
  "Object.getPrototypeOf([].values().map((x) => x)).next = 1",
  "Object.getPrototypeOf(Iterator.from({ next() {} })).next = 1",
  "Object.getPrototypeOf(new Intl.Segmenter().segment('')).containing = 1",
  "Object.getPrototypeOf(Uint8Array).from = 1",
  "Symbol.prototype.description = 1",
  "Intl.DateTimeFormat = 1",
  "Reflect.defineProperty(RegExp.prototype, 'exec', { value: () => null }) || null.x",
  "globalThis.__defineGetter__('JSON', () => 1)",
  "console.log = 1",
  "args.constructor.defineProperty(Object.prototype, 'x', { value: 1 })",
  "navigator.userAgent",
  "new MessageChannel()",
  "new BroadcastChannel('x')",
  "new Worker('x')",
  "WebAssembly.compile(new Uint8Array(8))",
  "new Blob([])",
  "new DOMException().stack.x",
  "new EventTarget()",
];

it("no way leads to clock, chance, code from strings, or out of the realm [WFL-2]", async () => {
  const tries = [...clockAndChance, ...noWayOut];
  const body = tries.map((code) => `t(() => ${code})`).join("\n");
  const { result } = await play(
    `const out = []\nconst t = (f) => { try { out.push(String(f())) } catch (e) { out.push('THROWS ' + e.name) } }\n${body}\nreturn out`,
    { args: {} },
  );
  expect(tries.length).toBeGreaterThanOrEqual(60);
  const open = tries.filter((_code, index) => !String((result as string[])[index]).startsWith("THROWS"));
  expect(open).toEqual([]);
});

const replacements = [
  "globalThis.JSON = { stringify: () => forged }",
  "delete globalThis.JSON",
  "Object.defineProperty(globalThis, 'JSON', { get: () => ({ stringify: () => forged }) })",
  "Reflect.set(globalThis, 'JSON', { stringify: () => forged })",
  "Object.assign(globalThis, { Object: null, Promise: null, Reflect: null, Array: null, String: null, Math: null, Date: null })",
  "globalThis.Promise = class extends Promise {}",
  "globalThis.Date = 5",
  "globalThis.globalThis = {}",
  "Object.prototype.toJSON = () => forged",
  "Object.defineProperty(Array.prototype, 'toJSON', { value: () => forged })",
  "String.prototype.toJSON = () => forged",
  "Reflect.setPrototypeOf(globalThis, new Proxy({}, { get: () => forged }))",
  "globalThis.__proto__.toJSON = () => forged",
  "Reflect.apply(Object.prototype.__defineGetter__, Object.prototype, ['messages', () => forged])",
];

it("a script cannot replace what its messages are made with, nor write messages itself [WFL-2]", async () => {
  const forged = JSON.stringify({ messages: [{ type: "returned", value: '"forged"' }] });
  for (const attack of replacements) {
    const { result, seen } = await play(
      `const forged = ${JSON.stringify(forged)}\ntry { ${attack} } catch {}\nconst said = await agent('a')\nreturn { said, own: [1, { b: 'c' }] }`,
    );
    expect({ attack, result }).toEqual({ attack, result: { said: "A", own: [1, { b: "c" }] } });
    expect(seen.map(({ type }) => type)).toEqual(["agent", "returned"]);
  }
});

it("objects of a script that act when they are read only harm the script [WFL-2]", async () => {
  const { result, seen } = await play(
    `const tried = async (f) => { try { return await f() } catch (error) { return [error instanceof Error, typeof error.constructor.constructor === 'function' && String(error).slice(0, 30)] } }
    const thrower = new Proxy(function () {}, { get() { throw new Error('trap') }, ownKeys() { throw new Error('trap') }, getPrototypeOf() { throw new Error('trap') } })
    return [
      await tried(() => agent({ toString() { throw new Error('own') } })),
      await tried(() => agent('a', { get label() { throw new Error('own') } })),
      await tried(() => agent('b', thrower)),
      await tried(() => agent('c', { label: { toString: () => 'x' } })),
      await tried(() => agent('d', { schema: { toJSON: () => ({ type: 'object', __proto__: { polluted: 1 } }) } })),
      await tried(() => parallel(new Proxy([() => 1], {}))),
      await tried(() => parallel([() => thrower])),
      await tried(() => pipeline([thrower], () => 5)),
      await tried(() => phase(thrower)), await tried(() => log(thrower)),
      await tried(() => parallel([() => ({ then(done) { done(5); done(6); throw new Error('late') } })])),
      await tried(() => (async function* () { yield* thrower })().next()),
      await tried(() => args.__proto__.polluted = 1), ({}).polluted, Object.keys(args), args.constructor.prototype === Object.prototype,
    ]`,
    { args: JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{}}}') },
  );
  expect(Array.isArray(result)).toBe(true);
  const said = result as unknown[];
  expect(said[0]).toEqual([true, "Error: own"]);
  expect(said[1]).toEqual([true, "Error: own"]);
  expect(said[10]).toEqual([5]);
  expect(said[13]).toBeNull();
  // All that came out is what the script's own functions sent, in their form.
  for (const message of seen)
    expect(["agent", "returned", "phase", "log", "failure"]).toContain(message.type);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

const thrown = [
  "{ get stack() { throw 1 } }",
  "{ get message() { throw 1 } }",
  "{ message: { toString() { throw 1 } }, name: 5 }",
  "new Proxy({}, { get() { throw 1 }, has() { throw 2 } })",
  "new Proxy(function () {}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })",
  "Object.create(null)",
  "{ toString() { throw 1 } }",
  "undefined",
  "Symbol('x')",
];

it.each(thrown)("a script that throws %s ends with an error [WFL-2]", async (value) => {
  expect((await play(`throw ${value}`)).result).toMatchObject({ threw: expect.any(String) });
});

it("whatever is thrown in a list, null is in its place; in a timer it ends the script [WFL-1, WFL-2]", async () => {
  const items = thrown.map((value) => `() => { throw ${value} }`).join(", ");
  const { result } = await play(
    `return [await parallel([${items}, () => 5]), await pipeline([${items}], (item) => item())]`,
  );
  const nulls = thrown.map(() => null);
  expect(result).toEqual([[...nulls, 5], nulls]);
  const late = await play(`setTimeout(() => { throw ${thrown[0]} }, 1); await new Promise(() => {})`);
  expect(late.result).toMatchObject({ threw: expect.any(String) });
});

it.each([
  "await new Promise(() => {})",
  "await { then() {} }",
  "await agent('a'); await new Promise(() => {})",
  "agent('nobody waits'); await new Promise(() => {})",
  "await new Promise((done) => clearTimeout(setTimeout(done, 5)))",
  "await new Promise((done) => setTimeout(() => 1, 5))",
  "return { then() {} }",
  "const again = () => setTimeout(again, 0); again(); await new Promise(() => {})",
])("a script that nothing can make go on ends with a sentence: %s [WFL-2]", async (body) => {
  expect((await play(body)).result).toEqual({ broke: expect.stringContaining("can never happen") });
});

it("what a script sends in all is limited, however small its pieces are [WFL-2]", async () => {
  const { result } = await play("for (;;) { log('x'.repeat(10_000)); await agent('a') }", { sentMb: 2 });
  expect(result).toEqual({ broke: expect.stringContaining("more than 2 MB") });
});

it("a flood of messages, and values that are too large, end the script and nothing else [WFL-2]", async () => {
  const many = await play("for (;;) log('x'.repeat(1000))", { memoryMb: 64, timeMs: 20_000 });
  expect(many.result).toMatchObject({ broke: expect.any(String) });
  const large = await play("return 'x'.repeat(40_000_000)");
  expect(large.result).toMatchObject({ broke: expect.stringContaining("32 MB") });
  const timers = await play("for (let n = 0; n < 5000; n += 1) setTimeout(() => 1, 1000)");
  expect(timers.result).toMatchObject({ threw: expect.stringContaining("4096 timers") });
});

it("a stack says nothing of the machine [WFL-2]", async () => {
  const { result } = await play(
    "const far = () => new Error('x').stack\nreturn [far(), (() => { try { null.x } catch (error) { return error.stack } })()].join('\\n')",
  );
  expect(result).not.toMatch(/[/\\](?:home|root|work|tmp|usr|Users)\b|rt-/);
});

it("a stack that overflows gives the script nothing of the process [WFL-2]", async () => {
  const { result } = await play(`
    const found = []
    const dig = (f) => { try { dig(f); f() } catch (e) { if (!(e instanceof RangeError) && !(e instanceof Error)) found.push(Object.prototype.toString.call(e)) } }
    for (const f of [() => log('x'), () => agent('x'), () => phase('x'), () => setTimeout(() => 1, 1), () => budget.spent()]) dig(f)
    return found`);
  expect(result).toEqual([]);
});

it("code that does not wait ends at its time, also in promises, timers and expressions [WFL-2]", async () => {
  const limited = { timeMs: 300 };
  const bombs = [
    "for (;;);",
    "(async () => { for (;;) await null })(); await new Promise(() => {})",
    "await new Promise((done) => setTimeout(() => { for (;;); }, 1))",
    "await agent('x'); for (;;);",
    "/^(a+)+$/.test('a'.repeat(60) + 'b')",
  ];
  const results = await Promise.all(bombs.map((bomb) => play(bomb, limited)));
  expect(results.map(({ result }) => result)).toEqual(
    bombs.map(() => ({ broke: expect.stringContaining("0.3 s without waiting") })),
  );
});

it("memory on the heap and beside it is limited [WFL-2]", async () => {
  const limited = { memoryMb: 64 };
  const bombs = [
    "const a = []; for (;;) a.push(new Array(10000).fill(1.5))",
    "const a = []; for (;;) { a.push(new Uint8Array(50_000_000).fill(1)); await new Promise((f) => setTimeout(f, 5)) }",
  ];
  for (const bomb of bombs)
    expect((await play(bomb, limited)).result).toEqual({ broke: expect.stringContaining("64 MB") });
});

it("its process is behind the wall, where the machine has one: what gets out of a script reaches no network [WFL-2]", async () => {
  const start = await createWall().start();
  if (start.type === "unavailable") return expect(start.why).not.toBe("");
  const seen: WallPlaces[] = [];
  const wall: Wall = {
    start: async () => ({
      ...start,
      wrap(program, places) {
        seen.push(places);
        return start.wrap(program, places);
      },
    }),
  };
  expect((await play("return await agent('a')", { wall })).result).toBe("A");
  const heavy =
    "const a = []; for (;;) { a.push(new Uint8Array(50_000_000).fill(1)); await new Promise((f) => setTimeout(f, 5)) }";
  expect((await play(heavy, { wall, memoryMb: 64 })).result).toEqual({
    broke: expect.stringContaining("64 MB"),
  });
  // The same wall around a program that tries.
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const tries = `require("node:net").connect(${port}, "127.0.0.1").on("connect", () => process.exit(7)).on("error", () => process.exit(3))`;
  const [places] = seen;
  if (places === undefined) throw new Error("nothing was wrapped");
  const walled = await start.wrap({ file: process.execPath, arguments: ["--eval", tries] }, places);
  const ended = (file: string, words: readonly string[]) =>
    spawnSync(file, words, { cwd: "/", env: {} }).status;
  expect(walled.sideInput === undefined ? ended(walled.file, walled.arguments) : 3).toBe(3);
  server.close();
});
