/** Builds the library (own code only) and the command line (bundled and split, for a fast cold start), then the types. */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
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
 * that nobody asked for: for `node:fs` alone some milliseconds of each start. As a module of the bundle, of which only
 * the names in use remain, it costs nothing.
 */
const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ path, kind }) =>
      isBuiltin(path)
        ? { path, namespace: kind === "require-call" ? "required-builtin" : "builtin" }
        : undefined,
    );
    onLoad({ filter: /.*/, namespace: "required-builtin" }, ({ path }) => ({
      contents: `module.exports = ${builtin(path)};`,
    }));
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({ contents: builtinModule(path) }));
  },
};

function builtin(path: string): string {
  return `globalThis.process.getBuiltinModule(${JSON.stringify(path)})`;
}

function builtinModule(path: string): string {
  const whole: object = process.getBuiltinModule(path) ?? {};
  const names = Object.keys(whole).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default");
  const isSlow = path.endsWith("crypto");
  // What nobody imports is left out by the bundler, because picking is marked as pure.
  const exported = names.map((name) => {
    const isPlainFunction = typeof Reflect.get(whole, name) === "function" && /^[a-z]/.test(name);
    const value =
      isSlow && isPlainFunction
        ? `(...input) => whole()[${JSON.stringify(name)}](...input)`
        : `/* @__PURE__ */ pick("${name}")`;
    return `const _${name} = ${value}; export { _${name} as ${name} };`;
  });
  const take = `const whole = () => ${builtin(path)};\nconst pick = (name) => whole()[name];`;
  return [take, "export default /* @__PURE__ */ whole();", ...exported].join("\n");
}

rmSync(`${root}/dist`, { recursive: true, force: true });
await Promise.all([
  build({
    ...shared,
    entryPoints: { index: "src/index.ts", cluster: "src/cluster/index.ts", testing: "src/testing/index.ts" },
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
    // The first finds its binary beside itself; the others are there only for those who name a store.
    external: ["@vscode/ripgrep", "pg", "@dbos-inc/dbos-sdk"],
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
