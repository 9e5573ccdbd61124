import type { ConversationEntry, FileEdit } from "@retinue/core/inspection/conversation-fold.ts";
import { describeDuration } from "@retinue/core/inspection/describe-duration.ts";
import { describeStep } from "@retinue/core/inspection/describe-step.ts";
import { type ComponentChild, h } from "preact";
import { diffLines } from "./diff-lines.ts";
import { memo } from "./parts.ts";
import { agentLink, type Place, sessionLink } from "./route.ts";
import { exported, useActs } from "./use-events.ts";

interface ConversationProps {
  readonly entries: readonly ConversationEntry[];
  /** How many earlier entries are not here. */
  readonly from: number;
  readonly place: Place;
  /** What the model is writing now. */
  readonly writing: string | undefined;
  readonly mayFork: boolean;
  readonly onEarlier: () => void;
}

/** What was said and done, oldest first. The browser lays out only what is near the screen. */
export function ConversationPart(props: ConversationProps): ComponentChild {
  const { entries, from, place, writing, mayFork, onEarlier } = props;
  return h(
    "section",
    { "aria-labelledby": "conversation" },
    h("h2", { id: "conversation" }, "Conversation"),
    from === 0 ? null : h(Earlier, { from, onEarlier }),
    h(
      "ol",
      { class: "conversation" },
      entries.map((entry, at) => h(Item, { key: from + at, entry, place, mayFork })),
    ),
    writing === undefined
      ? null
      : h("div", { class: "text writing", "aria-label": "Being written", role: "group" }, writing),
  );
}

function Earlier({ from, onEarlier }: { from: number; onEarlier: () => void }): ComponentChild {
  if (exported !== undefined)
    return h("p", { class: "soft" }, `${from} earlier entries are not in this file.`);
  return h("button", { type: "button", onClick: onEarlier }, `Show ${from} earlier entries`);
}

interface ItemProps {
  readonly entry: ConversationEntry;
  readonly place: Place;
  readonly mayFork: boolean;
}

const Item = memo(drawItem);

function drawItem({ entry, place, mayFork }: ItemProps): ComponentChild {
  const canFork = mayFork && (entry.type === "text" || (entry.type === "prompt" && !entry.isMeta));
  return h("li", {}, h(Entry, { entry, place }), canFork ? h(Fork, { entry, place }) : null);
}

function Fork(props: {
  entry: Extract<ConversationEntry, { type: "prompt" | "text" | "thinking" }>;
  place: Place;
}): ComponentChild {
  const { entry, place } = props;
  const { status, isBusy, act } = useActs();
  if (entry.id === undefined) return null;
  const fork = async (): Promise<void> => {
    const about = { project: place.project, sessionId: place.id, agentId: "main", action: "fork" } as const;
    const done = await act({ ...about, message: entry.id ?? "" });
    if (done?.sessionId !== undefined)
      location.hash = sessionLink({ project: place.project, id: done.sessionId });
  };
  return h(
    "p",
    { class: "soft small" },
    h(
      "button",
      { type: "button", disabled: isBusy, onClick: () => void fork() },
      entry.type === "prompt" ? "Fork before this prompt" : "Fork after this answer",
    ),
    h("span", { role: "status" }, ` ${status}`),
  );
}

function Entry({ entry, place }: { entry: ConversationEntry; place: Place }): ComponentChild {
  switch (entry.type) {
    case "prompt":
      return entry.isMeta
        ? h("details", {}, h("summary", {}, "From the runtime"), h("div", { class: "text" }, entry.text))
        : h("div", { class: "prompt" }, h("h3", {}, "Prompt"), h("div", { class: "text" }, entry.text));
    case "text":
      return h("div", { class: "text" }, entry.text);
    case "thinking":
      return h("details", {}, h("summary", {}, "Thinking"), h("div", { class: "text soft" }, entry.text));
    case "call":
      return h(Call, { call: entry, place });
    case "note": {
      const { what, detail, isBad } = describeStep(entry.step);
      return h("p", { class: isBad ? "bad" : "soft" }, `${what}: ${detail}`);
    }
  }
}

type CallEntry = Extract<ConversationEntry, { type: "call" }>;

function Call({ call, place }: { call: CallEntry; place: Place }): ComponentChild {
  const { tool, about, outcome, durationMs, edits = [] } = call;
  return h(
    "details",
    { class: `call ${outcome}`, open: edits.length > 0 },
    h(
      "summary",
      {},
      h("b", {}, tool),
      ` ${about} `,
      outcome === "ok" ? null : h("span", { class: `badge ${outcome}` }, outcome),
      h("span", { class: "soft" }, ` ${describeDuration(durationMs)}`),
    ),
    h("p", { class: outcome === "refused" ? "bad" : "soft" }, decisionOf(call)),
    edits.map((edit, at) => h(Diff, { key: at, edit })),
    edits.length > 0 ? null : h("pre", { tabIndex: 0, "aria-label": "Arguments" }, call.input),
    call.result === undefined ? null : h("pre", { tabIndex: 0, "aria-label": "Result" }, call.result),
    call.agentId === undefined
      ? null
      : h("a", { href: agentLink(place, call.agentId) }, "Open the agent it started"),
  );
}

/** Why the call was allowed or refused, as far as the journal says. */
function decisionOf({ outcome, asked, decidedMs, reason, allowed }: CallEntry): string {
  const took = decidedMs === undefined ? "" : ` Deciding took ${describeDuration(decidedMs)}.`;
  if (outcome === "refused")
    return `Refused${asked === true ? " by a person" : ""}: ${reason ?? "no reason was written down"}.${took}`;
  if (outcome === "running") return "Not decided or not finished yet.";
  const failure = reason === undefined ? "" : ` It ${outcome}: ${reason}`;
  if (allowed !== undefined) return `Allowed: ${allowed}.${took}${failure}`;
  const who = asked === true ? "Allowed by the person who was asked." : "";
  return `${who || "The transcript does not say why it was allowed."}${took}${failure}`;
}

function Diff({ edit }: { edit: FileEdit }): ComponentChild {
  return h(
    "figure",
    { class: "diff" },
    h("figcaption", {}, edit.file),
    h(
      "pre",
      { tabIndex: 0, "aria-label": `Changes of ${edit.file}` },
      diffLines(edit.before, edit.after).map(({ kind, text }, at) =>
        h("span", { key: at, class: kind }, `${signs[kind]}${text}\n`),
      ),
    ),
  );
}

const signs = { same: "  ", removed: "- ", added: "+ " } as const;
