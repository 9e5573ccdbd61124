const maxName = 256;

/** Why a name cannot call a skill; undefined when it can. Names are looked up and never joined to a path. */
export function refuseSkillName(name: string): string | undefined {
  if (name.trim() === "") return "it is empty";
  if (name.length > maxName) return `it is longer than ${maxName} characters`;
  if (invisible.test(name)) return "it holds a control or invisible character";
  if (/[/\\]/.test(name) || /^[.~]/.test(name)) return "it reads as a path";
  if (/^[-$]/.test(name) || /\s/.test(name)) return "it cannot be typed as one word";
  if (/^__.*__$/.test(name)) return "such names mean something to programs";
  return undefined;
}

/** A name that is only shown may have blanks and signs, but nothing that changes the text around it. */
export function isShowableName(name: string): boolean {
  return name.trim() !== "" && name.length <= maxName && !invisible.test(name);
}

/** `plugin:name`; a name that already carries its plugin's is left as it is. */
export function pluginSkillName(plugin: string, name: string): string {
  return name.startsWith(`${plugin}:`) ? name : `${plugin}:${name}`;
}

const invisible = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
