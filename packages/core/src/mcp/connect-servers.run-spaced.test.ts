import { expect, test } from "vitest";
import { runSpaced } from "./connect-servers.ts";

test("[MCP-1] work that is asked for while it is done is done once more, however often that was", async () => {
  const stop = new AbortController();
  const begun: PromiseWithResolvers<void>[] = [];
  const isDone = Promise.withResolvers<void>();
  const ask = runSpaced(
    () => {
      const work = Promise.withResolvers<void>();
      begun.push(work);
      if (begun.length === 2) isDone.resolve();
      return work.promise;
    },
    { pauseMs: 0, signal: stop.signal },
  );
  ask();
  for (let time = 0; time < 100; time += 1) ask();
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await isDone.promise;
  expect(begun).toHaveLength(2);
  ask();
  stop.abort();
  begun[1]?.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toHaveLength(2);
});
