import { type ToolFacts, type ToolName, toolFacts } from "@retinue/base/foundation/tool-table.ts";
import * as t from "../input-type.ts";
import { pathForRules } from "../resolve-workspace-path.ts";
import type { Tool, ToolOutcome } from "../tool.ts";

type Declared = "origin" | "effect" | "isConcurrencySafe" | "repeats";

/**
 * A tool of this product: its own code, with what the table of tools declares about it. The type of its input is
 * forgotten, since the schema has checked it before `call` sees it.
 */
export function builtinTool<Input>(
  tool: Omit<Tool<Input>, Declared | "name"> & { readonly name: ToolName },
): Tool {
  const facts = rowOf(tool.name);
  return { ...pathsFrom(facts), ...tool, ...inUse(facts), origin: "builtin" } as Tool;
}

/** What the table has about how a tool is used, in the form that the loop and the rules ask for. */
export function declared(name: ToolName): Pick<Tool, "effect" | "isConcurrencySafe" | "repeats"> {
  return inUse(rowOf(name));
}

function rowOf(name: ToolName): ToolFacts {
  const facts = toolFacts.get(name);
  if (facts === undefined) throw new Error(`The table of tools has no row for ${name}.`);
  return facts;
}

function inUse({ effect, isConcurrencySafe, repeats }: ToolFacts): ReturnType<typeof declared> {
  return {
    effect,
    isConcurrencySafe: isConcurrencySafe === undefined ? undefined : () => isConcurrencySafe,
    repeats,
  };
}

function pathsFrom({ pathFields = [], searches }: ToolFacts): Pick<Tool, "pathsOf"> {
  if (pathFields.length === 0) return {};
  return {
    pathsOf: (input, directory, home) =>
      pathFields.flatMap((field) => {
        // The schema has checked the input: an object whose path fields are texts or absent.
        const path = (input as Readonly<Record<string, string | undefined>>)[field];
        const given = path ?? (searches === undefined ? undefined : ".");
        return given === undefined ? [] : [pathForRules(given, directory, home)];
      }),
  };
}

export function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true };
}

/** What went wrong with a file, as a sentence for the model. */
export function fileTrouble(error: unknown, path: string): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const known = typeof code === "string" ? troubles.get(code) : undefined;
  if (known !== undefined) return `${path}: ${known}.`;
  return `${path}: ${error instanceof Error ? error.message : String(error)}`;
}

const troubles: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied by the operating system"],
  ["EPERM", "permission denied by the operating system"],
  ["ENOENT", "does not exist"],
  ["ENOTDIR", "a part of this path is a file, not a folder"],
  ["EISDIR", "is a folder"],
  ["ELOOP", "its links form a loop"],
  ["ENAMETOOLONG", "the name is too long for the file system"],
  ["EROFS", "the file system is read-only"],
  ["ENOSPC", "the disk is full"],
]);

/** Models send numbers as text and null for what they leave out; both are taken for what was meant. */
export function optionalNumber(description: string) {
  return t
    .preprocess((value) => {
      const given = dropEmpty(value);
      const number = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
      return typeof number === "number" && Number.isFinite(number) ? Math.trunc(number) : given;
    }, t.number().optional())
    .describe(description);
}

export function optionalFlag(description: string) {
  return t
    .preprocess((value) => {
      const given = dropEmpty(value);
      if (typeof given !== "string") return given;
      const word = given.trim().toLowerCase();
      if (word === "true") return true;
      return word === "false" ? false : given;
    }, t.boolean().optional())
    .describe(description);
}

export function optionalText(description: string) {
  return t.preprocess(dropEmpty, t.string().optional()).describe(description);
}

export function optionalChoice<const Choices extends readonly [string, ...string[]]>(
  choices: Choices,
  description: string,
) {
  return t.preprocess(dropEmpty, t.oneOf(choices).optional()).describe(description);
}

function dropEmpty(value: unknown): unknown {
  return value === null || value === "" ? undefined : value;
}
