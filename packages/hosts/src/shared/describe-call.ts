import type { ToolUseBlock } from "@retinue/core/conversation/message.ts";

/** The tool and the one argument that shows most; a file as `fileName` shows it. */
export function describeCall(
  { name, input }: Pick<ToolUseBlock, "name" | "input">,
  fileName: (file: string) => string = (file) => file,
): string {
  const fields = typeof input === "object" && input !== null ? Object.entries(input) : [];
  const [key = "", value] = fields.find(([field]) => reporting.has(field)) ?? [];
  if (typeof value !== "string") return name;
  const text = files.has(key) ? fileName(value) : value;
  return `${name} ${text.split("\n")[0]?.slice(0, 100)}`;
}

const files: ReadonlySet<string> = new Set(["file_path", "notebook_path", "path"]);
const reporting: ReadonlySet<string> = new Set([
  ...files,
  "pattern",
  "command",
  "url",
  "query",
  "description",
]);
