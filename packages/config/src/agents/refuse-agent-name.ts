/** Why a name cannot identify an agent, with the reason as a stable code. */
export interface NameRefusal {
  readonly code: "name-empty" | "name-reserved-char" | "name-leading-dash" | "name-unsafe" | "name-too-long";
  readonly reason: string;
}

const maxName = 256;

/**
 * Names become directory names, rule texts and tool inputs. A title such as `Spatial/Metal Engineer` is accepted, because
 * people have such files and the name is never used as a path as it is; whatever could lead out of a directory is not.
 */
export function refuseAgentName(name: string): NameRefusal | undefined {
  if (name.trim() === "") return { code: "name-empty", reason: "it is empty" };
  if (name.length > maxName)
    return { code: "name-too-long", reason: `it is longer than ${maxName} characters` };
  if (name.startsWith("-"))
    return { code: "name-leading-dash", reason: "it starts with `-`, which reads as a flag" };
  if (/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/.test(name)) {
    return { code: "name-unsafe", reason: "it contains a control or invisible character" };
  }
  if (/^__.*__$/.test(name)) return { code: "name-unsafe", reason: "such names mean something to programs" };
  if (isPathLike(name)) return { code: "name-unsafe", reason: "it could lead out of a directory" };
  if (name.includes(":")) {
    return { code: "name-reserved-char", reason: "`:` is reserved for the `plugin:name` form" };
  }
  return undefined;
}

function isPathLike(name: string): boolean {
  if (name.includes("\\") || /^[/~]/.test(name)) return true;
  if (name.split("/").some((part) => part.trim() === "" || /^\.+$/.test(part.trim()))) return true;
  return name.includes("/") && !name.includes(" ");
}

/** Lower-case letters, digits and hyphens: the form that works everywhere. */
export function isAdvisedAgentName(name: string): boolean {
  return /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name);
}
