import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ScriptedCall, ScriptedStep, Step } from "@retinue/testing/script.ts";
import type { AttackCall, PlannedAttack } from "./attack.ts";

export interface StepOptions {
  readonly isAlone: boolean;
  readonly fillFor: (id: string) => (text: string) => string;
}

export const callId = (id: string, at: number | string) => `toolu_${id}_${at}`;

const chunkSize = 40;

/**
 * What the model says: calls of many attacks in few answers, where the second call of an attack comes an answer after its
 * first, and then the attacks whose calls must follow each other. Around them it reads a file and asks for the folder.
 */
export function stepsOf(
  attacks: readonly PlannedAttack[],
  { isAlone, fillFor }: StepOptions,
): readonly Step[] {
  const callOf = ({ id, calls, isTogether }: PlannedAttack, round: number): readonly Said[] =>
    calls.flatMap((call, at) => {
      const isNow = isTogether === true ? round === 0 : at === round;
      return isNow ? [sayCall(call, callId(id, at), fillFor(id))] : [];
    });
  const isApart = (attack: PlannedAttack) => !isAlone && hasOwnAnswers(attack);
  const inRounds = chunksOf(
    attacks.filter((attack) => !isApart(attack)),
    chunkSize,
  ).flatMap((chunk) => {
    const rounds = Math.max(...chunk.map(({ calls }) => calls.length));
    return Array.from({ length: rounds }, (_, round) => chunk.flatMap((attack) => callOf(attack, round)));
  });
  const inSequence = attacks
    .filter(isApart)
    .flatMap((attack) => [
      ...attack.calls.map((_, round) => callOf(attack, round)),
      [goBack(fillFor("")("{{P}}"))],
    ]);
  const answers = (isAlone ? inRounds : [[first], ...inRounds, ...inSequence, [last]]).filter(
    (said) => said.length > 0,
  );
  return [
    ...answers.flatMap((said) => said.flatMap(({ children }) => children)),
    ...answers.map((said) => ({ calls: said.map(({ call }) => call) })),
    "Done.",
  ];
}

/** Whether the calls of an attack come one after the other, which costs an answer for each. */
export function hasOwnAnswers({ isSequence, calls }: PlannedAttack): boolean {
  return isSequence === true || calls.some((call) => typeof call === "object" && "child" in call);
}

/** A call, and what the children say that it starts. */
interface Said {
  readonly call: ScriptedCall;
  readonly children: readonly ScriptedStep[];
}

const first: Said = {
  call: { name: "Read", id: "toolu_first", input: { file_path: "README.md" } },
  children: [],
};
const last: Said = { call: { name: "Bash", id: "toolu_last", input: { command: "pwd" } }, children: [] };
const goBack = (project: string): Said => ({
  call: { name: "Bash", input: { command: `cd ${project}` } },
  children: [],
});

function sayCall(call: AttackCall, id: string, fill: (text: string) => string): Said {
  if (typeof call === "string") {
    return { call: { name: "Bash", id, input: { command: fill(call), timeout: 5_000 } }, children: [] };
  }
  // Tokens represent paths and addresses, which JSON writes as they are.
  const input: Record<string, unknown> = JSON.parse(fill(JSON.stringify(call.input)));
  if (call.child === undefined) return { call: { name: call.tool, id, input }, children: [] };
  const task = `TASK-${id}.`;
  const match = ({ messages }: ModelRequest) => JSON.stringify(messages[0]).includes(task);
  const said = call.child.map((each, at) => sayCall(each, `${id}_${at}`, fill));
  const steps = said.map(({ call: own }) => ({ match, calls: [own] }));
  return {
    call: { name: call.tool, id, input: { prompt: task, ...input } },
    children: [...steps, { match, text: "Finished.", times: "any" as const }],
  };
}

export function chunksOf<T>(items: readonly T[], size: number): readonly T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, at) => items.slice(at * size, (at + 1) * size));
}
