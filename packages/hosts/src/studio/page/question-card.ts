import type { ActRequest, GivenGrant, InboxQuestion } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, plainLine } from "./format.ts";
import { Icon } from "./icons.ts";
import { Table } from "./parts.ts";
import { countLines, PatchView, patchLines } from "./patch-lines.ts";
import { agentLink, sessionLink } from "./route.ts";
import { isTyping } from "./timeline.ts";
import { exported, useActs } from "./use-events.ts";

interface CardProps {
  readonly question: InboxQuestion;
  /** The only one that answers to keys. */
  readonly isCurrent: boolean;
  readonly onChoose: () => void;
}

/** One call that waits: what it would do as a person reads it, who asks and why, and the answers. */
export function QuestionCard({ question, isCurrent, onChoose }: CardProps): ComponentChild {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return h(
    "article",
    {
      id: `question-${question.id}`,
      class: "panel qc",
      tabIndex: 0,
      "aria-label": `${question.tool}: ${question.places[0]?.path ?? ""}`,
      onFocusIn: onChoose,
      ...(isCurrent ? { "aria-current": "true" as const } : {}),
    },
    h(
      "header",
      {},
      h(Icon, { name: "wait", label: "waiting" }),
      h("b", {}, question.tool),
      h(Path, { question }),
      h("span", { class: "grow" }),
      h("span", { class: "dim" }, `waits ${duration(Math.max(0, now - question.at))}`),
      h("code", { class: "dim hide-s" }, question.id),
    ),
    h(What, { question }),
    exported === undefined
      ? h(question.asks === undefined ? Answering : AnsweringText, { question, isCurrent })
      : null,
  );
}

function Path({ question }: { question: InboxQuestion }): ComponentChild {
  const { project, sessionId: id, title, places } = question;
  return h(
    "div",
    { class: "path" },
    h("a", { class: "up", href: sessionLink({ project, id }) }, title),
    places.map(({ agent, path, name }) => [
      h("span", { key: `${agent}s`, "aria-hidden": true }, "›"),
      h(
        "a",
        { key: agent, class: "who", href: agentLink({ project, id }, agent === id ? "main" : agent) },
        pathOf({ path, name }),
      ),
    ]),
  );
}

/** From the main agent to the asking agent; that one by its task, since others may be of its type. */
export function pathOf({ path, name }: Pick<InboxQuestion["places"][number], "path" | "name">): string {
  const parts = path.split(/ (?:>|→) /);
  return [...(name === undefined ? parts : [...parts.slice(0, -1), name])].join(" › ");
}

/** The command as text, an edit as a diff, anything else as its fields; never JSON. */
function What({ question }: { question: InboxQuestion }): ComponentChild {
  const { command, edit, input, asks, quote, preview } = question;
  if (asks !== undefined) return null;
  if (quote !== undefined) return h(Quote, { quote });
  if (preview !== undefined)
    return [
      h(
        "pre",
        {
          key: "rows",
          class: "cmd",
          tabIndex: 0,
          role: "group",
          "aria-label": "What it would take and may do",
        },
        preview.rows.join("\n"),
      ),
      h(
        "pre",
        { key: "text", class: "cmd", tabIndex: 0, role: "group", "aria-label": "What would run" },
        preview.text,
      ),
    ];
  if (command !== undefined)
    return h("pre", { class: "cmd", tabIndex: 0, role: "group", "aria-label": "Command" }, command);
  if (edit !== undefined) return h(EditBox, { edit });
  const fields = fieldsOf(input);
  if (fields === undefined)
    return h("pre", { class: "cmd", tabIndex: 0, role: "group", "aria-label": "Arguments" }, input);
  return h(
    "dl",
    { class: "dl cmd" },
    fields.map(([name, value]) => [h("dt", { key: `${name}t` }, name), h("dd", { key: name }, value)]),
  );
}

/** What agents that start together would take and may do, before any of them starts. */
function Quote({ quote }: { quote: NonNullable<InboxQuestion["quote"]> }): ComponentChild {
  const { sum, rights, table, rest } = quote;
  const [heads = [], ...rows] = table;
  return h(
    "div",
    { class: "cmd quote", tabIndex: 0, role: "group", "aria-label": "What the agents would take and may do" },
    sum.map((line, at) => h("p", { key: line, class: at === 0 ? "strong" : "sub" }, line)),
    h(
      "dl",
      { class: "dl" },
      rights.map(([label, text]) => [h("dt", { key: `${label}t` }, label), h("dd", { key: label }, text)]),
    ),
    h(Table, { caption: "By agent", heads, rows }),
    rest.map((line) => h("p", { key: line, class: "sub" }, line)),
  );
}

function fieldsOf(input: string): readonly (readonly [string, string])[] | undefined {
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value !== "object" || value === null) return undefined;
    return Object.entries(value).map(([name, inner]) => [
      name,
      typeof inner === "string" ? inner : JSON.stringify(inner),
    ]);
  } catch {
    return undefined;
  }
}

function EditBox({ edit }: { edit: NonNullable<InboxQuestion["edit"]> }): ComponentChild {
  const lines = patchLines(edit.hunks);
  return h(
    "div",
    { class: "dbox" },
    h(
      "div",
      { class: "row" },
      h("code", { class: "grow clip" }, edit.path),
      h("span", { class: "st-ok" }, `+${countLines(lines, "+")}`),
      h("span", { class: "st-bad" }, `−${countLines(lines, "-")}`),
    ),
    h(PatchView, { file: edit.path, lines }),
  );
}

/** Typing, or a list that moved, never answers: a question does so only this long after it became current. */
const restMs = 400;

const scopes = [
  ["agent", "this agent"],
  ["tree", "this agent and its children"],
  ["session", "this session"],
] as const;

interface AnswerProps {
  readonly question: InboxQuestion;
  readonly isCurrent: boolean;
}

function Answering({ question, isCurrent }: AnswerProps): ComponentChild {
  const { status, isBusy, act } = useActs();
  const [rules, setRules] = useState(question.suggestedRules.join("\n"));
  const [message, setMessage] = useState("");
  const [limits, setLimits] = useState<Limits>({ scope: "session", minutes: "", uses: "", usd: "" });
  const rule = useRef<HTMLTextAreaElement>(null);
  const readyAt = useRef(Number.POSITIVE_INFINITY);
  useEffect(() => {
    readyAt.current = isCurrent ? Date.now() + restMs : Number.POSITIVE_INFINITY;
  }, [isCurrent]);
  const isSent = useRef(false);
  const send = async (more: Pick<ActRequest, "action" | "grant" | "text">): Promise<void> => {
    if (isSent.current || Date.now() < readyAt.current) return;
    isSent.current = true;
    // What failed can be tried again; what was answered goes away with the next update.
    isSent.current = (await act({ ...requestOf(question), ...more })) !== undefined;
  };
  const ruleList = rules
    .split("\n")
    .map((text) => text.trim())
    .filter((text) => text !== "");
  const answers = {
    a: () => void send({ action: "approve", grant: { scope: "call" } }),
    s: () => (question.everyTime ? undefined : send({ action: "approve", grant: grantOf(limits, ruleList) })),
    d: () => void send({ action: "deny", ...(message.trim() === "" ? {} : { text: message }) }),
    e: () => rule.current?.focus(),
  };
  useAnswerKeys(isCurrent, answers);
  return [
    h(
      "dl",
      { key: "facts", class: "dl" },
      h("dt", {}, "Why it asks"),
      h("dd", {}, question.reason),
      h("dt", {}, "In"),
      h("dd", {}, h("code", {}, question.directory)),
      question.said === undefined
        ? null
        : [h("dt", { key: "st" }, "Last said"), h("dd", { key: "s" }, `“${plainLine(question.said)}”`)],
      h("dt", {}, "Covered by"),
      question.everyTime
        ? h("dd", {}, "No rule: every such call is asked about, so only this call can be allowed.")
        : h(
            "dd",
            { class: "rule" },
            h("textarea", {
              ref: rule,
              class: "field",
              rows: Math.max(1, question.suggestedRules.length),
              "aria-label": "Rules that would cover it, one a line",
              placeholder: "the same call again",
              value: rules,
              onInput: (event: Event) => setRules((event.target as HTMLTextAreaElement).value),
            }),
            h(LimitFields, { limits, onChange: setLimits }),
          ),
    ),
    h(
      "div",
      { key: "acts", class: "acts" },
      h(
        "button",
        { class: "btn pri", type: "button", disabled: isBusy, onClick: answers.a },
        "Allow ",
        h("kbd", {}, "A"),
      ),
      question.everyTime
        ? null
        : h(
            "button",
            { class: "btn", type: "button", disabled: isBusy, onClick: answers.s },
            `Allow for ${limits.scope === "session" ? "session" : (scopes.find(([name]) => name === limits.scope)?.[1] ?? "")} `,
            h("kbd", {}, "S"),
          ),
      h(
        "button",
        { class: "btn bad", type: "button", disabled: isBusy, onClick: answers.d },
        "Deny ",
        h("kbd", {}, "D"),
      ),
      h("input", {
        class: "field",
        value: message,
        placeholder: "With Deny: what to do instead",
        "aria-label": "Message to the agent",
        onInput: (event: Event) => setMessage((event.target as HTMLInputElement).value),
      }),
      h("span", { role: "status" }, status),
    ),
  ];
}

function useAnswerKeys(isCurrent: boolean, answers: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    if (!isCurrent) return;
    const onKey = (event: KeyboardEvent): void => {
      const answer = answers[event.key.toLowerCase()];
      if (answer === undefined || isTyping(event) || event.repeat) return;
      event.preventDefault();
      answer();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

interface Limits {
  readonly scope: GivenGrant["scope"];
  readonly minutes: string;
  readonly uses: string;
  readonly usd: string;
}

function LimitFields({
  limits,
  onChange,
}: {
  limits: Limits;
  onChange: (limits: Limits) => void;
}): ComponentChild {
  const fields = [
    ["for minutes", "minutes"],
    ["at most times", "uses"],
    ["at most dollars", "usd"],
  ] as const;
  const isLimited = fields.some(([, name]) => limits[name] !== "");
  const label = scopes.find(([name]) => name === limits.scope)?.[1] ?? "";
  return h(
    "details",
    { class: "limits" },
    h(
      "summary",
      { class: "btn" },
      `${label}, ${isLimited ? "limited" : "no limit"} `,
      h(Icon, { name: "chevron" }),
    ),
    h(
      "label",
      {},
      "Allow for ",
      h(
        "select",
        {
          class: "field",
          value: limits.scope,
          onChange: (event: Event) => {
            const chosen = (event.target as HTMLSelectElement).value;
            onChange({ ...limits, scope: scopes.find(([name]) => name === chosen)?.[0] ?? "session" });
          },
        },
        scopes.map(([name, text]) => h("option", { key: name, value: name }, text)),
      ),
    ),
    fields.map(([text, name]) =>
      h(
        "label",
        { key: name },
        `${text} `,
        h("input", {
          class: "field",
          type: "number",
          min: 0,
          step: "any",
          value: limits[name],
          onInput: (event: Event) =>
            onChange({ ...limits, [name]: (event.target as HTMLInputElement).value }),
        }),
      ),
    ),
  );
}

function grantOf({ scope, minutes, uses, usd }: Limits, rules: readonly string[]): GivenGrant {
  return {
    scope,
    ...(rules.length === 0 ? {} : { rules }),
    ...(minutes === "" ? {} : { until: Date.now() + Number(minutes) * 60_000 }),
    ...(uses === "" ? {} : { maxUses: Number(uses) }),
    ...(usd === "" ? {} : { maxUsd: Number(usd) }),
  };
}

/** For a call that asks the person something: one answer for each of its questions. */
function AnsweringText({ question }: AnswerProps): ComponentChild {
  const { status, isBusy, act } = useActs();
  const [answers, setAnswers] = useState<Readonly<Record<string, string>>>({});
  const { asks = [] } = question;
  const isComplete = asks.every(({ text }) => (answers[text] ?? "").trim() !== "");
  const send = (more: Pick<ActRequest, "action" | "grant">): void =>
    void act({ ...requestOf(question), ...more });
  return h(
    "div",
    { class: "acts" },
    asks.map(({ text, choices }, at) =>
      h(
        "div",
        { key: text, class: "asked" },
        h("label", { for: `${question.id}-${at}-field` }, text),
        h("input", {
          id: `${question.id}-${at}-field`,
          class: "field",
          list: `${question.id}-${at}`,
          value: answers[text] ?? "",
          onInput: (event: Event) =>
            setAnswers({ ...answers, [text]: (event.target as HTMLInputElement).value }),
        }),
        h(
          "datalist",
          { id: `${question.id}-${at}` },
          choices.map((choice) => h("option", { key: choice, value: choice })),
        ),
        h(
          "span",
          { class: "choices" },
          choices.map((choice) =>
            h(
              "button",
              {
                key: choice,
                class: "btn",
                type: "button",
                "aria-pressed": answers[text] === choice,
                onClick: () => setAnswers({ ...answers, [text]: choice }),
              },
              choice,
            ),
          ),
        ),
      ),
    ),
    h(
      "button",
      {
        class: "btn pri",
        type: "button",
        disabled: isBusy || !isComplete,
        onClick: () => send({ action: "approve", grant: { scope: "call", answers } }),
      },
      "Answer",
    ),
    h(
      "button",
      { class: "btn bad", type: "button", disabled: isBusy, onClick: () => send({ action: "deny" }) },
      "Do not answer",
    ),
    h("span", { role: "status" }, status),
  );
}

export function requestOf(question: InboxQuestion): Omit<ActRequest, "action"> {
  const [first] = question.places;
  const { project, sessionId } = question;
  return {
    project,
    sessionId,
    agentId: first?.agent === undefined || first.agent === sessionId ? "main" : first.agent,
    question: question.id,
    digest: question.digest,
  };
}
