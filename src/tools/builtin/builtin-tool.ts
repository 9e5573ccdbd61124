import type { Tool, ToolOutcome } from "../tool.ts";

/** A tool of this product, with the type of its input forgotten: the schema has checked it before `call` sees it. */
export function builtinTool<Input>(tool: Omit<Tool<Input>, "origin">): Tool {
  return { ...tool, origin: "builtin" } as Tool;
}

export function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true };
}

/** What went wrong with a file, as a sentence for the model. */
export function fileTrouble(error: unknown, path: string): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const known = typeof code === "string" ? troubles.get(code) : undefined;
  if (known !== undefined) return `${path}: ${known}.`;
  return `${path}: ${error instanceof Error ? error.message : String(error)}`;
}

const troubles: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied by the operating system"],
  ["EPERM", "permission denied by the operating system"],
  ["ENOENT", "does not exist"],
  ["ENOTDIR", "a part of this path is a file, not a folder"],
  ["EISDIR", "is a folder"],
  ["ELOOP", "its links lead in a circle"],
  ["ENAMETOOLONG", "the name is too long for the file system"],
  ["EROFS", "the file system is read-only"],
  ["ENOSPC", "the disk is full"],
]);
