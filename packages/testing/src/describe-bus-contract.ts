import type { JsonValue } from "@retinue/cluster/store.ts";
import { becomes } from "./becomes.ts";
import type { TestRunner } from "./describe-model-contract.ts";
import type { WithStore } from "./describe-store-contract.ts";

/** What every Bus promises. */
export function describeBusContract(withStore: WithStore, runner: TestRunner): void {
  describeSubscriptions(withStore, runner);
  describePublishing(withStore, runner);
}

function describeSubscriptions(withStore: WithStore, { test, expect }: TestRunner): void {
  test("who has subscribed hears what is published on the topic, in order, and nothing else", () =>
    withStore(async ({ bus }) => {
      const first: JsonValue[] = [];
      const second: JsonValue[] = [];
      await bus.subscribe("a", (event) => void first.push(event));
      await bus.subscribe("a", (event) => void second.push(event));
      const events: JsonValue[] = [1, { text: "zwei \u0000" }, null, ["drei"]];
      bus.publish("b", "not for us");
      for (const event of events) bus.publish("a", event);
      await becomes(() => first.length >= 4 && second.length >= 4);
      expect(first).toEqual(events);
      expect(second).toEqual(events);
    }));

  test("a closed subscription hears nothing more, and others on the topic continue", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      const kept: JsonValue[] = [];
      const subscription = await bus.subscribe("a", (event) => void received.push(event));
      await bus.subscribe("a", (event) => void kept.push(event));
      bus.publish("a", 1);
      await becomes(() => received.length === 1 && kept.length === 1);
      subscription.close();
      bus.publish("a", 2);
      await becomes(() => kept.length === 2);
      const again = await bus.subscribe("a", (event) => void received.push(event));
      bus.publish("a", 3);
      await becomes(() => received.length === 2);
      again.close();
      expect(received).toEqual([1, 3]);
    }));

  test("closing a subscription twice does not end one that was made in between", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      const first = await bus.subscribe("a", () => undefined);
      first.close();
      await bus.subscribe("a", (event) => void received.push(event));
      first.close();
      bus.publish("a", 1);
      await becomes(() => received.length === 1);
    }));
}

function describePublishing(withStore: WithStore, { test, expect }: TestRunner): void {
  test("an event that is too large arrives as a notice, and harms nothing after it", () =>
    withStore(async ({ bus }) => {
      const received: JsonValue[] = [];
      await bus.subscribe("a", (event) => void received.push(event));
      const large = "x".repeat(200_000);
      bus.publish("a", large);
      bus.publish("a", "after");
      await becomes(() => received.length === 2);
      const [first] = received;
      expect(
        first === large || (typeof first === "object" && JSON.stringify(first).startsWith('{"oversize":')),
      ).toBe(true);
      expect(received[1]).toBe("after");
    }));

  test("publishing after the store was closed does nothing", () =>
    withStore(async ({ bus, close }) => {
      await close();
      bus.publish("a", 1);
    }));
}
