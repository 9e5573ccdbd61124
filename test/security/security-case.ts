export type Answer = "allow" | "ask" | "deny";

/** Skipped is only what this machine cannot do; a case that is not honoured throws. */
export type Verdict = Answer | { readonly skipped: string };

/** A case that this adapter cannot put to the product as it is written. */
export class NotHonoured extends Error {}

/** One case of the suite; tokens such as `{{P}}` are still in its texts. */
export interface SecurityCase {
  readonly id: string;
  readonly category: string;
  readonly title: string;
  readonly why: string;
  readonly kind: "bypass" | "benign" | "policy";
  readonly profile: string;
  readonly surface: string;
  readonly rules: RuleLists;
  readonly scopes?: readonly ScopeRules[];
  readonly mode: string;
  readonly tool: string | null;
  readonly input: unknown;
  readonly context?: Fields;
  readonly fs?: readonly FileOperation[];
  readonly interactive?: boolean;
  readonly trusted?: boolean;
  readonly platform?: string;
  readonly cwd?: string;
  readonly additionalDirectories?: readonly string[];
  readonly expect: Answer;
  readonly accept: readonly Answer[];
  readonly scored?: boolean;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface RuleLists {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

export interface ScopeRules {
  readonly scope: "managed" | "user" | "project" | "local";
  readonly permissions: Fields;
  readonly root?: string;
}

export interface FileOperation {
  readonly op: string;
  readonly path: string;
  readonly target?: string;
  readonly content?: string;
  readonly mode?: number;
  readonly add?: string;
  readonly key?: string;
  readonly value?: string;
}

/** The folders of one case: the parent of the project, the project, home, and a place outside the work. */
export interface Roots {
  readonly W: string;
  readonly P: string;
  readonly H: string;
  readonly T: string;
}

/** Fields that hold text of others. */
export const textFields: readonly string[] = [
  "text",
  "message",
  "output",
  "result",
  "content",
  "value",
  "body",
  "report",
  "summary",
  "final",
  "finalText",
  "string",
  "raw",
];

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The first of some fields that holds a text. */
export function firstText(fields: Fields, names: readonly string[]): string | undefined {
  return names.map((name) => fields[name]).find((value) => typeof value === "string");
}

/** Puts the folders of a run in the place of `{{W}}`, `{{P}}`, `{{H}}` and `{{T}}`, in every text of a value. */
export function fillTokens<T>(value: T, roots: Roots): T {
  const fill = (inner: unknown): unknown => {
    if (typeof inner === "string")
      return inner.replace(/\{\{([WPHT])\}\}/g, (_, name: keyof Roots) => roots[name]);
    if (Array.isArray(inner)) return inner.map(fill);
    if (!isFields(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, each]) => [key, fill(each)]));
  };
  // Texts stay texts, so the shape is the one given.
  return fill(value) as T;
}
