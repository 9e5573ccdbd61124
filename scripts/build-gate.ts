/** Builds `@retinue/gate` as a package that needs no other: `packages/gate/dist`, ready for `npm pack` and `npm publish`. */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type BuildOptions, build, type Metafile } from "esbuild";

interface GateBuild {
  readonly root: string;
  /** Options that all bundles share. */
  readonly shared: BuildOptions;
  /** What the first line of a bundle checks. */
  readonly banner: string;
}

/** Bundles the code; returns what went into it. */
export async function bundleGate({ root, shared, banner }: GateBuild): Promise<Metafile> {
  const outdir = join(root, "packages/gate/dist");
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    ...shared,
    metafile: true,
    entryPoints: { index: "packages/gate/src/index.ts" },
    outdir,
    chunkNames: "[name]-[hash]",
    legalComments: "inline",
    banner: { js: banner },
  });
  return metafile;
}

/** Adds the manifest, the pages and the types, which were made for the whole repository in `types`. */
export function completeGate(root: string, types: string): void {
  const folder = join(root, "packages/gate");
  const outdir = join(folder, "dist");
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { name, version, description, license } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const entry = copyTypes(types, join(types, "packages/gate/src/index.d.ts"), join(outdir, "types"));
  const manifest = {
    name,
    version,
    description,
    license,
    type: "module",
    engines,
    sideEffects: false,
    exports: { ".": { types: `./${relative(outdir, entry)}`, default: "./index.js" } },
  };
  writeFileSync(join(outdir, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(folder, "README.md"), join(outdir, "README.md"));
  copyFileSync(join(root, "LICENSE"), join(outdir, "LICENSE"));
}

/** Copies a file of types with all that it names by relative paths; returns where it is now. */
function copyTypes(from: string, entry: string, to: string): string {
  const waiting = [entry];
  const seen = new Set(waiting);
  for (const file of waiting) {
    const target = join(to, relative(from, file));
    mkdirSync(dirname(target), { recursive: true });
    const text = readFileSync(file, "utf8");
    writeFileSync(target, text);
    for (const [, path = ""] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.ts"/g)) {
      const next = `${resolve(dirname(file), path)}.d.ts`;
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
    }
  }
  return join(to, relative(from, entry));
}
