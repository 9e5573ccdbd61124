/**
 * Records many sessions with a scripted model and replays each: all requests must be the same to the byte, without network.
 * `npm run replay:check -- 50` takes another number of sessions.
 */
import { Socket } from "node:net";
import { describeReplay } from "@retinue/core/replay/describe-replay.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { makeScenario, recordScenario, scenarios } from "../test/replay/scenarios.ts";

const count = Number(process.argv[2] ?? 200);
let connections = 0;
const connect = Socket.prototype.connect;
Socket.prototype.connect = function (this: Socket, ...given: never[]) {
  connections += 1;
  return Reflect.apply(connect, this, given);
};

const wanted = [
  ...scenarios,
  ...Array.from({ length: Math.max(0, count - scenarios.length) }, (_, index) => makeScenario(index + 100)),
];
let requests = 0;
let failed = 0;
let replayMs = 0;
for (const scenario of wanted.slice(0, count)) {
  await using sample = await createSampleRuntime(scenario.steps, { durability: "os", ...scenario.options });
  const sent = new Set(await recordScenario(sample, scenario));
  const before = connections;
  const start = performance.now();
  const made: string[] = [];
  const report = await sample.runtime.replay(undefined, {
    onRequest: (one) => made.push(JSON.stringify(one)),
  });
  replayMs += performance.now() - start;
  requests += report.requests.made;
  const isSame =
    report.differences.length === 0 && made.length > 0 && made.every((request) => sent.has(request));
  if (isSame && connections === before) continue;
  failed += 1;
  console.log(`${scenario.name}: ${connections - before} connections\n${describeReplay(report)}\n`);
}
const sessions = Math.min(count, wanted.length);
console.log(
  `${sessions - failed} of ${sessions} sessions replayed with the same requests: ${requests} requests, ${connections} connections, ${(replayMs / sessions).toFixed(1)} ms each.`,
);
process.exitCode = failed === 0 ? 0 : 1;
