/** Which session, and in which project it is. */
export interface Place {
  readonly project: string;
  readonly id: string;
}

export type Route =
  | { readonly type: "live" | "sessions" | "approvals" | "teams" | "evals" }
  | { readonly type: "session"; readonly place: Place }
  | { readonly type: "team" | "merge"; readonly place: Place }
  | { readonly type: "run"; readonly place: Place; readonly runId: string }
  | { readonly type: "agent"; readonly place: Place; readonly agentId: string }
  | { readonly type: "compare"; readonly left: Place; readonly right: Place };

/** Total: what names nothing is what runs now. */
export function readRoute(hash: string): Route {
  const [kind, project, id, third, fourth] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (kind === "sessions" || kind === "approvals" || kind === "teams" || kind === "evals")
    return { type: kind };
  if (project === undefined || id === undefined) return { type: "live" };
  const place = { project, id };
  if (kind === "session") return { type: "session", place };
  if (kind === "team" || kind === "merge") return { type: kind, place };
  if (kind === "run" && third !== undefined) return { type: "run", place, runId: third };
  if (kind === "agent" && third !== undefined) return { type: "agent", place, agentId: third };
  if (kind === "compare" && third !== undefined && fourth !== undefined)
    return { type: "compare", left: place, right: { project: third, id: fourth } };
  return { type: "live" };
}

export function sessionLink({ project, id }: Place): string {
  return link("session", project, id);
}

export function teamLink({ project, id }: Place): string {
  return link("team", project, id);
}

export function mergeLink({ project, id }: Place): string {
  return link("merge", project, id);
}

export function runLink({ project, id }: Place, runId: string): string {
  return link("run", project, id, runId);
}

export function agentLink({ project, id }: Place, agentId: string): string {
  return link("agent", project, id, agentId);
}

export function compareLink(left: Place, right: Place): string {
  return link("compare", left.project, left.id, right.project, right.id);
}

function link(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
