import type { SettingsLayer } from "./settings-layer.ts";

/** What people have said about the servers of a project. */
export interface McpApprovals {
  /** By name, from places that a repository does not bring along. */
  readonly enabled: ReadonlySet<string>;
  readonly allEnabled: boolean;
  readonly disabled: ReadonlySet<string>;
  /** The hash of each definition that was approved here; "unreadable" means that no one knows. */
  readonly recorded: ReadonlyMap<string, string> | "unreadable";
}

export interface ProjectServer {
  readonly name: string;
  readonly hash: string;
  /** It would take the place of a server of the person's own. */
  readonly replacesOwn: boolean;
}

export interface ApprovalFacts {
  readonly trusted: boolean;
  /** Somebody can be asked. */
  readonly attended: boolean;
  readonly approvals: McpApprovals;
}

export type ApprovalVerdict =
  | { readonly type: "connect" }
  | { readonly type: "ask"; readonly reason: string }
  | {
      readonly type: "hold";
      readonly code: "untrusted" | "rejected" | "not-approved" | "changed";
      readonly reason: string;
      readonly advice: string;
    };

export const untrusted = {
  reason: "the folder is not trusted",
  advice: "`retinue trust` shows what the folder would run, and asks; --trust counts for one run.",
} as const;

/** Whether a server that came with a project may be started. */
export function decideProjectServer(
  { name, hash, replacesOwn }: ProjectServer,
  { trusted, attended, approvals }: ApprovalFacts,
): ApprovalVerdict {
  if (!trusted) return { type: "hold", code: "untrusted", ...untrusted };
  const advice = `Look at it with \`retinue mcp get ${name}\`, then \`retinue mcp approve ${name}\`.`;
  if (approvals.disabled.has(name)) {
    return { type: "hold", code: "rejected", reason: "`disabledMcpjsonServers` names it", advice };
  }
  const { recorded } = approvals;
  const approved = recorded === "unreadable" ? "" : recorded.get(name);
  if (approved === hash) return { type: "connect" };
  if (approved !== undefined) {
    const reason =
      recorded === "unreadable"
        ? "the record of what was approved cannot be read"
        : "its definition is not the one that was approved";
    return attended ? { type: "ask", reason } : { type: "hold", code: "changed", reason, advice };
  }
  if (approvals.allEnabled || approvals.enabled.has(name)) return { type: "connect" };
  if (attended) return { type: "ask", reason: "it came with the project and no one has approved it" };
  if (!replacesOwn) return { type: "connect" };
  const reason = "it would take the place of your own server of this name, and no one has approved that";
  return { type: "hold", code: "not-approved", reason, advice };
}

/** The committed settings of a project reject servers but never approve them, or a repository would approve itself. */
export function readApprovalSettings(layers: readonly SettingsLayer[]): Omit<McpApprovals, "recorded"> {
  const approving = layers
    .filter(({ source }) => source.scope !== "project")
    .map(({ settings }) => settings.plain);
  return {
    enabled: new Set(approving.flatMap(({ enabledMcpjsonServers }) => enabledMcpjsonServers ?? [])),
    allEnabled: approving.some(({ enableAllProjectMcpServers }) => enableAllProjectMcpServers === true),
    disabled: new Set(layers.flatMap(({ settings }) => settings.plain.disabledMcpjsonServers ?? [])),
  };
}
