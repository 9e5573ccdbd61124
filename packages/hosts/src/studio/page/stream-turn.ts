/**
 * Browsers open six connections to one address, and a stream holds one, so the tabs that are not looked at do without. One of all
 * tabs keeps its stream nevertheless and shares with the others how many calls wait, since that is in the title of each.
 */

const name = `retinue-studio ${location.pathname}`;
const listeners = new Set<() => void>();
let isKeeper = false;

/** Whether this tab may hold a stream now. */
export function mayStream(): boolean {
  // Pages of other computers and files have no locks.
  return !document.hidden || isKeeper || navigator.locks === undefined;
}

/** Calls `onTurn` when that may have changed. */
export function onStreamTurn(onTurn: () => void): () => void {
  listeners.add(onTurn);
  return () => listeners.delete(onTurn);
}

const channel = new BroadcastChannel(name);

/** Shares with the other tabs how many calls wait. */
export function shareWaitingCount(count: number): void {
  channel.postMessage(count);
}

export function onWaitingCount(onCount: (count: number) => void): () => void {
  const listen = ({ data }: MessageEvent): void => onCount(Number(data));
  channel.addEventListener("message", listen);
  return () => channel.removeEventListener("message", listen);
}

function notify(): void {
  for (const onTurn of listeners) onTurn();
}

document.addEventListener("visibilitychange", notify);
// Held until the tab is closed; then another one gets it.
void navigator.locks
  ?.request(name, () => {
    isKeeper = true;
    notify();
    return new Promise(() => undefined);
  })
  .catch(() => undefined);
