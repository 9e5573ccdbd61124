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
} else {
  // Taken this way, Node's own modules cost nothing that is not used; an import statement copies all their exports.
  process.getBuiltinModule("node:module").enableCompileCache();
  const { main } = await import("../dist/cli/main.js");
  process.exitCode = await main(words);
}
