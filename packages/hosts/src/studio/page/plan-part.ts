import { type ComponentChild, h } from "preact";
import { Table } from "./parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** What was decided for the run, and where each field came from. */
export function PlanPart({ plan }: { plan: Json }): ComponentChild {
  return h(
    "details",
    {},
    h("summary", {}, "Plan: what was decided for this agent, and where each field came from"),
    h(Table, { caption: "Plan", heads: ["field", "value", "from"], rows: planRows(plan) }),
  );
}

const named: Readonly<Record<string, string>> = {
  "permission mode": "Mode",
  tools: "Tools",
  "allow rule": "Allowed",
  "ask rule": "Asked",
  "deny rule": "Denied",
};

/** What an agent may, of its plan. */
export function rightsOf(plan: Json): readonly (readonly [string, string])[] {
  const found = new Map<string, string[]>();
  for (const [field, value] of planRows(plan)) {
    const name = named[field];
    if (name !== undefined) found.set(name, [...(found.get(name) ?? []), value]);
  }
  return [...found].map(([name, values]) => [name, [...new Set(values)].join(", ")]);
}

function planRows(plan: Json): readonly (readonly [string, string, string])[] {
  return Object.entries(plan).flatMap(([name, value]) => rowsOf(name, value, plan));
}

function rowsOf(name: string, value: unknown, plan: Json): readonly (readonly [string, string, string])[] {
  if (name === "modeFrom" || value === undefined) return [];
  if (name === "policy" && isObject(value)) {
    const rules = ["allow", "ask", "deny"].flatMap((kind) => ruleRows(kind, value[kind]));
    return [["permission mode", textOf(value["mode"]), textOf(plan["modeFrom"] ?? "")], ...rules];
  }
  if (isObject(value) && "value" in value && "from" in value)
    return [[name, textOf(value["value"]), textOf(value["from"])]];
  if (name === "system" && Array.isArray(value))
    return [
      [
        name,
        value.map((part) => (isObject(part) ? `${textOf(part["length"])} characters` : "")).join(", "),
        "",
      ],
    ];
  if (name === "tools" && Array.isArray(value))
    return [
      [name, value.map((tool) => (isObject(tool) ? textOf(tool["name"]) : textOf(tool))).join(", "), ""],
    ];
  if (isObject(value))
    return Object.entries(value).flatMap(([key, inner]) => rowsOf(`${name}.${key}`, inner, plan));
  return [[name, textOf(value), ""]];
}

function ruleRows(kind: string, rules: unknown): readonly (readonly [string, string, string])[] {
  if (!Array.isArray(rules)) return [];
  return rules
    .filter(isObject)
    .map((rule) => [`${kind} rule`, ruleText(rule["rule"]), textOf(rule["from"] ?? "")]);
}

function ruleText(rule: unknown): string {
  if (!isObject(rule)) return textOf(rule);
  const specifier = rule["specifier"];
  if (isObject(specifier) && specifier["type"] === "whole") return textOf(rule["tool"]);
  const inner = isObject(specifier)
    ? (specifier["pattern"] ?? specifier["text"] ?? JSON.stringify(specifier))
    : specifier;
  return inner === undefined ? textOf(rule["tool"]) : `${textOf(rule["tool"])}(${textOf(inner)})`;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
