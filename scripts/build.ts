/** Builds the library (own code only) and the command line (bundled and split, for a fast cold start), then the types. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const shared = {
  absWorkingDir: root,
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  target: "node22.18",
  logLevel: "warning",
} as const;

/**
 * Takes Node's own modules as they are. An import statement makes Node copy every export first, which also loads parts
 * that nobody asked for: for `node:fs` alone some milliseconds of each start.
 */
const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup({ onLoad }) {
    onLoad({ filter: /\.(?:ts|js|mjs)$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(builtinImport, (statement, ...[whole, names, from]) =>
        isBuiltin(from) ? pick(whole, names, from) : statement,
      ),
      loader: path.endsWith(".ts") ? "ts" : "js",
    }));
  },
};

/** `import whole from "…"` or `import { names } from "…"`, as a statement of its own. */
const builtinImport = /^import (?:([\w$]+)|\{([^}]*)\}) from ["']([\w:/]+)["'];?$/gm;

function pick(whole: string | undefined, names: string | undefined, from: string): string {
  const builtin = `globalThis.process.getBuiltinModule(${JSON.stringify(from)})`;
  const values = (names ?? "").split(",").filter((name) => !/^\s*(?:type\s+(?!as\b)\w|$)/.test(name));
  // Cryptography is slow to load and used in few places: there its functions fetch it themselves.
  if (from === "node:crypto" && whole === undefined && values.every((name) => /^\s*[a-z]\w*\s*$/.test(name)))
    return values
      .map((name) => `const ${name} = (...input) => ${builtin}.${name.trim()}(...input);`)
      .join(" ");
  const target = whole ?? `{ ${values.map((name) => name.replace(/ as /, ": ")).join(",")} }`;
  return `const ${target} = ${builtin};`;
}

rmSync(`${root}/dist`, { recursive: true, force: true });
await Promise.all([
  build({
    ...shared,
    entryPoints: { index: "src/index.ts", testing: "src/testing/index.ts" },
    outdir: "dist/lib",
    packages: "external",
    sourcemap: true,
  }),
  build({
    ...shared,
    entryPoints: ["src/apps/cli/main.ts"],
    outdir: "dist/cli",
    minifySyntax: true,
    // Less to read at each start; names stay, so that stack traces can be understood.
    minifyWhitespace: true,
    // The CommonJS builds of some packages load their own parts in ways a bundler cannot follow.
    mainFields: ["module", "main"],
    // It finds its binary beside itself.
    external: ["@vscode/ripgrep"],
    legalComments: "linked",
    plugins: [plainBuiltins],
    banner: {
      js: 'const require = (name) => globalThis.process.getBuiltinModule("node:module").createRequire(import.meta.url)(name);',
    },
  }),
]);
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.types.json"], {
  cwd: root,
  stdio: "inherit",
});
