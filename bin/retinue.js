#!/usr/bin/env node
// Every Node since 14 reads this file, so that an old one can look for a newer.
const [major, minor] = process.versions.node.split(".").map(Number);
const words = process.argv.slice(2);

if (major < 22 || (major === 22 && minor < 18)) {
  const { findNode, runOn } = await import("./find-node.js");
  const node = findNode();
  if (node === undefined) {
    console.error(
      `retinue needs Node 22.18 or newer; this is ${process.version}, and no newer one was found. Install one from https://nodejs.org, or name it in RETINUE_NODE.`,
    );
    process.exitCode = 1;
  } else process.exitCode = await runOn(node, process.argv[1], words);
} else if (words.length === 1 && (words[0] === "--version" || words[0] === "-v")) {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const { version, followedVersion } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  // Under the name of the program whose options it takes, it answers what others look for: a version they know, first in the line.
  const isClaude = /^claude(\.(js|exe|cmd))?$/.test(process.argv[1].split(/[\\/]/).pop());
  console.log(isClaude ? `${followedVersion} (retinue ${version})` : version);
} else if (!process.getBuiltinModule("node:fs").existsSync(new URL("../dist", import.meta.url))) {
  console.error("retinue is not built in this folder; `npm run build` does it.");
  process.exitCode = 1;
} else if (words.length === 1 && (words[0] === "--help" || words[0] === "-h")) {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  process.stdout.write(readFileSync(new URL("../dist/help.txt", import.meta.url), "utf8"));
} else {
  // Taken this way, Node's own modules cost nothing that is not used; an import statement copies all their exports.
  const cache = ownCacheFolder();
  if (cache !== undefined) process.getBuiltinModule("node:module").enableCompileCache(cache);
  const { main } = await import("../dist/cli/main.js");
  process.exitCode = await main(words);
}

/**
 * Node loads what it finds in its cache as code, and its own place for it is one that every user of the machine can write to.
 * So this is a folder of the person's own; where it belongs to somebody else, there is no cache.
 */
function ownCacheFolder() {
  const { lstatSync, mkdirSync } = process.getBuiltinModule("node:fs");
  const { tmpdir } = process.getBuiltinModule("node:os");
  if (process.getuid === undefined) return `${tmpdir()}/retinue-compile-cache`;
  const user = process.getuid();
  const parent = tmpdir();
  const folder = `${parent}/retinue-compile-cache-${user}`;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It is there already, or cannot be made; what counts is what is found now.
  }
  try {
    const found = lstatSync(folder);
    const around = lstatSync(parent);
    const isOwn = found.isDirectory() && found.uid === user && (found.mode & 0o077) === 0;
    const isOpen = (around.mode & 0o022) !== 0 && (around.mode & 0o1000) === 0;
    const isTheirs = around.uid !== user && around.uid !== 0;
    return isOwn && !isOpen && !isTheirs ? folder : undefined;
  } catch {
    return undefined;
  }
}
