import { realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { isDirectory, isFile, loadJson } from "./load-plugin.ts";
import { type Marketplace, type MarketplacePlugin, readMarketplace } from "./marketplace.ts";
import { isWithin } from "./plugin-agents.ts";
import { isSafeName } from "./plugin-path.ts";
import { type PluginId, readKnownMarketplaces } from "./plugin-records.ts";

export interface MarketplaceFinder {
  /** The entry of a plugin, with its folder where the marketplace itself holds the plugin. */
  find(id: PluginId): Promise<{ plugin: MarketplacePlugin; root?: string } | undefined>;
}

/** Looks plugins up in the marketplaces on this machine; each one is read once, and its problems told once. */
export async function createMarketplaceFinder(
  folder: string,
  diagnostics: Diagnostic[],
): Promise<MarketplaceFinder> {
  const known = await loadJson(join(folder, "known_marketplaces.json"), (value) => ({
    places: readKnownMarketplaces(value),
    issues: [],
  }));
  diagnostics.push(...known.diagnostics);
  const opened = new Map<string, OpenMarketplace | undefined>();
  return {
    async find({ name, marketplace }) {
      if (!opened.has(marketplace)) {
        const places = (known.value?.places.get(marketplace) ?? []).map((place) => resolve(folder, place));
        const usual = isSafeName(marketplace) ? [join(folder, "marketplaces", marketplace)] : [];
        opened.set(marketplace, await openMarketplace([...places, ...usual], diagnostics));
      }
      const open = opened.get(marketplace);
      const plugin = open?.marketplace.plugins.find((entry) => entry.name === name);
      if (open === undefined || plugin === undefined) return undefined;
      const root = await findRoot(open.root, plugin.places);
      return { plugin, ...(root === undefined ? {} : { root }) };
    },
  };
}

interface OpenMarketplace {
  readonly root: string;
  readonly marketplace: Marketplace;
}

async function openMarketplace(
  places: readonly string[],
  diagnostics: Diagnostic[],
): Promise<OpenMarketplace | undefined> {
  for (const place of places) {
    const isDocument = await isFile(place);
    const file = isDocument ? place : join(place, ".claude-plugin", "marketplace.json");
    const loaded = await loadJson(file, readMarketplace);
    // The entries of plugins nobody installed are their author's business.
    diagnostics.push(...loaded.diagnostics.filter(({ severity }) => severity === "error"));
    const marketplace = loaded.value?.marketplace;
    if (marketplace !== undefined) return { root: isDocument ? rootOfFile(file) : place, marketplace };
  }
  return undefined;
}

function rootOfFile(file: string): string {
  const folder = dirname(file);
  return folder.endsWith(".claude-plugin") ? dirname(folder) : folder;
}

/** The first place that is a folder of the marketplace; a link out of it is none. */
async function findRoot(root: string, places: readonly string[]): Promise<string | undefined> {
  const home = await realpath(root).catch(() => undefined);
  if (home === undefined) return undefined;
  for (const place of places) {
    const path = join(root, place);
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined && isWithin(home, real) && (await isDirectory(path))) return path;
  }
  return undefined;
}
