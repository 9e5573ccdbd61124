import { isDeepStrictEqual } from "node:util";
import type { Diagnostic, Place } from "@retinue/base/foundation/diagnostic.ts";
import { findRepeatedKeys } from "@retinue/base/foundation/find-repeated-keys.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument, withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { findNodeAtLocation, type ParseError, parseTree, parse as parseWithComments } from "jsonc-parser";
import { bareKey } from "../agents/agent-vocabulary.ts";
import { type Frontmatter, readFrontmatter } from "../agents/read-frontmatter.ts";
import type { PlaceOf, ReadContext } from "./portable-agent.ts";

/** The fields of one agent as they are written, before a format says what they mean. */
export interface SourceFields {
  readonly values: ReadonlyMap<string, unknown>;
  readonly body: string;
  readonly locate: PlaceOf;
  readonly diagnostics: readonly Diagnostic[];
}

/** A file that holds no agent: what is wrong with it. */
export interface SourceRefusal {
  readonly refused: readonly Diagnostic[];
}

/** No agent is larger; a file that is comes from a mistake. */
export const largestSource = 1024 * 1024;

/** Markdown, or YAML, with fields between two fences. */
export function readFenced(text: string, { file }: ReadContext): SourceFields | SourceRefusal {
  const frontmatter = readFrontmatter(text, vocabulary);
  if (frontmatter.type !== "read") return { refused: [refusalOf(frontmatter, file)] };
  const unreadable = [...frontmatter.fields.values()].filter((field) => field.unreadable !== undefined);
  const broken = unreadable.map(
    ({ key, unreadable: reason, place }): Diagnostic => ({
      severity: "error",
      code: "unreadable-restriction",
      message: `\`${key}\` cannot be read (${reason}); the agent is not loaded, because guessing could grant more than was meant.`,
      file,
      ...place,
    }),
  );
  if (broken.length > 0) return { refused: broken };
  const twice = frontmatter.repeated.find(
    ({ key, value }) =>
      limitMeantBy(key) !== undefined && !isDeepStrictEqual(value, frontmatter.fields.get(key)?.value),
  );
  if (twice !== undefined) {
    const places = [twice.place, frontmatter.fields.get(twice.key)?.place ?? twice.place];
    return {
      refused: [
        twiceDiagnostic(
          twice.key,
          places.map(({ line }) => line),
          file,
        ),
      ],
    };
  }
  // Keys that limit an agent and are written with other hyphens or in another case; beside the right one they are just unknown.
  const { fields } = frontmatter;
  const spelt = new Map<string, string>();
  for (const key of fields.keys()) {
    const meant = limitMeantBy(key);
    if (meant === undefined || meant === key || fields.has(meant) || [...spelt.values()].includes(meant))
      continue;
    spelt.set(key, meant);
  }
  return {
    values: new Map([...frontmatter.fields].map(([key, { value }]) => [spelt.get(key) ?? key, value])),
    body: frontmatter.body,
    locate: ([first, ...deeper]) => {
      const written = [...spelt].find(([, key]) => key === first)?.[0];
      return frontmatter.locate([written ?? first ?? "", ...deeper]);
    },
    diagnostics: [
      ...frontmatter.diagnostics,
      ...[...spelt].map(([written, key]) => misspeltDiagnostic(written, key, frontmatter)),
    ].map((each) => ({ ...each, file })),
  };
}

function misspeltDiagnostic(written: string, key: string, { locate }: Frontmatter): Omit<Diagnostic, "file"> {
  return {
    severity: "warning",
    code: "misspelt-key",
    message: `\`${written}\` is not a field of the product; it was read as \`${key}\`.`,
    advice: `Write \`${key}\`.`,
    ...locate([written]),
  };
}

function twiceDiagnostic(key: string, lines: readonly number[], file: string): Diagnostic {
  return {
    severity: "error",
    code: "unreadable-restriction",
    message: `\`${key}\` appears twice with different values (lines ${lines.join(" and ")}); the agent is not loaded, because guessing could grant more than was meant.`,
    advice: "Keep one of the two.",
    file,
    line: lines.at(-1) ?? 1,
    column: 1,
  };
}

/** Keys that limit what an agent may do, of all products. */
const restricting: ReadonlySet<string> = new Set([
  "tools",
  "disallowedTools",
  "excludedTools",
  "toolsSettings",
  "permission",
  "permissions",
  "readonly",
  "allowed-tools",
  "permissionMode",
  "approvalMode",
]);
/** Without one that another product spells as `allowedTools`, which means something else. */
const restrictingByBare = new Map(
  [...restricting].filter((key) => key !== "allowed-tools").map((key) => [bareKey(key), key]),
);

/** The limiting key that the author meant, however it is written. */
function limitMeantBy(key: string): string | undefined {
  return restrictingByBare.get(bareKey(key));
}

/** Keys of other products are not known here: each counts as written, and none is guessed from text. */
const proseKeys: ReadonlySet<string> = new Set(["description", "prompt", "whenToUse"]);
const vocabulary = {
  meaningOf: (key: string) => ({ type: "known" as const, key }),
  prose: proseKeys,
  restricting,
  structured: new Set<string>([
    "permission",
    "mcpServers",
    "mcp-servers",
    "mcp_servers",
    "hooks",
    "toolsSettings",
  ]),
};

function refusalOf(frontmatter: Frontmatter, file: string): Diagnostic {
  if (frontmatter.type === "unclosed")
    return {
      severity: "error",
      code: "frontmatter-unclosed",
      message: "The `---` block that opens here is never closed.",
      advice: "Add a line `---` after the last field.",
      file,
      ...frontmatter.locate([]),
    };
  const isLarge = frontmatter.type === "too-large";
  return {
    severity: isLarge ? "error" : "warning",
    code: isLarge ? "too-large" : "no-frontmatter",
    message: isLarge
      ? "The frontmatter is larger than 256 KiB."
      : "The file does not start with a `---` block, so it defines no agent.",
    advice: isLarge
      ? "Move long text below the closing `---`."
      : "Start it with `---` and the fields of the agent.",
    file,
    line: 1,
    column: 1,
  };
}

/** One JSON object; with comments and trailing commas where the product takes them. */
export function readJson(
  text: string,
  { file }: ReadContext,
  { comments = false } = {},
): { readonly value: Readonly<Record<string, unknown>>; readonly locate: PlaceOf } | SourceRefusal {
  const source = withoutByteOrderMark(text);
  const document = comments ? parseLoosely(source, file) : parseJsonDocument(text, file);
  if (document.diagnostic !== undefined) return { refused: [document.diagnostic] };
  if (!isRecord(document.value))
    return {
      refused: [
        {
          severity: "error",
          code: "not-an-object",
          message: "The file must contain one JSON object.",
          advice: 'Write {"name": "…", "description": "…"}.',
          file,
          line: 1,
          column: 1,
        },
      ],
    };
  const repeated = findRepeatedKeys(text);
  const twice = repeated?.find((path) =>
    path.some((key) => typeof key === "string" && limitMeantBy(key) !== undefined),
  );
  if (repeated === undefined || twice !== undefined) {
    const { line = 1, column = 1 } = document.locate(twice ?? []) ?? {};
    const message =
      twice === undefined
        ? "The file is nested too deeply."
        : `\`${twice.join(".")}\` appears twice; the agent is not loaded, because guessing could grant more than was meant.`;
    const refusal = {
      severity: "error",
      code: "unreadable-restriction",
      message,
      file,
      line,
      column,
    } as const;
    return { refused: [{ ...refusal, advice: "Keep one of the two." }] };
  }
  return { value: document.value, locate: document.locate };
}

function parseLoosely(source: string, file: string) {
  const errors: ParseError[] = [];
  let tooDeep = false;
  let value: unknown;
  let tree: ReturnType<typeof parseTree>;
  try {
    value = parseWithComments(source, errors, { allowTrailingComma: true });
    tree = errors.length > 0 ? undefined : parseTree(source, [], { allowTrailingComma: true });
  } catch {
    // The parser calls itself for each level.
    tooDeep = true;
  }
  const first = tooDeep ? { offset: 0 } : errors[0];
  if (first !== undefined)
    return {
      value: undefined,
      locate: () => undefined,
      diagnostic: {
        severity: "error",
        code: "invalid-json",
        message: "This is not valid JSON with comments, or too deeply nested; none of the file was used.",
        advice: "Fix the JSON here.",
        file,
        ...placeOfOffset(source, first.offset),
      } as const,
    };
  const locate: PlaceOf = (path) => {
    const node = tree === undefined ? undefined : findNodeAtLocation(tree, [...path]);
    return node === undefined ? undefined : placeOfOffset(source, node.parent?.offset ?? node.offset);
  };
  return { value, locate, diagnostic: undefined };
}

export function placeOfOffset(text: string, offset: number): Place {
  let line = 1;
  let start = 0;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) {
    line += 1;
    start = at + 1;
  }
  return { line, column: offset - start + 1 };
}
