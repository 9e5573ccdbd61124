/** Builds `@retinue/gate` as a package that needs no other: `packages/gate/dist`, ready for `npm pack` and `npm publish`. */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type BuildOptions, build, type Metafile } from "esbuild";
import { copyTypes } from "./copy-types.ts";

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
  const { engines, repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { name, version, description, license } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const entry = copyTypes(types, join(types, "packages/gate/src/index.d.ts"), join(outdir, "types"));
  const manifest = {
    name,
    version,
    description,
    license,
    repository: { ...repository, directory: "packages/gate" },
    type: "module",
    engines,
    sideEffects: false,
    exports: { ".": { types: `./${relative(outdir, entry)}`, default: "./index.js" } },
  };
  writeFileSync(join(outdir, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(folder, "README.md"), join(outdir, "README.md"));
  copyFileSync(join(root, "LICENSE"), join(outdir, "LICENSE"));
}
