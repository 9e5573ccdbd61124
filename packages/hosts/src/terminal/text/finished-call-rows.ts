import { describeCall } from "../../shared/describe-call.ts";
import { firstLine, formatDuration, lastLine, plural } from "../../shared/format.ts";
import { cutRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, combine, dim, plain } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { EndedCommand, ToolCall, ToolResult } from "../session/terminal-session.ts";
import { diffCounts, diffRows } from "./diff-rows.ts";
import type { RowContext } from "./row-context.ts";

/** What a call is about: its file, command, pattern or address. */
export function callSubject({ tool, input }: ToolCall, fileName: RowContext["fileName"]): string {
  return describeCall({ name: tool, input }, fileName).slice(tool.length + 1);
}

/** A call that runs: one line, with the last sign of life of it. */
export function runningCallRow(call: ToolCall, progress: string, { width, fileName }: RowContext): Row {
  const subject = callSubject(call, fileName);
  return cutRow(
    [
      span("○ ", dim),
      span(call.tool, bold),
      ...(subject === "" ? [] : [span(` ${subject}`)]),
      ...(progress === "" || call.tool === "Bash" ? [] : [span(`  ${lastLine(progress)}`, dim)]),
    ],
    width,
  );
}

const maxLiveRows = 4;

/** The end of what a command that runs has written. */
export function liveOutputRows({ tool }: ToolCall, progress: string, { width }: RowContext): readonly Row[] {
  if (tool !== "Bash" || progress === "") return [];
  return progress
    .split("\n")
    .slice(-maxLiveRows)
    .map((line) => cutRow([span("  "), span(line, dim)], width));
}

const maxDiffRows = 16;
const maxOutputRows = 30;

/** A command that the person ran: its line, and below it what it wrote. */
export function shellRows(call: ToolCall, result: ToolResult, context: RowContext): readonly Row[] {
  const { text, isError, durationMs } = result;
  const { width, fileName } = context;
  if (result.refusal !== undefined) return finishedCallRows(call, result, context);
  const rows = text
    .trimEnd()
    .split("\n")
    .flatMap((line) =>
      wrapRow([span(line, isError ? colours.error : plain)], width, { first: [span("  ")] }),
    );
  const left = rows.length - maxOutputRows;
  const more = [span(`  … ${plural(left, "more line")} before; the agent reads all of it`, dim)];
  return [
    cutRow(
      [
        isError ? span("✗ ", colours.error) : span("● ", colours.good),
        span(call.tool, bold),
        span(` ${callSubject(call, fileName)}`),
        span(`  ${formatDuration(durationMs)}`, dim),
      ],
      width,
    ),
    ...(left > 0 ? [more, ...rows.slice(left)] : rows),
  ];
}

/** A command in the background that has ended: one line. */
export function endedCommandRow({ command, state, exitCode, durationMs }: EndedCommand, width: number): Row {
  const isGood = state === "completed";
  const how = {
    completed: "ended",
    failed: `ended with the code ${exitCode ?? "unknown"}`,
    stopped: "stopped",
    "timed-out": "ended at its time limit",
  };
  const end = `  ${how[state]} in the background · ${formatDuration(durationMs)}`;
  const title = [
    isGood ? span("✓ ", colours.good) : span("✗ ", state === "stopped" ? dim : colours.error),
    span("Bash", bold),
    span(` ${firstLine(command)}`),
  ];
  return cutRow([...cutRow(title, Math.max(10, width - end.length)), span(end, dim)], width);
}

/** A call that has ended: one line; below it the change where it changed a file, and the reason where it did not run. */
export function finishedCallRows(call: ToolCall, result: ToolResult, context: RowContext): readonly Row[] {
  const { width, fileName } = context;
  const subject = callSubject(call, fileName);
  const isBad = result.isError || result.refusal !== undefined;
  const title = [
    isBad ? span("✗ ", colours.error) : span("● ", colours.good),
    span(call.tool, bold),
    ...(subject === "" ? [] : [span(` ${subject}`)]),
  ];
  if (result.refusal !== undefined)
    return [
      cutRow(title, width),
      ...wrapRow([span(`not run: ${result.refusal}`, colours.warning)], width, { first: [span("  ")] }),
    ];
  if (result.isError)
    return [
      cutRow(title, width),
      ...errorText(call, result)
        .split("\n")
        .flatMap((line) => wrapRow([span(line, colours.error)], width, { first: [span("  ")] }))
        .slice(-maxErrorRows),
    ];
  // The facts are never cut; a long command and a long result share the rest.
  const { summary, facts } = summaryOf(call, result);
  const end: Row = facts === "" ? [] : [span(`${summary === "" ? "  " : " · "}${facts}`, dim)];
  const room = Math.max(10, width - rowWidth(end));
  const middle: Row = summary === "" ? [] : [span(`  ${summary}`, dim)];
  const titleRoom = Math.max(Math.floor(room / 2), room - rowWidth(middle));
  const row = cutRow([...cutRow([...cutRow(title, titleRoom), ...middle], room), ...end], width);
  return result.diff === undefined
    ? [row]
    : [row, ...diffRows(result.diff, context, { maxRows: maxDiffRows })];
}

const maxErrorLines = 4;
const maxErrorRows = 6;

/** Commands say last why they failed, often in more than a line. */
function errorText({ tool }: ToolCall, { text }: ToolResult): string {
  return tool === "Bash" ? text.trimEnd().split("\n").slice(-maxErrorLines).join("\n") : firstLine(text);
}

interface Summary {
  /** A line of the result itself, of any length. */
  readonly summary: string;
  /** Counts and times. */
  readonly facts: string;
}

/** What there is to say about a result in a few words. */
function summaryOf({ tool }: ToolCall, { text, diff, durationMs }: ToolResult): Summary {
  const time = durationMs >= 2000 ? [formatDuration(durationMs)] : [];
  if (diff !== undefined) {
    const { added, removed } = diffCounts(diff);
    return { summary: "", facts: [`+${added} −${removed}`, ...time].join(" · ") };
  }
  const lines = text === "" ? 0 : text.trimEnd().split("\n").length;
  if (countedTools.has(tool)) return { summary: "", facts: [plural(lines, "line"), ...time].join(" · ") };
  const more = lines > 1 ? [plural(lines, "line")] : [];
  return {
    summary: tool === "Bash" ? lastLine(text) : firstLine(text),
    facts: [...more, ...time].join(" · "),
  };
}

const countedTools: ReadonlySet<string> = new Set(["Read", "Grep", "Glob", "WebFetch", "WebSearch"]);

/** A call with all its input and output, for the transcript and the views of agents. */
export function expandedCallRows(
  call: ToolCall,
  result: ToolResult | undefined,
  context: RowContext,
): readonly Row[] {
  const { width } = context;
  const isBad = result?.isError === true || result?.refusal !== undefined;
  const sign = isBad ? span("✗ ", colours.error) : span("● ", colours.good);
  const title = [result === undefined ? span("○ ", dim) : sign, span(call.tool, bold)];
  const output = result === undefined ? "" : (result.refusal ?? result.text);
  return [
    title,
    ...block(inputText(call.input), width, dim),
    ...(result?.diff === undefined ? [] : diffRows(result.diff, context, { maxRows: 10_000 })),
    ...block(output, width, result?.isError === true ? combine(plain, colours.error) : plain),
  ];
}

/** What is called with, as text: what matters most first, then each other field, of which texts keep their lines. */
function inputText(input: unknown): string {
  if (typeof input !== "object" || input === null) return String(input ?? "");
  const fields = Object.entries(input).filter(([, value]) => value !== undefined);
  const isMain = ([key, value]: readonly [string, unknown]): boolean =>
    mainFields.has(key) && typeof value === "string";
  return [
    ...fields.filter(isMain).map(([, value]) => String(value)),
    ...fields.filter((field) => !isMain(field)).map(([key, value]) => fieldText(key, value)),
  ].join("\n");
}

function fieldText(key: string, value: unknown): string {
  if (typeof value !== "string") return `${key}: ${JSON.stringify(value)}`;
  if (!value.includes("\n")) return `${key}: ${value}`;
  return [
    `${key}:`,
    ...value
      .trimEnd()
      .split("\n")
      .map((line) => `  ${line}`),
  ].join("\n");
}

const mainFields: ReadonlySet<string> = new Set([
  "command",
  "url",
  "file_path",
  "notebook_path",
  "query",
  "pattern",
]);

function block(text: string, width: number, style: number): readonly Row[] {
  if (text === "") return [];
  return text.split("\n").flatMap((line) => wrapRow([span(line, style)], width, { first: [span("    ")] }));
}
