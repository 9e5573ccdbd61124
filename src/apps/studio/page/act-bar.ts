import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { OverviewAgent } from "../session-overview.ts";
import type { StudioAction } from "../studio-messages.ts";
import type { Place } from "./route.ts";
import { sendAct } from "./use-events.ts";

interface ActBarProps {
  readonly place: Place;
  readonly agent: OverviewAgent | undefined;
  readonly agentId: string;
}

const labels = {
  session: "Resume the session with a prompt",
  resume: "Resume this agent with a prompt",
  message: "Message to this agent",
} as const;

/** What can be done to an agent from here: only what another process can do to it is offered. */
export function ActBar({ place, agent, agentId }: ActBarProps): ComponentChild {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const [isBusy, setBusy] = useState(false);
  if (agent === undefined) return null;
  const isMain = agentId === "main";
  if (isMain && agent.isLive)
    return h(
      "p",
      { class: "soft" },
      "The main agent runs in another program; write to it there. Its child agents can be stopped and written to here.",
    );
  const send = async (action: StudioAction): Promise<void> => {
    setBusy(true);
    setStatus(action === "stop" ? "Stopping…" : "Sending…");
    const own = text.trim() === "" || action === "stop" ? {} : { text };
    const request = { project: place.project, sessionId: place.id, agentId, action, ...own };
    const outcome = await sendAct(request).then(
      (done) => {
        if (action !== "stop") setText("");
        return done;
      },
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    setStatus(outcome);
    setBusy(false);
  };
  const action = agent.isLive ? "message" : "resume";
  const isEmpty = text.trim() === "" && (isMain || action === "message");
  return h(
    "form",
    {
      class: "acts",
      onSubmit: (event: Event) => {
        event.preventDefault();
        void send(action);
      },
    },
    h(
      "label",
      {},
      labels[isMain ? "session" : action],
      h("textarea", {
        rows: 2,
        value: text,
        onInput: (event: Event) => setText((event.target as HTMLTextAreaElement).value),
      }),
    ),
    h("button", { type: "submit", disabled: isBusy || isEmpty }, agent.isLive ? "Send" : "Resume"),
    agent.isLive
      ? h("button", { type: "button", disabled: isBusy, onClick: () => void send("stop") }, "Stop this agent")
      : null,
    h("span", { role: "status" }, status),
  );
}
