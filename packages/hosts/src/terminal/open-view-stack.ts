import type { ReadStream, WriteStream } from "node:tty";
import type { CliHost } from "../shared/cli-host.ts";
import { findCapabilities } from "./screen/capabilities.ts";
import { TerminalDevice } from "./screen/terminal-device.ts";
import { ViewStack } from "./views/view-stack.ts";

/** Views on the terminal of this process; undefined where nothing can be painted. */
export function openViewStack({ environment, stdout }: CliHost): ViewStack | undefined {
  const capabilities = findCapabilities(environment, { plain: false, colours: stdout.isColourAllowed });
  if (capabilities.isPlain) return undefined;
  // Both are terminals where a user can be asked.
  const streams = { input: process.stdin as ReadStream, output: process.stdout as WriteStream };
  return new ViewStack(new TerminalDevice(streams, capabilities), capabilities);
}
