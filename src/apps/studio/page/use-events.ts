import { useEffect, useState } from "preact/hooks";
import type { ActRequest } from "../studio-messages.ts";

const token = new URLSearchParams(location.search).get("token") ?? "";

export interface Followed<S> {
  readonly state: S | undefined;
  /** What went wrong last; undefined while all is well. */
  readonly problem: string | undefined;
}

/** Follows server-sent events and folds each into the state, at most once for each picture that is painted. */
export function useEvents<S, U>(
  path: string,
  query: Readonly<Record<string, string>>,
  fold: (before: S | undefined, update: U) => S,
): Followed<S> {
  const [followed, setFollowed] = useState<Followed<S>>({ state: undefined, problem: undefined });
  const address = `${path}?${new URLSearchParams({ ...query, token })}`;
  useEffect(() => {
    let state: S | undefined;
    let problem: string | undefined;
    let frame = 0;
    const paint = (): void => {
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        setFollowed({ state, problem });
      });
    };
    const source = new EventSource(address);
    source.onopen = () => {
      // After a lost connection the server begins anew.
      state = undefined;
    };
    source.onmessage = ({ data }) => {
      state = fold(state, JSON.parse(String(data)));
      problem = undefined;
      paint();
    };
    source.addEventListener("problem", (event) => {
      problem = JSON.parse(String((event as MessageEvent).data)).message;
      paint();
    });
    source.onerror = () => {
      problem = "The studio does not answer. Is it still running?";
      paint();
    };
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [address]);
  return followed;
}

/** Asks the server to do something; answers with what came of it, or throws with the reason. */
export async function sendAct(request: ActRequest): Promise<string> {
  const response = await fetch("api/act", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  const answer: unknown = await response.json().catch(() => undefined);
  const { outcome, message, advice } = (answer ?? {}) as Record<string, string | undefined>; // The server's own form.
  if (response.ok) return outcome ?? "Done.";
  throw new Error([message ?? `The studio answered ${response.status}.`, advice].filter(Boolean).join(" "));
}
