import type { OverviewAgent } from "@retinue/core/kernel/live/session-overview.ts";
import type { StudioAction } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { labelOf } from "./parts.ts";
import type { Place } from "./route.ts";
import { exported, useActs } from "./use-events.ts";

interface ActBarProps {
  readonly place: Place;
  readonly agent: OverviewAgent | undefined;
  readonly agentId: string;
}

/** The message field of an agent: only what another process can do to it is offered. */
export function ActBar({ place, agent, agentId }: ActBarProps): ComponentChild {
  const [text, setText] = useState("");
  const { status, isBusy, act } = useActs();
  if (agent === undefined || exported !== undefined) return null;
  const isMain = agentId === "main";
  const action = agent.isLive ? "message" : "resume";
  const send = async (): Promise<void> => {
    const own = text.trim() === "" ? {} : { text };
    const done = await act({ project: place.project, sessionId: place.id, agentId, action, ...own });
    if (done !== undefined) setText("");
  };
  const isEmpty = text.trim() === "" && (isMain || action === "message");
  const resuming = isMain ? "Resume the session with a prompt" : `Resume ${labelOf(agent)} with a prompt`;
  const label = agent.isLive ? `Message to ${labelOf(agent)}, read between its turns` : resuming;
  return h(
    "form",
    {
      class: "comp",
      onSubmit: (event: Event) => {
        event.preventDefault();
        if (!isEmpty && !isBusy) void send();
      },
    },
    h("input", {
      class: "field",
      "aria-label": label,
      placeholder: label,
      value: text,
      onInput: (event: Event) => setText((event.target as HTMLInputElement).value),
    }),
    h(
      "button",
      { class: "btn", type: "submit", disabled: isBusy || isEmpty },
      agent.isLive ? "Send " : "Resume ",
      h("kbd", {}, "Enter"),
    ),
    h("span", { role: "status" }, status),
  );
}

/** Stop asks once, in place. */
export function StopButtons({
  place,
  agent,
  agentId,
  label,
}: ActBarProps & { readonly label: string }): ComponentChild {
  const { status, isBusy, act } = useActs();
  const [isSure, setSure] = useState(false);
  if (agent === undefined || exported !== undefined || !agent.isLive) return null;
  const send = (action: StudioAction): void =>
    void act({ project: place.project, sessionId: place.id, agentId, action });
  const button = (text: string, onClick: () => void, tone = ""): ComponentChild =>
    h("button", { class: `btn ghost ${tone}`, type: "button", disabled: isBusy, onClick }, text);
  return h(
    "span",
    { class: "row" },
    agentId === "main" ? null : button("Background", () => send("background")),
    isSure
      ? [button("Stop it now", () => send("stop"), "bad"), button("Keep", () => setSure(false))]
      : button(label, () => setSure(true), "bad"),
    h("span", { role: "status" }, status),
  );
}
