import { type ComponentChild, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons.ts";
import { exported } from "./use-events.ts";

/** MCP servers at which the person has to log in. */
export function LoginOffers(): ComponentChild {
  const [servers, setServers] = useState<readonly string[]>([]);
  useEffect(() => {
    if (exported !== undefined) return;
    // Without an answer there is nothing to offer.
    askForLogins<{ servers: readonly string[] }>("api/logins").then(
      (answer) => setServers(answer.servers),
      () => undefined,
    );
  }, []);
  return servers.map((server) => h(LoginOffer, { key: server, server }));
}

function LoginOffer({ server }: { server: string }): ComponentChild {
  const [status, setStatus] = useState(`The MCP server ${server} wants you to log in.`);
  const [address, setAddress] = useState<string>();
  const [isDone, setDone] = useState(false);
  const logIn = async (): Promise<void> => {
    try {
      const { address: target } = await askForLogins<{ address: string }>("api/login", { server });
      setAddress(target);
      setStatus(`Log in to ${server} in the tab that opens.`);
      window.open(target, "_blank", "noopener");
      const query = new URLSearchParams({ server });
      setStatus((await askForLogins<{ outcome: string }>(`api/login?${query}`)).outcome);
      setDone(true);
    } catch (error) {
      setStatus(error instanceof Error ? error.message : String(error));
    } finally {
      setAddress(undefined);
    }
  };
  return h(
    "p",
    { class: "ban", role: "status" },
    h(Icon, { name: isDone ? "ok" : "wait" }),
    h("span", { class: "grow" }, status),
    address === undefined
      ? null
      : h("a", { class: "btn", href: address, target: "_blank", rel: "noopener noreferrer" }, "Open the tab"),
    isDone || address !== undefined
      ? null
      : h("button", { class: "btn", type: "button", onClick: () => void logIn() }, "Log in"),
  );
}

/** The answer, or an error in the server's words. */
async function askForLogins<Answer>(path: string, body?: object): Promise<Answer> {
  const sent =
    body === undefined
      ? {}
      : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, sent);
  const answer: unknown = await response.json().catch(() => ({}));
  if (response.ok) return answer as Answer; // The server's own form.
  const { message, advice } = answer as Record<string, string | undefined>;
  throw new Error([message ?? `The studio answered ${response.status}.`, advice].filter(Boolean).join(" "));
}
