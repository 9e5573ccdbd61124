import type { Bus, JsonValue } from "../store.ts";

/** Events within this process. */
export function createLocalBus(): Bus {
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
