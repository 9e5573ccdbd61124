/**
 * Joins the chunks of a bundle that are always loaded together. A bundler that splits at every lazy import makes a file for
 * each set of entry points; a run would resolve and read more than a hundred of them, which takes longer than running them.
 */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";

/** One file in place of the chunks that these source files load, without those of the groups before it; groups of one name share a file. */
export interface ChunkGroup {
  readonly name: string;
  readonly roots: readonly string[];
  /** A file of this name exports what the first of them exports, and nothing of what the chunks take from each other. */
  readonly entry?: string;
  /** Only what these load as well. */
  readonly sharedWith?: readonly string[];
}

interface Chunk {
  readonly file: string;
  readonly source: string | undefined;
  readonly statics: readonly string[];
  readonly exports: readonly string[];
}

/** What one name in a joined file refers to: `c3_name` is the export `name` of the third chunk, `n3` all its exports. */
interface Place {
  readonly group: string;
  readonly prefix: string;
}

export async function joinChunks(
  { outputs }: Pick<Metafile, "outputs">,
  groups: readonly ChunkGroup[],
  options: { readonly from: string } & BuildOptions,
): Promise<void> {
  const { from, ...buildOptions } = options;
  const chunks = readChunks(outputs);
  const places = assign(chunks, groups);
  const alone = [...chunks.keys()].filter((file) => !places.has(file));
  const { metafile } = await build({
    ...buildOptions,
    metafile: true,
    bundle: true,
    splitting: false,
    entryPoints: {
      ...Object.fromEntries(groups.map(({ name }) => [name, `group:${name}`])),
      ...Object.fromEntries(
        groups.flatMap(({ name, entry }) => (entry === undefined ? [] : [[entry, `entry:${name}`]])),
      ),
      ...Object.fromEntries(alone.map((file) => [file.replace(/\.js$/, ""), join(from, file)])),
    },
    plugins: [joining({ from, chunks, places, groups })],
  });
  const names = new Set(groups.map(({ name }) => `${name}.js`));
  const joined = Object.keys(metafile?.outputs ?? {}).filter((file) => names.has(basename(file)));
  for (const file of joined) checkAscii(join(options.absWorkingDir ?? "", file));
}

/**
 * One other character makes the engine keep the whole file with two bytes for each, and Node convert it twice at each start. The
 * bundler writes those of strings as escapes, but leaves those of regular expressions.
 */
function checkAscii(file: string): void {
  const [found, character = ""] = /.{0,40}([^\x00-\x7f])/.exec(readFileSync(file, "utf8")) ?? [];
  if (found === undefined) return;
  const escaped = `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  throw new Error(
    `${basename(file)} is not plain ASCII: write ${escaped} for the last character of ${found}`,
  );
}

function readChunks(outputs: Metafile["outputs"]): ReadonlyMap<string, Chunk> {
  const scripts = Object.entries(outputs).filter(([path]) => path.endsWith(".js"));
  return new Map(
    scripts.map(([path, { entryPoint, imports, exports }]) => {
      const statics = imports.filter(
        ({ kind, external }) => kind === "import-statement" && external !== true,
      );
      const file = basename(path);
      return [
        file,
        { file, source: entryPoint, statics: statics.map((one) => basename(one.path)), exports },
      ] as const;
    }),
  );
}

function assign(
  chunks: ReadonlyMap<string, Chunk>,
  groups: readonly ChunkGroup[],
): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const { name, roots, sharedWith } of groups) {
    const shared = sharedWith === undefined ? undefined : closure(chunks, sharedWith);
    for (const file of closure(chunks, roots)) {
      if (places.has(file) || shared?.has(file) === false) continue;
      places.set(file, { group: name, prefix: String(places.size) });
    }
  }
  return places;
}

/** All chunks that are read when these source files are imported. */
function closure(chunks: ReadonlyMap<string, Chunk>, roots: readonly string[]): ReadonlySet<string> {
  const missing = roots.filter((root) => ![...chunks.values()].some(({ source }) => source === root));
  if (missing.length > 0) throw new Error(`No chunk begins with ${missing.join(", ")}; correct the groups.`);
  const found = new Set<string>();
  const visit = (file: string): void => {
    if (found.has(file)) return;
    found.add(file);
    for (const next of chunks.get(file)?.statics ?? []) visit(next);
  };
  for (const { file, source } of chunks.values())
    if (source !== undefined && roots.includes(source)) visit(file);
  return found;
}

interface Joining {
  readonly from: string;
  readonly chunks: ReadonlyMap<string, Chunk>;
  readonly places: ReadonlyMap<string, Place>;
  readonly groups: readonly ChunkGroup[];
}

function joining({ from, chunks, places, groups }: Joining): Plugin {
  const folder = from;
  return {
    name: "join-chunks",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^group:/ }, ({ path }) => ({ path: path.slice(6), namespace: "group" }));
      onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice(6), namespace: "entry" }));
      onResolve({ filter: /^joined:/ }, ({ path }) => ({ path: `./${path.slice(7)}.js`, external: true }));
      onResolve({ filter: /.*/ }, ({ path, kind, importer, namespace }) => {
        if (kind === "entry-point") return { path };
        const file = basename(path);
        if (!path.startsWith("./") || !chunks.has(file)) return { path, external: true };
        const place = places.get(file);
        const own = namespace === "group" ? importer : places.get(basename(importer))?.group;
        if (place === undefined) return { path, external: true };
        return place.group === own ? { path: join(folder, file) } : { path: file, namespace: "elsewhere" };
      });
      onLoad({ filter: /.*/, namespace: "group" }, ({ path }) => ({
        contents: entryOf(path, { chunks, places, groups }),
        resolveDir: folder,
      }));
      onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => {
        const names = mainOf(path, { chunks, places, groups })?.exports ?? [];
        return { contents: `export{${names.join(",")}}from "joined:${path}";` };
      });
      onLoad({ filter: /.*/, namespace: "elsewhere" }, ({ path }) => ({
        contents: aliasOf(path, { chunks, places }),
      }));
      onLoad({ filter: /\.js$/, namespace: "file" }, ({ path }) => ({
        contents: redirectLazyImports(readFileSync(path, "utf8"), places),
        resolveDir: folder,
      }));
    },
  };
}

/** Everything that the chunks of a group export, under names that cannot meet; the first root's also as they are. */
function entryOf(group: string, { chunks, places, groups }: Omit<Joining, "from">): string {
  const lines = [...places].flatMap(([file, place]) => {
    if (place.group !== group) return [];
    const { exports = [] } = chunks.get(file) ?? {};
    const names = exports.map((name) => `${name} as c${place.prefix}_${name}`).join(",");
    const whole = `import * as n${place.prefix} from "./${file}";export{n${place.prefix}};`;
    return [names === "" ? `import "./${file}";` : `export{${names}}from "./${file}";`, whole];
  });
  const main = mainOf(group, { chunks, places, groups });
  return [...lines, main === undefined ? "" : `export * from "./${main.file}";`].join("\n");
}

/** The chunk of the first root of a group. */
function mainOf(group: string, { chunks, places, groups }: Omit<Joining, "from">): Chunk | undefined {
  const first = groups.find(({ name }) => name === group)?.roots[0];
  return [...chunks.values()].find(
    ({ file, source }) => source === first && places.get(file)?.group === group,
  );
}

/** A chunk of another group, seen from here. */
function aliasOf(file: string, { chunks, places }: Pick<Joining, "chunks" | "places">): string {
  const place = places.get(file);
  const { exports = [] } = chunks.get(file) ?? {};
  const names = exports.map((name) => `c${place?.prefix}_${name} as ${name}`).join(",");
  return names === "" ? `import "joined:${place?.group}";` : `export{${names}}from "joined:${place?.group}";`;
}

function redirectLazyImports(text: string, places: ReadonlyMap<string, Place>): string {
  return text.replace(/\bimport\("\.\/([\w.-]+\.js)"\)/g, (whole, file: string) => {
    const place = places.get(file);
    return place === undefined ? whole : `import("joined:${place.group}").then((all)=>all.n${place.prefix})`;
  });
}
