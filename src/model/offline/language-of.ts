const languages: ReadonlyMap<string, string> = new Map(
  `ts TypeScript|tsx TypeScript|mts TypeScript|cts TypeScript|js JavaScript|jsx JavaScript|mjs JavaScript|cjs JavaScript
  py Python|pyi Python|go Go|rs Rust|java Java|kt Kotlin|kts Kotlin|scala Scala|rb Ruby|php PHP|cs C#|fs F#|swift Swift
  c C|h C|cc C++|cpp C++|cxx C++|hpp C++|m Objective-C|ex Elixir|exs Elixir|erl Erlang|hs Haskell|ml OCaml|clj Clojure
  lua Lua|pl Perl|r R|jl Julia|dart Dart|zig Zig|nim Nim|sh Shell|bash Shell|zsh Shell|ps1 PowerShell|sql SQL
  html HTML|css CSS|scss CSS|less CSS|vue Vue|svelte Svelte|md Markdown|mdx Markdown|rst Text|txt Text
  json JSON|jsonc JSON|yaml YAML|yml YAML|toml TOML|xml XML|proto Protobuf|graphql GraphQL|tf Terraform|ipynb Notebook`
    .split(/\||\n/)
    .map((entry) => {
      const [extension = "", ...name] = entry.trim().split(" ");
      return [extension, name.join(" ")] as const;
    }),
);

/** Kinds of text that say little about what a project is written in. */
const plainKinds = new Set(["Markdown", "Text", "JSON", "YAML", "TOML", "XML"]);

export function languageOf(path: string): string | undefined {
  const [, extension] = /\.([A-Za-z0-9]+)$/.exec(path) ?? [];
  return extension === undefined ? undefined : languages.get(extension.toLowerCase());
}

/** Languages by the number of files, programming languages first. */
export function rankLanguages(paths: readonly string[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const language = languageOf(path);
    if (language !== undefined) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  const rank = ([name, count]: readonly [string, number]) =>
    plainKinds.has(name) ? count : count + 1_000_000;
  return [...counts].toSorted((a, b) => rank(b) - rank(a) || (a[0] < b[0] ? -1 : 1));
}
