#!/usr/bin/env node
import { readFileSync } from "node:fs";
import module from "node:module";

const [major, minor] = process.versions.node.split(".").map(Number);
const arguments_ = process.argv.slice(2);

if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `retinue needs Node 22.18 or newer; this is ${process.version}. Install a maintained Node from https://nodejs.org.`,
  );
  process.exitCode = 1;
} else if (arguments_.length === 1 && (arguments_[0] === "--version" || arguments_[0] === "-v")) {
  console.log(JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version);
} else {
  module.enableCompileCache?.();
  const { main } = await import("../dist/cli/main.js");
  process.exitCode = await main(arguments_);
}
