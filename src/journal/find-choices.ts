// @io
import { readFile } from "node:fs/promises";
import { parseLines } from "../storage/read-lines.ts";
import { choiceTypes, readChoice, type SessionChoices } from "./session-choices.ts";

/** The choices a transcript keeps. A file that cannot be read says nothing; who opens it hears why. */
export async function findChoices(file: string): Promise<SessionChoices> {
  const bytes = await readFile(file).catch(() => Buffer.alloc(0));
  const agent = lastChoice(bytes, "agent");
  const model = lastChoice(bytes, "model");
  return { ...(agent === undefined ? {} : { agent }), ...(model === undefined ? {} : { model }) };
}

/** Looks from the end for the kind's mark and reads only lines that have it, since a transcript can be long. */
function lastChoice(bytes: Buffer, kind: keyof typeof choiceTypes): string | undefined {
  const mark = `"type":"${choiceTypes[kind]}"`;
  let at = bytes.lastIndexOf(mark);
  while (at !== -1) {
    const start = bytes.lastIndexOf("\n", at) + 1;
    const end = bytes.indexOf("\n", at);
    const [record] = parseLines(bytes.subarray(start, end === -1 ? bytes.length : end)).values;
    const choice = record === undefined ? undefined : readChoice(kind, record);
    if (choice !== undefined) return choice;
    if (start === 0) return undefined;
    at = bytes.lastIndexOf(mark, start - 1);
  }
  return undefined;
}
