import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { type AssistantMessage, textOf, toolCallsOf } from "../conversation/message.ts";
import type { ModelRequest } from "../models/model.ts";
import {
  type BareDifference,
  compareRequests,
  type Difference,
  differenceKinds,
  lineChanges,
} from "./difference.ts";
import type { RecordedAnswer } from "./recorded-ports.ts";
import {
  mainAgent,
  type RecordedAgent,
  type RecordedResult,
  type RecordedRun,
  type Recording,
} from "./recording.ts";
import type { ReplayReport } from "./replay-recording.ts";
import { requestBefore } from "./replay-run.ts";

/**
 * Compares two recordings of the same work, agent by agent and answer by answer; of each kind of difference the first one
 * of an agent is reported, because the later ones follow from it.
 */
export function compareRecordings(before: Recording, after: Recording): ReplayReport {
  const differences: Difference[] = [];
  let same = 0;
  let made = 0;
  let uncompared = 0;
  const renamed = sameIds(before, after);
  for (const agent of before.agents) {
    const other = after.agents.find((candidate) => isSameAgent(agent, candidate));
    if (other === undefined) {
      if (!wasRecordedCall(agent, before, after))
        differences.push(
          about(agent, { kind: "turns", title: "this agent is no longer started", lines: [] }),
        );
      continue;
    }
    const compared = compareAgents({ before, after, agent, other, renamed });
    differences.push(...firstOfEachKind(compared.differences));
    same += compared.same;
    made += compared.made;
    uncompared += compared.uncompared;
  }
  const added = after.agents.filter(
    (agent) => !before.agents.some((candidate) => isSameAgent(candidate, agent)),
  );
  for (const agent of added)
    differences.push(about(agent, { kind: "turns", title: "this agent was not started before", lines: [] }));
  return {
    sessionId: before.sessionId,
    agents: after.agents.length,
    runs: after.agents.reduce((sum, { runs }) => sum + runs.length, 0),
    requests: { made, same, uncompared },
    costUsd: { recorded: costOf(before), now: costOf(after) },
    differences,
    damage: before.damage ?? [],
  };
}

interface Pair {
  readonly before: Recording;
  readonly after: Recording;
  readonly agent: RecordedAgent;
  readonly other: RecordedAgent;
  readonly renamed: (request: ModelRequest) => ModelRequest;
}

/** Children have new ids in the second recording; where they are mentioned, that is no difference. */
function sameIds(before: Recording, after: Recording): (request: ModelRequest) => ModelRequest {
  const ids = after.agents.flatMap((agent) => {
    const old = before.agents.find((candidate) => isSameAgent(candidate, agent));
    return old === undefined || old.id === agent.id ? [] : [[agent.id, old.id] as const];
  });
  if (ids.length === 0) return (request) => request;
  return (request) => {
    const text = ids.reduce((last, [id, old]) => last.replaceAll(id, old), JSON.stringify(request));
    // It was a request before the ids in it were replaced.
    return JSON.parse(text) as ModelRequest;
  };
}

/** Its parent was given the recorded result, so that the child was not needed. */
function wasRecordedCall(agent: RecordedAgent, before: Recording, after: Recording): boolean {
  const callId = callOf(agent);
  const resultIn = (recording: Recording): string | undefined => {
    const steps = recording.agents.find(({ id }) => id === mainAgent)?.runs.flatMap((run) => run.steps) ?? [];
    const results = steps.flatMap((step) => (step.type === "results" ? step.results : []));
    const found = results.find(({ block }) => block.tool_use_id === callId);
    return found === undefined ? undefined : JSON.stringify(found.block);
  };
  const known = resultIn(before);
  return known !== undefined && known === resultIn(after);
}

/** The main agent, or the child of the same call. */
function isSameAgent(a: RecordedAgent, b: RecordedAgent): boolean {
  if (a.id === mainAgent || b.id === mainAgent) return a.id === b.id;
  const [first, second] = [callOf(a), callOf(b)];
  return first === undefined ? a.name === b.name : first === second;
}

function callOf({ runs }: RecordedAgent): unknown {
  const task = runs[0]?.plan?.task;
  return isRecord(task) ? task.callId : undefined;
}

interface Turn {
  readonly run: RecordedRun;
  readonly answer: RecordedAnswer;
  readonly results: readonly RecordedResult[];
}

function compareAgents({ before, after, agent, other, renamed }: Pair) {
  const [old, now] = [turnsOf(agent), turnsOf(other)];
  const differences: Difference[] = [];
  let same = 0;
  let uncompared = 0;
  for (let index = 0; index < Math.max(old.length, now.length); index += 1) {
    const [was, is] = [old[index], now[index]];
    const at = { turn: index + 1, message: (was ?? is)?.answer.uuid ?? "" };
    if (was === undefined || is === undefined) {
      differences.push(about(agent, turnsDifference(old.length, now.length), at));
      break;
    }
    const [asked, asks] = [
      requestBefore(before, was.run, was.answer),
      requestBefore(after, is.run, is.answer),
    ];
    const isKnown = asked !== undefined && asks !== undefined;
    const changes = isKnown ? compareRequests(asked, renamed(asks)) : [];
    if (!isKnown) uncompared += 1;
    else if (changes.length === 0) same += 1;
    const found = [
      ...changes,
      ...compareAnswers(was.answer.answer.message, is.answer.answer.message),
      ...compareResults(was, is),
    ];
    differences.push(...found.map((difference) => about(agent, difference, at)));
  }
  return { differences, same, uncompared, made: now.length };
}

function turnsOf({ runs }: RecordedAgent): readonly Turn[] {
  return runs.flatMap((run) =>
    run.steps.flatMap((step, index): readonly Turn[] => {
      if (step.type !== "answer") return [];
      const next = run.steps[index + 1];
      return [{ run, answer: step, results: next?.type === "results" ? next.results : [] }];
    }),
  );
}

function turnsDifference(old: number, now: number): BareDifference {
  return { kind: "turns", title: "the number of answers", lines: [`- ${old}`, `+ ${now}`] };
}

function compareAnswers(before: AssistantMessage, after: AssistantMessage): readonly BareDifference[] {
  const describe = (message: AssistantMessage): string =>
    [
      textOf(message),
      ...toolCallsOf(message).map(({ name, input }) => `${name} ${JSON.stringify(input)}`),
    ].join("\n");
  const lines = lineChanges(describe(before), describe(after));
  return lines.length === 0 ? [] : [{ kind: "message", title: "the answer", lines }];
}

function compareResults({ results: before }: Turn, { results: after }: Turn): readonly BareDifference[] {
  return before.flatMap((was): readonly BareDifference[] => {
    const is = after.find(({ block }) => block.tool_use_id === was.block.tool_use_id);
    if (is === undefined || (was.denied === undefined) === (is.denied === undefined)) return [];
    const describeResult = (result: RecordedResult): string =>
      result.denied === undefined ? "it ran" : `denied: ${result.denied}`;
    const title = `whether the call ${was.block.tool_use_id} may run`;
    return [{ kind: "decision", title, lines: [`- ${describeResult(was)}`, `+ ${describeResult(is)}`] }];
  });
}

function firstOfEachKind(differences: readonly Difference[]): readonly Difference[] {
  const first = differenceKinds.flatMap(
    (kind) => differences.find((difference) => difference.kind === kind) ?? [],
  );
  return first.toSorted((a, b) => (a.turn ?? 0) - (b.turn ?? 0));
}

function about(
  { id, name }: RecordedAgent,
  difference: BareDifference,
  at: Pick<Difference, "turn" | "message"> = {},
): Difference {
  return { ...difference, ...at, agentId: id, agent: name };
}

function costOf({ agents }: Recording): number {
  const steps = agents.flatMap(({ runs }) => runs.flatMap((run) => run.steps));
  return steps.reduce((sum, step) => sum + (step.type === "answer" ? (step.costUsd ?? 0) : 0), 0);
}
