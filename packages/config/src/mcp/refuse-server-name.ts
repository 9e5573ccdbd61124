import { mcpServerPart } from "./mcp-tool-name.ts";

const maxName = 200;

/** Why a server cannot go by this name, or undefined. Names become parts of tool names, log lines and file names. */
export function refuseServerName(name: string): string | undefined {
  if (name.trim() === "") return "a name must not be empty";
  if (name.length > maxName) return `a name has at most ${maxName} characters`;
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(name)) return "a name must not contain invisible characters";
  if (name.includes("__")) return "`__` separates server and tool in the names of tools";
  if (/_$/.test(name)) return "with `_` at its end, its tools could be taken for those of another server";
  // `@scope/name` is how packages are called and stays possible.
  return /^[/~]|^[A-Za-z]:[\\/]|\\/.test(name) ||
    name.split("/").some((segment) => /^\s*(?:\.{1,2}\s*)?$/.test(segment))
    ? "a name must not look like a path"
    : undefined;
}

/** The name of the server that already has the part in tool names that this one would have. */
export function findSameSpelling(name: string, taken: Iterable<string>): string | undefined {
  const part = mcpServerPart(name);
  return [...taken].find((other) => other !== name && mcpServerPart(other) === part);
}
