import { access, chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rgPath } from "@vscode/ripgrep";

/** Where programs are looked for, so that a run does not depend on the PATH it is started with. */
export const systemFolders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Launchers that many machines have. Where one is missing, a script that starts its operands takes its place. */
const launchers: Readonly<Record<string, string>> = {
  sudo: 'while [[ $1 == -* ]]; do shift; done; exec "$@"',
  doas: 'exec "$@"',
  busybox: 'exec "$@"',
  parallel: 'exec "$@"',
  proxychains4: 'exec "$@"',
  firejail: 'exec "$@"',
  "with-cache": 'exec "$@"',
};

/** Fills a folder that is last in PATH. */
export async function stubPrograms(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (!(await isInstalled("rg"))) await symlink(rgPath, join(folder, "rg"));
  for (const [name, script] of Object.entries(launchers)) {
    if (await isInstalled(name)) continue;
    await writeFile(join(folder, name), `#!/bin/bash\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
}

/** Whether a program is found by its name, here or among the stubs. */
export async function isThere(name: string): Promise<boolean> {
  return name === "rg" || Object.hasOwn(launchers, name) || isInstalled(name);
}

async function isInstalled(name: string): Promise<boolean> {
  for (const folder of systemFolders) {
    if (
      await access(join(folder, name)).then(
        () => true,
        () => false,
      )
    )
      return true;
  }
  return false;
}
