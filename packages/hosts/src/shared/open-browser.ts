import { spawnProcess } from "@retinue/base/foundation/spawn-process.ts";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Hands an address to the program that `BROWSER` names, or to the browser of the desktop; answers with why that cannot be done, else with undefined. */
export async function openBrowser(
  address: string,
  {
    environment,
    platform = process.platform,
  }: { readonly environment: NodeJS.ProcessEnv; readonly platform?: NodeJS.Platform },
): Promise<string | undefined> {
  const chosen = environment["BROWSER"]?.trim();
  const [program, ...words] = chosen ? [chosen] : (openers[platform] ?? ["xdg-open"]);
  try {
    const options = { detached: true, stdio: "ignore", env: environment } as const;
    const child = await spawnProcess(program, [...words, address], options);
    child.unref();
    return undefined;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? `there is no ${program} on the PATH` : String(error);
  }
}
