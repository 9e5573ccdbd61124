import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type ApprovalQuestion,
  type ApprovalRecord,
  type GrantLimits,
  type GrantScope,
  grantScopes,
} from "@retinue/gate/grants/approval-record.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import type { InboxFiles } from "./inbox-files.ts";

/** An answer to a question. */
export type GivenAnswer =
  | ({
      readonly type: "allow";
      /** Whose further calls it covers; `call`, which is usual, covers none but those that were asked about. */
      readonly scope?: GrantScope;
      /** Allow rules for further calls in the scope; without any, the same call again. */
      readonly rules?: readonly string[];
      /** For questions with choices: by their texts, what is answered; all of them are needed. */
      readonly answers?: Readonly<Record<string, string>>;
    } & GrantLimits)
  | { readonly type: "deny"; readonly message?: string };

export interface AnswerOptions {
  /** Who answers, for the journal. */
  readonly by: string;
  /** The way the answer came, such as `cli`, `program` or `webhook`. */
  readonly via: string;
  readonly now: number;
  /** The digest of the call that was seen; absent: the one of the question now. */
  readonly digest?: string;
}

/** Writes the answer to a question down for all its places; throws where it cannot be followed to the letter. */
export function answerQuestion(
  files: InboxFiles,
  id: string,
  { given, by, via, now, digest }: AnswerOptions & { readonly given: GivenAnswer },
): ApprovalRecord {
  const entry = files.read().find(({ question }) => question.id === id);
  if (entry === undefined)
    throw new RetinueError("unknown-approval", `There is no question ${quote(id)}.`, {
      advice: "`retinue approvals` lists the waiting questions.",
    });
  const { question, answer } = entry;
  refuseUnknownKeys(given);
  if (answer !== undefined) throw alreadyAnswered(id, answer);
  if (given.type === "deny" && given.message !== undefined && typeof given.message !== "string")
    throw unusable("The message of a refusal must be a string.");
  if (digest !== undefined && digest !== question.digest)
    throw new RetinueError("changed-call", `The question ${id} is about a different call than the answer.`);
  const facts = {
    version: 1,
    question: id,
    digest: question.digest,
    agents: question.places.map(({ agent }) => agent),
    by,
    via,
    at: now,
  } as const;
  const record: ApprovalRecord =
    given.type === "deny"
      ? {
          ...facts,
          type: "deny",
          ...(given.message === undefined ? {} : { message: given.message }),
        }
      : {
          ...facts,
          ...checkGrant(given, { everyTime: question.everyTime, reason: question.reason, now }),
          ...checkAnswers(given, question),
        };
  if (!files.putAnswer(record)) {
    const first = files.read().find((other) => other.question.id === id)?.answer;
    throw alreadyAnswered(id, first ?? record);
  }
  return record;
}

const answerKeys: Readonly<Record<string, readonly string[]>> = {
  allow: ["type", "scope", "rules", "answers", "until", "maxUses", "maxUsd"],
  deny: ["type", "message"],
};

/** A limit that is mistyped must not be no limit. */
function refuseUnknownKeys(given: GivenAnswer): void {
  const known = answerKeys[given.type];
  if (known === undefined)
    throw unusable(`The type of an answer must be "allow" or "deny", but is ${quote(given.type)}.`);
  const unknown = Object.keys(defined(given)).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, known);
  const hint = nearest === undefined ? `It may have ${known.join(", ")}.` : `Did you mean ${quote(nearest)}?`;
  throw unusable(`${quote(unknown)} is not part of an answer of the type ${given.type}. ${hint}`);
}

function alreadyAnswered(id: string, { type, by }: ApprovalRecord): RetinueError {
  const what = type === "allow" ? "allowed" : "denied";
  return new RetinueError("already-answered", `The question ${id} was ${what} by ${by} before.`, {
    advice:
      type === "allow"
        ? `\`retinue approvals revoke ${id}\` takes it back.`
        : "Only the first answer counts.",
  });
}

/** A program or webhook can send anything, so every field is looked at. */
function checkGrant(
  given: Extract<GivenAnswer, { readonly type: "allow" }>,
  { everyTime, reason, now }: { readonly everyTime: boolean; readonly reason: string; readonly now: number },
) {
  const { scope = "call", rules = [], until, maxUses, maxUsd } = given;
  if (given.type !== "allow" || !grantScopes.includes(scope))
    throw unusable(`The answer must be "deny", or "allow" with a scope of ${grantScopes.join(", ")}.`);
  if (scope !== "call" && everyTime)
    throw unusable(
      `Every call of this kind is asked about (${reason}), so it can only be allowed for this call.`,
      "A grant is never wider than your own settings.",
    );
  if (scope === "call" && rules.length > 0)
    throw unusable("Rules cover further calls, so they need a scope of agent, tree or session.");
  if (!Array.isArray(rules) || rules.some((rule) => typeof rule !== "string"))
    throw unusable("The rules must be a list of strings.");
  for (const rule of rules) {
    const reading = parseRule(rule, { list: "allow" });
    if (reading.type === "invalid")
      throw unusable(`The rule ${quote(rule)} is not valid: ${reading.reason}.`);
  }
  if (until !== undefined && !(until > now))
    throw unusable("The time until which the grant is valid has passed.");
  if (maxUses !== undefined && !(Number.isSafeInteger(maxUses) && maxUses > 0))
    throw unusable("The number of uses must be a whole number from 1.");
  if (maxUsd !== undefined && !(Number.isFinite(maxUsd) && maxUsd > 0))
    throw unusable("The amount of money must be above 0.");
  return {
    type: "allow",
    scope,
    rules,
    until,
    maxUses,
    maxUsd,
  } as const;
}

/** A call that asks the person something needs words; a permission takes none. */
function checkAnswers(
  { answers }: Extract<GivenAnswer, { readonly type: "allow" }>,
  { tool, input }: ApprovalQuestion,
): { readonly answers?: Readonly<Record<string, string>> } {
  const asked = tool === askingTool ? questionTexts(input) : [];
  if (asked.length === 0 && answers !== undefined)
    throw unusable(`${tool} asks for a permission, which takes no answers.`);
  if (asked.length === 0) return {};
  const given = isRecord(answers) ? answers : {};
  const missing = asked.find((text) => typeof given[text] !== "string" || given[text].trim() === "");
  if (missing !== undefined)
    throw unusable(
      `The question ${quote(missing, 200)} was not answered.`,
      "Give one answer for each question, in their order: `retinue approve ID --answer TEXT …`.",
    );
  return { answers: Object.fromEntries(asked.map((text) => [text, String(given[text])])) };
}

/** The tool whose calls are questions themselves. */
export const askingTool = "AskUserQuestion";

/** The texts of the questions that a call of that tool puts to the person. */
export function questionTexts(input: Readonly<Record<string, unknown>>): readonly string[] {
  const { questions } = input;
  if (!Array.isArray(questions)) return [];
  return questions.flatMap((one: unknown) =>
    isRecord(one) && typeof one["question"] === "string" ? [one["question"]] : [],
  );
}

function unusable(message: string, advice?: string): RetinueError {
  return new RetinueError("unusable-grant", message, advice === undefined ? {} : { advice });
}
