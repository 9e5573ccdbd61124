import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import type { StudioAction } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { Place } from "./route.ts";
import { exported, useActs } from "./use-events.ts";

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
  const { status, isBusy, act } = useActs();
  if (agent === undefined || exported !== undefined) return null;
  const isMain = agentId === "main";
  const send = async (action: StudioAction): Promise<void> => {
    const takesText = action === "message" || action === "resume";
    const own = text.trim() === "" || !takesText ? {} : { text };
    const done = await act({ project: place.project, sessionId: place.id, agentId, action, ...own });
    if (done !== undefined && takesText) setText("");
  };
  const action = agent.isLive ? "message" : "resume";
  const isEmpty = text.trim() === "" && (isMain || action === "message");
  const button = (label: string, wanted: StudioAction): ComponentChild =>
    h("button", { type: "button", disabled: isBusy, onClick: () => void send(wanted) }, label);
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
      labels[isMain && action === "resume" ? "session" : action],
      h("textarea", {
        rows: 2,
        value: text,
        onInput: (event: Event) => setText((event.target as HTMLTextAreaElement).value),
      }),
    ),
    h("button", { type: "submit", disabled: isBusy || isEmpty }, agent.isLive ? "Send" : "Resume"),
    agent.isLive ? button(isMain ? "Stop the main agent" : "Stop this agent", "stop") : null,
    agent.isLive && !isMain ? button("Move to the background", "background") : null,
    h("span", { role: "status" }, status),
  );
}
