#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
const arguments_ = process.argv.slice(2);

if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `retinue needs Node 22.18 or newer; this is ${process.version}. Install a maintained Node from https://nodejs.org.`,
  );
  process.exitCode = 1;
} else if (arguments_.length === 1 && (arguments_[0] === "--version" || arguments_[0] === "-v")) {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  console.log(JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version);
} else {
  // Taken this way, Node's own modules cost nothing that is not used; an import statement copies all their exports.
  process.getBuiltinModule("node:module").enableCompileCache();
  const { main } = await import("../dist/cli/main.js");
  process.exitCode = await main(arguments_);
}
