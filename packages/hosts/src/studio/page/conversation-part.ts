import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { ConversationEntry, FileEdit } from "@retinue/core/inspection/conversation-fold.ts";
import { describeTokens } from "@retinue/core/inspection/describe-duration.ts";
import { describeStep } from "@retinue/core/inspection/describe-step.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffLines } from "../../shared/diff-parts.ts";
import { languageOf } from "../../shared/language-of.ts";
import { colouredCode } from "./code-colours.ts";
import { duration, money, timeOfDay, withoutFolder } from "./format.ts";
import { Icon, StateSign } from "./icons.ts";
import { Markdown } from "./markdown.ts";
import { memo } from "./parts.ts";
import { countLines, type PatchLine, PatchView, patchLines } from "./patch-lines.ts";
import { agentLink, type Place, sessionLink } from "./route.ts";
import { exported, loadResult, useActs } from "./use-events.ts";

interface ConversationProps {
  readonly entries: readonly ConversationEntry[];
  /** How many earlier entries are not here. */
  readonly from: number;
  readonly place: Place;
  readonly agentId: string;
  /** What the model is writing now. */
  readonly writing: string | undefined;
  readonly mayFork: boolean;
  /** How many answers there are by now. */
  readonly turns: number;
  /** The folder of the session, which files are shown without. */
  readonly folder: string | undefined;
  /** A moment to go to. */
  readonly seek: Seek | undefined;
  readonly onEarlier: () => void;
}

/** Someone chose a moment of an agent in the timeline; another object for each time. */
export interface Seek {
  readonly agentId: string;
  readonly at: number;
}

/** What was said and done, oldest first. The browser lays out only what is near the screen. */
export function ConversationPart(props: ConversationProps): ComponentChild {
  const { entries, from, place, agentId, writing, mayFork, turns, folder, seek, onEarlier } = props;
  const end = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const fresh = useFollowing(end, from + entries.length, writing);
  useSeeking(list, { entries, seek });
  const numbers = useMemo(() => turnNumbers(entries, turns), [entries, turns]);
  return h(
    "section",
    { class: "msgs", "aria-labelledby": "conversation" },
    h("h2", { id: "conversation", class: "vh" }, "Conversation"),
    from === 0 ? null : h(Earlier, { from, onEarlier }),
    h(
      "ol",
      { class: "conversation", ref: list },
      entries.map((entry, at) =>
        h(Item, {
          key: from + at,
          entry,
          place,
          agentId,
          position: from + at,
          mayFork,
          turn: numbers[at] ?? 0,
          folder,
        }),
      ),
    ),
    writing === undefined
      ? null
      : h(
          "div",
          { class: "writing", "aria-label": "Being written", role: "group" },
          writtenParts(writing).map((text, at) => h(Markdown, { key: at, text })),
        ),
    h("div", { ref: end }),
    fresh === 0
      ? null
      : h(
          "button",
          { class: "btn fresh", type: "button", onClick: () => end.current?.scrollIntoView() },
          `${fresh} new`,
        ),
  );
}

/** Counted from the end, since earlier entries may not be here. */
function turnNumbers(entries: readonly ConversationEntry[], turns: number): readonly number[] {
  let next = turns;
  return entries
    .toReversed()
    .map((entry) => (entry.type === "turn" ? next-- : 0))
    .toReversed();
}

/** How long something runs, counted by the page. */
function Since({ at }: { at: number | undefined }): ComponentChild {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return at === undefined || exported !== undefined ? null : duration(Math.max(0, now - at));
}

/** What is finished of an answer, and the paragraph or block of code that still grows, so that little is read anew for each word. */
export function writtenParts(text: string): readonly string[] {
  let at = text.length;
  while (at > 0) {
    at = text.lastIndexOf("\n\n", at - 1);
    // A blank line inside a block of code ends nothing.
    const fences = at <= 0 ? 0 : (text.slice(0, at).match(/^ {0,3}(?:```|~~~)/gm)?.length ?? 0);
    if (at > 0 && fences % 2 === 0)
      return [text.slice(0, at), text.slice(at + 2)].filter((part) => part !== "");
  }
  return [text];
}

/** Brings the step that was under way at a moment to the top. */
function useSeeking(
  list: { readonly current: HTMLOListElement | null },
  { entries, seek }: { entries: readonly ConversationEntry[]; seek: Seek | undefined },
): void {
  const done = useRef<Seek | undefined>(undefined);
  useEffect(() => {
    if (seek === undefined || seek === done.current || entries.length === 0) return;
    done.current = seek;
    const at = entries.findLastIndex(
      (entry) => entry.type !== "note" && (entry.at ?? Number.POSITIVE_INFINITY) <= seek.at,
    );
    const item = list.current?.children[Math.max(0, at)];
    // After it was laid out and the end was followed.
    requestAnimationFrame(() => item?.scrollIntoView({ block: "center" }));
  }, [entries, seek]);
}

/** Follows the end until the user scrolls up; then says how much is new. */
function useFollowing(
  end: { readonly current: HTMLElement | null },
  count: number,
  writing: string | undefined,
): number {
  const isFollowing = useRef(true);
  const newest = useRef(count);
  newest.current = count;
  const [seen, setSeen] = useState(count);
  const follow = (): void => {
    if (isFollowing.current && exported === undefined) end.current?.scrollIntoView({ block: "nearest" });
  };
  useEffect(() => {
    const { current } = end;
    if (current === null || current.parentElement === null) return;
    const atEnd = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting !== true) return;
        isFollowing.current = true;
        setSeen(newest.current);
      },
      { rootMargin: "40px" },
    );
    atEnd.observe(current);
    // The browser lays out what comes near, and only then knows how high it is.
    const grown = new ResizeObserver(follow);
    grown.observe(current.parentElement);
    let top = 0;
    const onScroll = ({ target }: Event): void => {
      const box = target === document ? document.documentElement : target;
      if (!(box instanceof Element) || !box.contains(current)) return;
      // Following only ever scrolls down.
      if (box.scrollTop < top - 1) isFollowing.current = false;
      top = box.scrollTop;
    };
    addEventListener("scroll", onScroll, { capture: true, passive: true });
    return () => {
      atEnd.disconnect();
      grown.disconnect();
      removeEventListener("scroll", onScroll, { capture: true });
    };
  }, []);
  useEffect(() => {
    follow();
    if (isFollowing.current) setSeen(count);
  }, [count, writing]);
  return isFollowing.current ? 0 : Math.max(0, count - seen);
}

function Earlier({ from, onEarlier }: { from: number; onEarlier: () => void }): ComponentChild {
  if (exported !== undefined)
    return h("p", { class: "dim" }, `${from} earlier entries are not in this file.`);
  return h("button", { class: "btn", type: "button", onClick: onEarlier }, `Show ${from} earlier entries`);
}

interface ItemProps {
  readonly entry: ConversationEntry;
  readonly place: Place;
  readonly agentId: string;
  /** In the whole conversation. */
  readonly position: number;
  readonly mayFork: boolean;
  /** The number of the answer that it is the head of; 0 for others. */
  readonly turn: number;
  readonly folder: string | undefined;
}

const Item = memo(({ entry, place, agentId, position, mayFork, turn, folder }: ItemProps): ComponentChild => {
  const canFork = mayFork && (entry.type === "text" || (entry.type === "prompt" && !entry.isMeta));
  return h(
    "li",
    { class: `e-${entry.type}` },
    h(Entry, { entry, place, agentId, position, turn, folder }),
    canFork ? h(Fork, { entry, place }) : null,
  );
});

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
    { class: "fork" },
    h(
      "button",
      { class: "btn ghost", type: "button", disabled: isBusy, onClick: () => void fork() },
      entry.type === "prompt" ? "Fork before this prompt" : "Fork after this answer",
    ),
    h("span", { role: "status" }, ` ${status}`),
  );
}

function Entry({
  entry,
  place,
  agentId,
  position,
  turn,
  folder,
}: Omit<ItemProps, "mayFork">): ComponentChild {
  switch (entry.type) {
    case "turn":
      return h(TurnHead, { turn: entry, number: turn });
    case "prompt":
      return entry.isMeta
        ? h(Folded, { label: "From the runtime", text: entry.text })
        : h(
            "div",
            { class: "prompt" },
            h("h3", {}, "Prompt ", h("span", { class: "dim" }, timeOfDay(entry.at))),
            h(Markdown, { text: entry.text }),
          );
    case "text":
      return h(Markdown, { text: entry.text });
    case "thinking":
      return h(Folded, { label: "Thinking", text: entry.text });
    case "call":
      return h(Call, { call: entry, place, folder, wholeOf: () => loadResult(place, agentId, position) });
    case "note": {
      const { what, detail, isBad } = describeStep(entry.step);
      return h("p", { class: isBad ? "note st-bad" : "note dim" }, `${what}: ${detail}`);
    }
  }
}

/** Tokens and money of one answer. */
function TurnHead({
  turn,
  number,
}: {
  turn: Extract<ConversationEntry, { type: "turn" }>;
  number: number;
}): ComponentChild {
  const { usage, costUsd, model, at } = turn;
  const tokens = contextTokens(usage);
  const share = tokens === 0 ? 0 : Math.round((100 * usage.cacheReadTokens) / tokens);
  const facts = [
    `in ${describeTokens(tokens)}`,
    `out ${describeTokens(usage.outputTokens)}`,
    ...(share > 0 ? [`${share} % cached`] : []),
    costUsd === undefined ? "price not known" : money(costUsd),
  ];
  return h(
    "div",
    { class: "th" },
    h("b", { title: model }, number > 0 ? `Turn ${number}` : model),
    h("span", {}, timeOfDay(at)),
    h("span", { class: "u" }, facts.join(" · ")),
  );
}

function Folded({ label, text }: { label: string; text: string }): ComponentChild {
  const [isOpen, setOpen] = useState(false);
  return h(
    "details",
    { class: "folded", onToggle: (event: Event) => setOpen((event.target as HTMLDetailsElement).open) },
    h("summary", {}, label),
    isOpen ? h(Markdown, { text }) : null,
  );
}

type CallEntry = Extract<ConversationEntry, { type: "call" }>;

const maxLines = 40;
/** A longer one is cut on its line, so it stands in full below it. */
const maxDecision = 60;

/** One line; open, what went in and what came out. */
interface CallProps {
  readonly call: CallEntry;
  readonly place: Place;
  readonly folder: string | undefined;
  /** Asks for the whole result, of which only the beginning was sent. */
  readonly wholeOf: () => Promise<string>;
}

function Call({ call, place, folder, wholeOf }: CallProps): ComponentChild {
  const { tool, outcome, durationMs, edits = [] } = call;
  const about = withoutFolder(call.about, folder);
  const [isOpen, setOpen] = useState(edits.length > 0 && outcome !== "failed");
  const state = outcome === "unanswered" ? "stopped" : outcome;
  return h(
    "details",
    {
      class: `call ${outcome}`,
      open: isOpen,
      onToggle: (event: Event) => setOpen((event.target as HTMLDetailsElement).open),
    },
    h(
      "summary",
      {},
      h(Icon, { name: "chevron" }),
      h(StateSign, { state }),
      h("span", { class: "tn" }, tool),
      h("code", { class: "clip", title: about }, about),
      h(
        "span",
        {
          class: outcome === "refused" || outcome === "failed" ? "why clip no" : "why clip",
          title: decisionOf(call),
        },
        decisionOf(call),
      ),
      h(
        "span",
        { class: "res" },
        [resultOf(call), outcome === "running" ? h(Since, { at: call.at }) : duration(durationMs)]
          .filter(Boolean)
          .flatMap((part, at) => (at === 0 ? [part] : [" · ", part])),
      ),
    ),
    isOpen ? h(CallBody, { call, place, folder, edits, wholeOf }) : null,
  );
}

function CallBody({
  call,
  place,
  edits,
  wholeOf,
}: CallProps & { edits: readonly FileEdit[] }): ComponentChild {
  const command = commandOf(call.input);
  const language = call.tool === "Read" ? languageOf(call.about) : undefined;
  return [
    decisionOf(call).length > maxDecision
      ? h("p", { key: "why", class: "why-full" }, decisionOf(call))
      : null,
    h(Diff, { key: "diff", call, edits }),
    edits.length > 0
      ? null
      : h(
          "pre",
          { key: "in", class: "out", tabIndex: 0, role: "group", "aria-label": "Arguments" },
          command === undefined ? colouredCode(call.input, "json") : colouredCode(command, "bash"),
        ),
    call.result === undefined ? null : h(Output, { key: "out", call, text: call.result, language, wholeOf }),
    call.agentId === undefined
      ? null
      : h(
          "p",
          { key: "agent", class: "why-full" },
          h("a", { class: "link", href: agentLink(place, call.agentId) }, "Open the agent it started"),
        ),
  ];
}

interface OutputProps extends Pick<CallProps, "call" | "wholeOf"> {
  readonly text: string;
  readonly language: string | undefined;
}

function Output({ call, text, language, wholeOf }: OutputProps): ComponentChild {
  const [whole, setWhole] = useState<string>();
  const [problem, setProblem] = useState("");
  const isCut = call.resultLines !== undefined;
  const lines = text.split("\n");
  const shown = whole ?? lines.slice(0, maxLines).join("\n");
  const count = call.resultLines ?? lines.length;
  const showAll = async (): Promise<void> => {
    if (!isCut) return setWhole(text);
    try {
      setWhole(await wholeOf());
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return [
    h(
      "pre",
      { key: "text", class: "out", tabIndex: 0, role: "group", "aria-label": "Result" },
      colouredCode(shown, language),
    ),
    whole !== undefined || (!isCut && lines.length <= maxLines)
      ? null
      : h(
          "button",
          { key: "more", class: "btn ghost", type: "button", onClick: () => void showAll() },
          count === 1 ? "Show all of it" : `Show all ${count} lines`,
        ),
    problem === "" ? null : h("p", { key: "problem", role: "status", class: "why-full" }, problem),
  ];
}

function commandOf(input: string): string | undefined {
  try {
    const { command } = JSON.parse(input);
    return typeof command === "string" ? command : undefined;
  } catch {
    return undefined;
  }
}

function resultOf(call: CallEntry): string {
  const { edits, result, outcome, resultLines } = call;
  if (outcome === "refused") return "refused";
  if (edits !== undefined && edits.length > 0) {
    const lines = linesOf(call, edits);
    return `+${countLines(lines, "+")} −${countLines(lines, "-")}`;
  }
  if (result === undefined || result === "") return "";
  const count = resultLines ?? result.replace(/\n$/, "").split("\n").length;
  if (count > 1) return `${count} lines`;
  return result.length <= 24 ? result.trim() : "1 line";
}

/** Why the call was allowed or refused, as far as the journal says. */
function decisionOf({ outcome, asked, reason, allowed }: CallEntry): string {
  if (outcome === "refused")
    return `refused${asked === true ? " by a person" : ""}: ${reason ?? "no reason was written down"}`;
  if (outcome === "running") return exported === undefined ? "running" : "not finished";
  const failure = reason === undefined ? "" : `${outcome}: ${reason}; `;
  if (allowed !== undefined) return `${failure}allowed: ${allowed}`;
  return asked === true ? `${failure}allowed by the person who was asked` : failure.replace(/; $/, "");
}

/** With the lines around it where the result says where it is; before that, what was asked for. */
function Diff({ call, edits }: { call: CallEntry; edits: readonly FileEdit[] }): ComponentChild {
  const [first] = edits;
  if (first === undefined) return null;
  return h(PatchView, { file: first.file, lines: linesOf(call, edits) });
}

const signOf = { same: " ", removed: "-", added: "+" } as const;

function linesOf({ hunks }: Pick<CallEntry, "hunks">, edits: readonly FileEdit[]): readonly PatchLine[] {
  if (hunks !== undefined) return patchLines(hunks);
  return edits.flatMap(({ before, after }) =>
    diffLines(before, after).map(({ kind, text }) => ({ sign: signOf[kind], text })),
  );
}
