import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import type { FrontmatterField } from "./read-frontmatter.ts";

/** What a kind of file calls its fields, and what is reported about keys that are none. */
export interface FieldWords<Key extends string> {
  readonly meaningOf: (
    written: string,
  ) =>
    | { readonly type: "known" | "misspelt"; readonly key: Key }
    | { readonly type: "unknown"; readonly nearest?: Key };
  readonly unknownKey: (key: string, nearest: Key | undefined) => Issue;
  /** `first` is the spelling that counts already, where there is one. */
  readonly misspeltKey: (key: string, meant: Key, first: string | undefined) => Issue;
}

/** Which written fields mean which canonical one: the exact spelling first, then misspelt ones. */
export function chooseFields<Key extends string>(
  fields: ReadonlyMap<string, FrontmatterField>,
  { meaningOf, unknownKey, misspeltKey }: FieldWords<Key>,
  issues: Issue[],
): ReadonlyMap<Key, readonly FrontmatterField[]> {
  const chosen = new Map<Key, readonly FrontmatterField[]>();
  const meanings = [...fields.values()]
    .filter(({ key }) => key !== "$schema")
    .map((field) => ({ field, meaning: meaningOf(field.key) }));
  for (const { field, meaning } of meanings) {
    if (meaning.type === "known") chosen.set(meaning.key, [field]);
  }
  for (const { field, meaning } of meanings) {
    if (meaning.type === "unknown") issues.push(unknownKey(field.key, meaning.nearest));
    if (meaning.type !== "misspelt") continue;
    const before = chosen.get(meaning.key) ?? [];
    chosen.set(meaning.key, [...before, field]);
    issues.push(misspeltKey(field.key, meaning.key, before[0]?.key));
  }
  return chosen;
}
