import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";

/** The tool and the one argument that shows most. */
export function describeCall({ name, input }: ToolUseBlock): string {
  const fields = typeof input === "object" && input !== null ? Object.entries(input) : [];
  const reporting = ["file_path", "path", "pattern", "command", "url", "query", "description"];
  const [, value] = fields.find(([key]) => reporting.includes(key)) ?? [];
  return typeof value === "string" ? `${name} ${value.split("\n")[0]?.slice(0, 100)}` : name;
}
