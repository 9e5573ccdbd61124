import { dump } from "js-yaml";

/** Fields that are not there are not written. */
export type WrittenFields = readonly (readonly [key: string, value: unknown])[];

/** Fields between two fences, an empty line, and the prompt. */
export function writeFenced(fields: WrittenFields, body: string, note?: string): string {
  const lines = fields.filter(([, value]) => value !== undefined).map(([key, value]) => yamlOf(key, value));
  const comment =
    note === undefined
      ? ""
      : `${note
          .split("\n")
          .map((line) => `# ${line}\n`)
          .join("")}`;
  return `---\n${comment}${lines.join("")}---\n${body === "" ? "" : `\n${body}\n`}`;
}

function yamlOf(key: string, value: unknown): string {
  return dump({ [key]: value }, { lineWidth: -1, noRefs: true });
}

export function writeJson(fields: WrittenFields): string {
  const present = fields.filter(([, value]) => value !== undefined);
  return `${JSON.stringify(Object.fromEntries(present), undefined, 2)}\n`;
}
