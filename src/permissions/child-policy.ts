import type { PermissionMode, PermissionPolicy, ToolScopes } from "./permission-policy.ts";

/** What a child is started with, as far as it concerns rights. */
export interface ChildWishes {
  /** The mode of the call, and who made the call. */
  readonly call?: { readonly mode: PermissionMode; readonly by: "program" | "model" };
  readonly definition?: {
    readonly mode?: PermissionMode | undefined;
    readonly scope: string;
  };
  /** Whether a file of the project may ask for more than its parent has; only in a folder that is trusted. */
  readonly projectMayWiden?: boolean;
  /** The tools of the child, how far each goes, and where its memory is. */
  readonly tools?: ToolScopes;
  /** No one waits for it. */
  readonly background?: boolean;
}

/** The rights of a child: its parent's rules, a mode that is never wider than may be, and no tools beyond its own. */
export function childPolicy(parent: PermissionPolicy, wishes: ChildWishes): PermissionPolicy {
  return {
    ...parent,
    mode: childMode(parent.mode, wishes),
    // A program that names the mode speaks for the person; files and models do not.
    outerModes: [...(parent.outerModes ?? []), ...(wishes.call?.by === "program" ? [] : [parent.mode])],
    ...(wishes.tools === undefined ? {} : { toolScopes: [...(parent.toolScopes ?? []), wishes.tools] }),
    ...(wishes.background === true || parent.background === true ? { background: true } : {}),
  };
}

/** The call decides, then the definition, then the parent, each only where it may. */
export function childMode(parent: PermissionMode, wishes: ChildWishes): PermissionMode {
  if (parent === "bypassPermissions") return parent;
  const { call, definition } = wishes;
  if (call !== undefined && (call.by === "program" || isNoWider(call.mode, parent))) return call.mode;
  const own = definition?.mode;
  if (own === undefined || own === "bypassPermissions") return parent;
  if (isNoWider(own, parent)) return own;
  const mayWiden =
    definition?.scope !== "plugin" && (definition?.scope !== "project" || wishes.projectMayWiden === true);
  return mayWiden && own === "acceptEdits" && parent === "default" ? own : parent;
}

/** Modes that allow nothing that the parent's would not at least ask for. */
function isNoWider(mode: PermissionMode, parent: PermissionMode): boolean {
  return mode === parent || narrower[parent].includes(mode);
}

const narrower: Readonly<Record<PermissionMode, readonly PermissionMode[]>> = {
  plan: [],
  delegate: [],
  dontAsk: ["plan"],
  default: ["plan", "dontAsk", "delegate", "auto"],
  auto: ["plan", "dontAsk", "delegate", "default"],
  acceptEdits: ["plan", "dontAsk", "delegate", "default", "auto"],
  bypassPermissions: ["plan", "dontAsk", "delegate", "default", "auto", "acceptEdits"],
};
