import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Hands an address to the browser of the desktop; answers with why that cannot be done, else with undefined. */
export function openBrowser(
  address: string,
  {
    environment,
    platform = process.platform,
  }: { readonly environment: NodeJS.ProcessEnv; readonly platform?: NodeJS.Platform },
): Promise<string | undefined> {
  const [program, ...words] = openers[platform] ?? ["xdg-open"];
  const child = spawn(program, [...words, address], { detached: true, stdio: "ignore", env: environment });
  child.unref();
  const started = new Promise<string | undefined>((resolve) => {
    child.once("spawn", () => resolve(undefined));
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve(error.code === "ENOENT" ? `there is no ${program} on the PATH` : error.message),
    );
  });
  return started;
}
