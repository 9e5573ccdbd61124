import type { ActRequest, GivenGrant, StudioQuestion } from "@retinue/core/kernel/live/session-update.ts";
import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { agentLink, type Place } from "./route.ts";
import { exported, useActs } from "./use-events.ts";

const scopes = [
  ["call", "this call"],
  ["agent", "this agent"],
  ["tree", "this agent and its children"],
  ["session", "this session"],
] as const;

/** Questions that wait for a person, and grants that still hold. */
export function QuestionsPart(props: { place: Place; questions: readonly StudioQuestion[] }): ComponentChild {
  const { place, questions } = props;
  if (questions.length === 0) return null;
  const waiting = questions.filter(({ state }) => state === "waiting");
  const answered = questions.filter(({ state }) => state !== "waiting");
  return h(
    "section",
    { class: waiting.length === 0 ? "" : "failures", "aria-labelledby": "questions" },
    h("h2", { id: "questions" }, `Questions (${waiting.length} waiting)`),
    waiting.map((question) => h(Question, { key: question.id, place, question })),
    answered.map((question) => h(Answered, { key: question.id, place, question })),
  );
}

function Places({ place, question }: { place: Place; question: StudioQuestion }): ComponentChild {
  const { places } = question;
  return h(
    "p",
    { class: "soft" },
    places.length === 1 ? "Asked by " : `Asked in ${places.length} places: `,
    places.map(({ agent, path }, at) => [
      at === 0 ? "" : ", ",
      h("a", { key: agent, href: agentLink(place, agent) }, path),
    ]),
  );
}

function Question({ place, question }: { place: Place; question: StudioQuestion }): ComponentChild {
  return h(
    "article",
    { class: "question", "aria-label": `Question ${question.id}` },
    h("p", {}, h("b", {}, question.tool), ` ${question.reason}`),
    h("pre", { tabIndex: 0, "aria-label": "Arguments" }, question.input),
    h(Places, { place, question }),
    exported === undefined
      ? h(question.asks === undefined ? Answering : AnsweringText, { place, question })
      : null,
  );
}

/** For a call that asks the person something: one answer for each of its questions. */
function AnsweringText({ place, question }: { place: Place; question: StudioQuestion }): ComponentChild {
  const { status, isBusy, act } = useActs();
  const [answers, setAnswers] = useState<Readonly<Record<string, string>>>({});
  const { asks = [] } = question;
  const isComplete = asks.every(({ text }) => (answers[text] ?? "").trim() !== "");
  const send = (more: Pick<ActRequest, "action" | "grant">): void =>
    void act({ ...requestOf(place, question), ...more });
  return h(
    "div",
    { class: "bar" },
    asks.map(({ text, choices }, at) =>
      h(
        "label",
        { key: text },
        `${text} `,
        h("input", {
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
      ),
    ),
    h(
      "button",
      {
        type: "button",
        disabled: isBusy || !isComplete,
        onClick: () => send({ action: "approve", grant: { scope: "call", answers } }),
      },
      "Answer",
    ),
    h(
      "button",
      { type: "button", disabled: isBusy, onClick: () => send({ action: "deny" }) },
      "Do not answer",
    ),
    h("span", { role: "status" }, status),
  );
}

function Answering({ place, question }: { place: Place; question: StudioQuestion }): ComponentChild {
  const { status, isBusy, act } = useActs();
  const [scope, setScope] = useState<GivenGrant["scope"]>("call");
  const [limits, setLimits] = useState<Limits>({ minutes: "", uses: "", usd: "" });
  const [usesRules, setUsesRules] = useState(false);
  const [message, setMessage] = useState("");
  const rules = usesRules ? question.suggestedRules : [];
  const send = (action: "approve" | "deny", more: Partial<ActRequest>): void =>
    void act({ ...requestOf(place, question), action, ...more });
  const button = (label: string, onClick: () => void): ComponentChild =>
    h("button", { type: "button", disabled: isBusy, onClick }, label);
  const onMessage = (event: Event): void => setMessage((event.target as HTMLInputElement).value);
  return h(
    "div",
    { class: "bar" },
    h(ScopeChoice, { question, scope, onChoose: setScope }),
    scope === "call" ? null : h(LimitFields, { limits, onChange: setLimits }),
    scope === "call" || question.suggestedRules.length === 0
      ? null
      : h(
          "label",
          {},
          h("input", { type: "checkbox", checked: usesRules, onChange: () => setUsesRules(!usesRules) }),
          ` also calls that match ${question.suggestedRules.join(" and ")}`,
        ),
    button("Allow", () => send("approve", { grant: grantOf(scope, limits, rules) })),
    h("label", {}, "Reason ", h("input", { value: message, onInput: onMessage })),
    button("Deny", () => send("deny", message.trim() === "" ? {} : { text: message })),
    h("span", { role: "status" }, status),
  );
}

interface Limits {
  readonly minutes: string;
  readonly uses: string;
  readonly usd: string;
}

function LimitFields(props: { limits: Limits; onChange: (limits: Limits) => void }): ComponentChild {
  const { limits, onChange } = props;
  const fields = [
    ["for minutes", "minutes"],
    ["at most times", "uses"],
    ["at most dollars", "usd"],
  ] as const;
  return fields.map(([label, name]) =>
    h(
      "label",
      { key: name },
      `${label} `,
      h("input", {
        type: "number",
        min: 0,
        step: "any",
        value: limits[name],
        onInput: (event: Event) => onChange({ ...limits, [name]: (event.target as HTMLInputElement).value }),
      }),
    ),
  );
}

function ScopeChoice(props: {
  question: StudioQuestion;
  scope: GivenGrant["scope"];
  onChoose: (scope: GivenGrant["scope"]) => void;
}): ComponentChild {
  const { question, scope, onChoose } = props;
  if (question.everyTime) return h("span", { class: "soft" }, "Every such call is asked about.");
  return h(
    "label",
    {},
    "Allow for ",
    h(
      "select",
      {
        value: scope,
        onChange: (event: Event) => {
          const chosen = (event.target as HTMLSelectElement).value;
          onChoose(scopes.find(([name]) => name === chosen)?.[0] ?? "call");
        },
      },
      scopes.map(([name, label]) => h("option", { key: name, value: name }, label)),
    ),
  );
}

function grantOf(
  scope: GivenGrant["scope"],
  { minutes, uses, usd }: Limits,
  rules: readonly string[],
): GivenGrant {
  if (scope === "call") return { scope };
  return {
    scope,
    ...(rules.length === 0 ? {} : { rules }),
    ...(minutes === "" ? {} : { until: Date.now() + Number(minutes) * 60_000 }),
    ...(uses === "" ? {} : { maxUses: Number(uses) }),
    ...(usd === "" ? {} : { maxUsd: Number(usd) }),
  };
}

function Answered({ place, question }: { place: Place; question: StudioQuestion }): ComponentChild {
  const { status, isBusy, act } = useActs();
  return h(
    "details",
    {},
    h("summary", {}, h("b", {}, question.tool), ` ${question.state}: ${question.answer ?? ""}`),
    h("pre", { tabIndex: 0, "aria-label": "Arguments" }, question.input),
    h(Places, { place, question }),
    question.state !== "allowed" || exported !== undefined
      ? null
      : h(
          "button",
          {
            type: "button",
            disabled: isBusy,
            onClick: () => void act({ ...requestOf(place, question), action: "revoke" }),
          },
          "Revoke",
        ),
    h("span", { role: "status" }, status),
  );
}

function requestOf({ project, id }: Place, question: StudioQuestion): Omit<ActRequest, "action"> {
  const [first] = question.places;
  return {
    project,
    sessionId: id,
    agentId: first?.agent === undefined || first.agent === id ? "main" : first.agent,
    question: question.id,
    digest: question.digest,
  };
}
