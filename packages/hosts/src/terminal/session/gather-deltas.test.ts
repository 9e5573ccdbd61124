import { setImmediate as turn } from "node:timers/promises";
import type { ModelEvent } from "@retinue/core/conversation/message.ts";
import type { Model } from "@retinue/core/models/model.ts";
import { expect, test } from "vitest";
import { gatherDeltas } from "./gather-deltas.ts";

const end = { type: "request-waiting" } as const;

function delta(text: string, index = 0): ModelEvent {
  return { type: "text-delta", index, text };
}

/** A model whose events are made by a generator; nothing else of it is used. */
function modelOf(stream: (signal: AbortSignal) => AsyncGenerator<ModelEvent>): Model {
  return { stream: (_: unknown, { signal }: { signal: AbortSignal }) => stream(signal) } as unknown as Model;
}

async function readAll(model: Model, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream({} as Parameters<Model["stream"]>[0], { signal }))
    events.push(event);
  return events;
}

/** As long as a token of a fast provider takes; less than a pause. */
function token(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 3));
}

test("pieces that come together are one, per block and kind, and nothing changes places [CLI-4]", async () => {
  const model = modelOf(async function* () {
    yield delta("a");
    yield delta("b");
    yield { type: "thinking-delta", index: 0, text: "t" };
    yield { type: "input-delta", index: 1, json: "{" };
    yield { type: "input-delta", index: 1, json: "}" };
    yield end;
    yield delta("c", 2);
    yield delta("d", 3);
  });
  expect(await readAll(gatherDeltas(model, 50))).toEqual([
    delta("ab"),
    { type: "thinking-delta", index: 0, text: "t" },
    { type: "input-delta", index: 1, json: "{}" },
    end,
    delta("c", 2),
    delta("d", 3),
  ]);
});

test("pieces that flow are asked for less often, and none is lost [CLI-4]", async () => {
  const arrived: string[] = [];
  const source = (async () => {
    for (let at = 0; at < 40; at += 1) {
      await token();
      arrived.push(`${at} `);
    }
  })();
  const model = modelOf(async function* () {
    for (let at = 0; at < 40; at += 1) {
      while (arrived[at] === undefined) await turn();
      yield delta(arrived[at] ?? "");
    }
    yield end;
  });
  // Far longer than a token takes, on a busy machine too.
  const events = await readAll(gatherDeltas(model, 300));
  await source;
  expect(events.length).toBeLessThan(20);
  expect(events.map((event) => (event.type === "text-delta" ? event.text : "")).join("")).toBe(
    Array.from({ length: 40 }, (_, at) => `${at} `).join(""),
  );
});

test("an error comes after all that was said before it [CLI-4]", async () => {
  const model = modelOf(async function* () {
    yield delta("said");
    throw new Error("cut");
  });
  const received: ModelEvent[] = [];
  const reading = (async () => {
    for await (const event of gatherDeltas(model, 30).stream({} as Parameters<Model["stream"]>[0], {
      signal: new AbortController().signal,
    }))
      received.push(event);
  })();
  await expect(reading).rejects.toThrow("cut");
  expect(received).toEqual([delta("said")]);
});

test("a reader that leaves closes the model, also in a pause [CLI-4]", async () => {
  let isClosed = false;
  const model = modelOf(async function* () {
    try {
      while (true) {
        await token();
        yield delta("x");
      }
    } finally {
      isClosed = true;
    }
  });
  let count = 0;
  for await (const _ of gatherDeltas(model, 10_000).stream({} as Parameters<Model["stream"]>[0], {
    signal: new AbortController().signal,
  })) {
    count += 1;
    if (count === 2) break;
  }
  expect(isClosed).toBe(true);
});
