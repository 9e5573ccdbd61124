import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { notificationsOf, playWorkflowCase, runsOf, tag, type WorkflowCase } from "./play-workflow-case.ts";
import { type Finished, ofType, resultOf } from "./sdk-stage.ts";

interface Case extends WorkflowCase {
  readonly observed: {
    readonly result: string;
    readonly workflowCalls: readonly string[];
    readonly notifications: readonly {
      readonly status: string;
      readonly summary: string;
      readonly result?: unknown;
      readonly usage: Readonly<Record<string, number>>;
    }[];
    readonly runs: readonly {
      readonly status: string;
      readonly workflowName: string;
      readonly agentCount: number;
      readonly logs: readonly string[];
      readonly phases?: unknown;
      readonly progress: readonly string[];
    }[];
    readonly journal: readonly (readonly (readonly unknown[])[])[];
    readonly agents: Readonly<Record<string, { readonly requests: number }>>;
    readonly stream: readonly string[];
  };
}

const folder = join(projectRoot, "test/fixtures/workflow-cases");
const names = readdirSync(folder).flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -5)] : []));

/** Errors are worded differently here: only that something was thrown, and by what class, is the same. */
function withoutWording(value: unknown): unknown {
  if (typeof value === "string") return value.replace(/^(THROWS \w+): .*/s, "$1");
  if (Array.isArray(value)) return value.map(withoutWording);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withoutWording(entry)]));
}

const progressLine = (entry: Record<string, unknown>): string =>
  entry["type"] === "workflow_phase"
    ? `phase ${entry["index"]} ${entry["title"]}`
    : `agent ${entry["index"]} ${entry["label"]} ${entry["state"]}${entry["phaseTitle"] === undefined ? "" : ` in ${entry["phaseTitle"]}`}${entry["cached"] === true ? " cached" : ""}`;

const streamOf = (finished: Finished): readonly string[] =>
  ofType(finished, "system")
    .filter(({ subtype }) => /^(background_tasks_changed|task_)/.test(String(subtype)))
    .filter((message) => message["subtype"] !== "task_progress")
    .map((message) => {
      const patch = message["patch"] as { status?: string } | undefined;
      const more = [
        message["subtype"] === "task_started" ? `${message["task_type"]} ${message["workflow_name"]}` : "",
        patch?.status ?? "",
        message["subtype"] === "task_notification" ? message["status"] : "",
      ];
      return [message["subtype"], ...more.filter((word) => word !== "")].join(" ");
    });

/** What comes out better here on purpose: a step that did not change is not run again. */
const better: Readonly<Record<string, Readonly<Record<string, number>>>> = { "12-resume-edited": { c: 1 } };

test.each(names)("%s behaves as it was seen, or better [WFL-1, WFL-3]", async (name) => {
  const read: Case = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  const file = join(folder, `${name}.js`);
  const script = existsSync(file) ? readFileSync(file, "utf8") : "";
  const { finished, requests, stage } = await playWorkflowCase({ ...read, script });
  const { observed } = read;
  expect(resultOf(finished)).toMatchObject({ subtype: "success", result: observed.result });
  const notices = notificationsOf({ stage });
  const shown = notices.map((notice) => ({
    status: tag(notice, "status"),
    summary: tag(notice, "summary"),
    ...(tag(notice, "result") === undefined
      ? {}
      : { result: withoutWording(JSON.parse(tag(notice, "result") ?? "")) }),
    usage: Object.fromEntries(
      Object.keys(observed.notifications[0]?.usage ?? {}).map((key) => [key, Number(tag(notice, key))]),
    ),
  }));
  expect(shown).toEqual(
    observed.notifications.map(({ status, summary, usage, ...more }) => ({
      ...{ status, summary, usage },
      ...("result" in more ? { result: withoutWording(more.result) } : {}),
    })),
  );
  const runs = runsOf(stage.home);
  expect(
    runs.map(({ status, workflowName, agentCount }) => ({ status, workflowName, agentCount })).sort(byName),
  ).toEqual(
    observed.runs
      .map(({ status, workflowName, agentCount }) => ({ status, workflowName, agentCount }))
      .sort(byName),
  );
  if (runs.length === 1) {
    const cached = name in better ? (line: string) => line.replace(/ cached$/, "") : (line: string) => line;
    expect(
      (runs[0]?.["workflowProgress"] as Record<string, unknown>[]).map(progressLine).map(cached),
    ).toEqual(observed.runs[0]?.progress.map(cached));
    expect((runs[0]?.["logs"] as string[]).length).toBe(observed.runs[0]?.logs.length);
  }
  const counts = Object.entries(observed.agents).map(([label, { requests: count }]) => [
    label,
    better[name]?.[label] ?? count,
  ]);
  const faults = new Set(
    Object.entries(read.agents ?? {})
      .filter(([, answers]) =>
        answers.some((answer) => typeof answer === "object" && answer.fault !== undefined),
      )
      .map(([label]) => label),
  );
  expect(Object.fromEntries(requests)).toEqual(
    Object.fromEntries(counts.map(([label, count]) => [label, faults.has(String(label)) ? 1 : count])),
  );
  expect(streamOf(finished)).toEqual(observed.stream.filter((line) => !line.startsWith("task_progress")));
});

function byName(one: { workflowName?: unknown }, other: { workflowName?: unknown }): number {
  return String(one.workflowName) < String(other.workflowName) ? -1 : 1;
}
