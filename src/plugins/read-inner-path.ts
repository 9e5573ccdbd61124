/** A path inside a plugin or marketplace, with forward slashes and relative to its root; `.` is the root itself. */
export type PathReading =
  | { readonly type: "inside"; readonly path: string }
  | { readonly type: "refused"; readonly why: string };

/** Reads a path that a manifest names. What leads out of the root is refused, however it is spelled. */
export function readInnerPath(written: string): PathReading {
  const text = written.trim().replaceAll("\\", "/");
  if (text === "") return { type: "refused", why: "it is empty" };
  if (text.includes("\0")) return { type: "refused", why: "it holds a NUL character" };
  const relative = text.startsWith(rootVariable) ? `.${text.slice(rootVariable.length)}` : text;
  if (/^(?:\/|~|[A-Za-z]:|[a-z][a-z0-9+.-]*:\/\/)/.test(relative)) {
    return { type: "refused", why: "it is not relative" };
  }
  const segments: string[] = [];
  for (const segment of relative.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return { type: "refused", why: "it leads outside" };
  }
  return { type: "inside", path: segments.length === 0 ? "." : segments.join("/") };
}

/** Whether a name can be as one folder name and in an id without meaning something else. */
export function isSafeName(name: string): boolean {
  return /^[^\s/\\:\0-\x1f.-][^/\\:\0-\x1f]*$/.test(name) && name.length <= 256;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: manifests spell the variable like this
const rootVariable = "${CLAUDE_PLUGIN_ROOT}";
