import type { Issue } from "../foundation/diagnostic.ts";
import { shown } from "../foundation/json-record.ts";
import { nearestName } from "../foundation/nearest-name.ts";
import { parseModelReference, resolveModelReference } from "../model/model-reference.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { LintRule } from "./lint-definition.ts";
import { rateDescription } from "./rate-description.ts";

/** About 10,000 tokens, which every turn of the agent carries. */
const promptAtMost = 40_000;

const agentColors = ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"] as const;

/** A description must say what the agent does, when to use it, and what it is not for. */
export function lintDescription({ description }: AgentDefinition): Issue[] {
  if (description === "") return [];
  const { vague, advice, ...parts } = rateDescription(description);
  if (advice.length === 0) return [];
  const missing = [
    ...(parts.action ? [] : ["what the agent does"]),
    ...(parts.trigger ? [] : ["when to use it"]),
    ...(parts.limits ? [] : ["what it is not for"]),
  ];
  const reason = missing.length === 0 ? "it is too short" : `it does not say ${listWords(missing)}`;
  return [
    {
      severity: vague ? "warning" : "note",
      code: vague ? "vague-description" : "long-description",
      message: vague
        ? `A model cannot see from this description when to delegate: ${reason}.`
        : "The description is longer than it should be.",
      advice: vague ? (advice.find((line) => line.startsWith("For example")) ?? formula) : advice.join("\n"),
      path: ["description"],
    },
  ];
}

const formula = "Write: <what it does>. Use when <situation>. Not for <neighbouring work>.";

export const lintModel: LintRule = ({ model }, { aliases }) => {
  if (model === undefined) return [];
  const reference = parseModelReference(model, aliases);
  const resolved = resolveModelReference(reference, { aliases });
  const path = ["model"];
  if (resolved.type === "unclear") {
    const nearest = resolved.nearest === undefined ? "" : ` Did you mean \`${resolved.nearest}\`?`;
    return [
      {
        severity: "warning",
        code: "unclear-model",
        message: `\`model\` cannot be used: ${resolved.why}.`,
        advice: `Write an alias (sonnet, opus, haiku, inherit), a model id, or provider/model.${nearest}`,
        path,
      },
    ];
  }
  if (reference.type !== "id" || reference.nearest === undefined) return [];
  const message = `There is no model alias ${shown(model)}, so it is taken as the id of a model.`;
  const advice = `Did you mean \`${reference.nearest}\`?`;
  return [{ severity: "warning", code: "model-near-miss", message, advice, path }];
};

export function lintColor({ color }: AgentDefinition): Issue[] {
  if (color === undefined || agentColors.some((known) => known === color)) return [];
  const nearest = nearestName(color, agentColors);
  const advice = `Write one of ${agentColors.join(", ")}.${nearest === undefined ? "" : ` Did you mean \`${nearest}\`?`}`;
  const message = `${shown(color)} is not a colour of the display; another one is chosen.`;
  return [{ severity: "note", code: "unknown-color", message, advice, path: ["color"] }];
}

export function lintPrompt({ prompt, behaviour }: AgentDefinition): Issue[] {
  const path = ["prompt"];
  if (prompt.trim() === "" && behaviour?.computePrompt === undefined) {
    const message = "There is no prompt, so the agent knows nothing but the task it is given.";
    const advice = "Write below the closing `---` what the agent is to do, how, and what it returns.";
    return [{ severity: "warning", code: "empty-prompt", message, advice, path }];
  }
  if (prompt.length <= promptAtMost) return [];
  const tokens = Math.round(prompt.length / 4000);
  const message = `The prompt is about ${tokens},000 tokens long; every turn of the agent carries it.`;
  const advice = "Move reference material into skills or files that the agent reads when it needs them.";
  return [{ severity: "note", code: "long-prompt", message, advice, path }];
}

function listWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
