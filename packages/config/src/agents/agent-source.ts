/** Where definitions come from, highest rank first. */
export const agentScopes = ["managed", "session", "project", "user", "plugin", "builtin"] as const;
export type AgentScope = (typeof agentScopes)[number];

export interface AgentSource {
  readonly scope: AgentScope;
  readonly file?: string | undefined;
  readonly plugin?: string | undefined;
  /** The id under which a plugin's agent is known: `plugin:name`. */
  readonly id?: string | undefined;
  /** The format of its file, where that is another product's. */
  readonly format?: string | undefined;
  /** The line at which it begins, in a file of another format. */
  readonly line?: number | undefined;
  /** Its folder is not trusted by itself, whatever the working folder is. */
  readonly untrusted?: true | undefined;
  /** The runtime starts it for its own purposes; it is found by name, and no model is offered it. */
  readonly isUnlisted?: true | undefined;
}

/** Whether a file may run programs and widen rights: one of a project only where its folder and the working folder are trusted. */
export function mayWiden(
  source: { readonly scope: string; readonly untrusted?: true },
  trusted: boolean,
): boolean {
  return source.scope !== "project" || (trusted && source.untrusted !== true);
}
