import { emptyRow, type Row, span } from "../screen/row.ts";
import { bold, colours } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { AgentEntry, ToolCall, ToolResult } from "../session/terminal-session.ts";
import { expandedCallRows } from "../text/finished-call-rows.ts";
import { MarkdownStream } from "../text/markdown-stream.ts";
import type { RowContext } from "../text/row-context.ts";

/** Everything an agent said and did, each call with its whole input and output. */
export function entryRows(entries: readonly AgentEntry[], context: RowContext): readonly Row[] {
  const { width } = context;
  const results = new Map<string, ToolResult>();
  for (const entry of entries) if (entry.type === "result") results.set(entry.callId, entry.result);
  const calls = new Map<string, ToolCall>();
  return entries.flatMap((entry): readonly Row[] => {
    switch (entry.type) {
      case "prompt":
        return [
          ...entry.text
            .split("\n")
            .flatMap((line) =>
              wrapRow([span(line, bold)], width, { first: [span("> ", colours.accent)], rest: [span("  ")] }),
            ),
          emptyRow,
        ];
      case "text":
        return [...markdownRows(entry.text, context), emptyRow];
      case "call":
        calls.set(entry.call.id, entry.call);
        return [...expandedCallRows(entry.call, results.get(entry.call.id), context), emptyRow];
      case "ended":
        return wrapRow([span(entry.text, colours.warning)], width);
      default:
        return [];
    }
  });
}

function markdownRows(text: string, context: RowContext): readonly Row[] {
  const stream = new MarkdownStream(() => context);
  return [...stream.push(text), ...stream.end()];
}
