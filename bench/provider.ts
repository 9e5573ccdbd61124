import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface ProviderProcess extends AsyncDisposable {
  readonly url: string;
}

/** Starts the fake provider in a process of its own. */
export async function startProvider({ deltaSize }: { readonly deltaSize: number }): Promise<ProviderProcess> {
  const program = fileURLToPath(new URL("serve-provider.ts", import.meta.url));
  const child = fork(program, [String(deltaSize)]);
  const [url]: readonly unknown[] = await once(child, "message");
  return {
    url: String(url),
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}
