import { createHash } from "node:crypto";
import type { AgentDefinition, MemoryScope } from "../agents/agent-definition.ts";

/** Where an agent keeps what it learns. */
export interface MemoryPlace {
  readonly scope: MemoryScope;
  /** Absolute, with links followed. */
  readonly directory: string;
}

/** The file whose beginning an agent is shown. */
export const memoryFile = "MEMORY.md";

/**
 * The name of an agent's directory: its own name, and `plugin__name` for the agent of a plugin. No two agents share one,
 * so a plugin cannot take the place of a person's `code-reviewer` by calling itself `code`.
 */
export function memoryDirectoryName({ name, source }: Pick<AgentDefinition, "name" | "source">): string {
  const plain = (source.id ?? name).split(":").map(encodePart).join("__");
  const encoded = reservedNames.test(plain) ? `${percentEncoded(plain.slice(0, 1))}${plain.slice(1)}` : plain;
  if (encoded.length <= maxName) return encoded;
  const digest = createHash("sha256").update(encoded).digest("hex").slice(0, 16);
  return `${encoded.slice(0, maxName - digest.length - 1).replace(/%.?$/, "")}-${digest}`;
}

/** Devices of Windows, whichever folder they seem to be in. */
const reservedNames = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

/** File systems take 255 bytes at most. */
const maxName = 200;

/** Single `_` between other characters stay, so that two of them only ever are between plugin and name. */
function encodePart(part: string): string {
  return part.replace(/_(?=_)|(?<=_)_|^_|_$|[^A-Za-z0-9_-]/gu, percentEncoded);
}

function percentEncoded(character: string): string {
  return [...new TextEncoder().encode(character)]
    .map((byte) => `%${byte.toString(16).padStart(2, "0")}`)
    .join("");
}
