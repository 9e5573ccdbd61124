// A page with `useChat` of the AI SDK: the answer as it is written, the children at work, and questions with their buttons.
import { useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useState } from "react";
import type { AgentPart, ApprovalPart, UiMetadata, UiParts } from "retinue";

export function Chat() {
  const { messages, sendMessage, status, error } = useChat<UIMessage<UiMetadata, UiParts>>();
  const [text, setText] = useState("");
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <section key={id} data-role={role}>
          {parts.map((part, index) => {
            const key = `${id}-${index}`;
            if (part.type === "text") return <p key={key}>{part.text}</p>;
            if (part.type === "dynamic-tool")
              return <code key={key}>{`${part.toolName}: ${part.state}`}</code>;
            if (part.type === "data-agent") return <Agent key={key} {...part.data} />;
            if (part.type === "data-approval") return <Approval key={key} {...part.data} />;
            return null;
          })}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input aria-label="prompt" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit" disabled={status !== "ready"}>
          Send
        </button>
      </form>
    </main>
  );
}

function Agent({ agentId, agentType, status, activity, text }: AgentPart) {
  return <aside data-agent={agentId}>{`${agentType} ${status} ${activity} ${text}`}</aside>;
}

function Approval({ id, path, tool, input, state }: ApprovalPart) {
  const answer = (type: "allow" | "deny") =>
    fetch("/api/approvals", {
      method: "POST",
      body: JSON.stringify({ id, answer: type === "allow" ? { type, for: "call" } : { type } }),
    });
  return (
    <fieldset>
      <legend>{`${path?.at(-1)?.name ?? "An agent"} wants ${tool} ${JSON.stringify(input)}: ${state}`}</legend>
      <button type="button" disabled={state !== "waiting"} onClick={() => answer("allow")}>
        Allow
      </button>
      <button type="button" disabled={state !== "waiting"} onClick={() => answer("deny")}>
        Deny
      </button>
    </fieldset>
  );
}
