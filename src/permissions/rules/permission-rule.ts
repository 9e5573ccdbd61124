export type RuleList = "allow" | "ask" | "deny";

/** Where a path pattern starts: `//x`, `~/x`, `/x` (the place of the settings file), and `x` or `./x`. */
export type PathAnchor = "root" | "home" | "settings" | "cwd";

export type RuleSpecifier =
  | { readonly type: "whole" }
  /** `prefix` ends at a word; `wildcard` keeps its stars, and a last ` *` also matches nothing at all. */
  | { readonly type: "command"; readonly match: "exact" | "prefix" | "wildcard"; readonly text: string }
  /** Gitignore style, without the sign of the anchor; a leading `./` stays. */
  | { readonly type: "path"; readonly anchor: PathAnchor; readonly pattern: string }
  /** Lower case; `*` may be in it. */
  | { readonly type: "domain"; readonly domain: string }
  /** Without `tool`: the whole server. `glob`: the tool has stars. */
  | { readonly type: "mcp"; readonly server: string; readonly tool?: string; readonly glob: boolean }
  | { readonly type: "agent"; readonly names: readonly string[] }
  | { readonly type: "skill"; readonly name: string; readonly anyArguments: boolean }
  /** An input field with its value, which may have stars; for ask and deny only. */
  | { readonly type: "parameter"; readonly name: string; readonly value: string }
  /** The tool's name itself has stars; for ask and deny only. */
  | { readonly type: "toolGlob" }
  /** Not understood: an allow rule grants nothing by it, ask and deny rules must take it for the whole tool. */
  | { readonly type: "text"; readonly text: string };

export interface PermissionRule {
  /** As written. */
  readonly tool: string;
  /** Today's name of that tool. */
  readonly canonicalTool: string;
  readonly specifier: RuleSpecifier;
}

export type RuleReading =
  | { readonly type: "rule"; readonly rule: PermissionRule }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };
