import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { findLocalServers } from "./find-local-servers.ts";
import { chooseLocalModel, type LocalServer, localPlaces } from "./local-models.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answer =
  (value: unknown, status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status).end(typeof value === "string" ? value : JSON.stringify(value));

const nowhere = "127.0.0.1:1";

describe("[MDL-4] servers of models on this machine", () => {
  test("Ollama is asked at the address of OLLAMA_HOST, LM Studio at that of its variable, both for their lists", async () => {
    const asked: string[] = [];
    const listen =
      (value: unknown): RequestListener =>
      (request, response) => {
        asked.push(String(request.url));
        answer(value)(request, response);
      };
    const ollama = await serve(listen({ models: [{ name: "llama3.2:latest" }, { name: "qwen3:8b" }] }));
    const studio = await serve(listen({ data: [{ id: "openai/gpt-oss-20b" }] }));
    const places = localPlaces({ OLLAMA_HOST: ollama, LMSTUDIO_BASE_URL: `http://${studio}/v1` });
    const servers = await findLocalServers(places, { limitMs: 10_000 });
    expect(servers).toEqual([
      {
        provider: "ollama",
        name: "Ollama",
        address: `http://${ollama}`,
        models: ["llama3.2:latest", "qwen3:8b"],
      },
      {
        provider: "lmstudio",
        name: "LM Studio",
        address: `http://${studio}`,
        models: ["openai/gpt-oss-20b"],
      },
    ]);
    expect(asked.sort()).toEqual(["/api/tags", "/v1/models"]);
    expect(chooseLocalModel(servers)).toMatchObject({ provider: "ollama", id: "llama3.2:latest" });
  });

  test("without variables they are where these programs listen", () => {
    expect(localPlaces({}).map(({ address, list }) => address + list)).toEqual([
      "http://127.0.0.1:11434/api/tags",
      "http://127.0.0.1:1234/v1/models",
    ]);
  });

  test.each<[string, RequestListener]>([
    ["answers something else", answer("<html>")],
    ["answers another shape", answer({ models: { name: "x" } })],
    ["refuses", answer({ models: [{ name: "x" }] }, 404)],
    ["has no models", answer({ models: [] })],
    ["sends on to another", (_, response) => response.writeHead(302, { location: "http://x/" }).end()],
    ["answers without end", (_, response) => response.write(`{"models":[${" ".repeat(2_000_000)}`)],
    ["breaks off", (_, response) => void response.destroy()],
  ])("one that %s is not there", async (_, listener) => {
    const places = localPlaces({
      OLLAMA_HOST: await serve(listener),
      LMSTUDIO_BASE_URL: `http://${nowhere}`,
    });
    expect(await findLocalServers(places, { limitMs: 10_000 })).toEqual([]);
  });

  test("one that does not answer is given up at the limit, and the others still count", async () => {
    let isGivenUp = false;
    const fetch: typeof globalThis.fetch = async (input, init) => {
      if (!String(input).includes("/api/tags")) return Response.json({ data: [{ id: "phi-4" }] });
      return new Promise((_resolve, reject) =>
        init?.signal?.addEventListener("abort", () => {
          isGivenUp = true;
          reject(init.signal?.reason);
        }),
      );
    };
    const servers = await findLocalServers(localPlaces({}), { fetch, limitMs: 15 });
    expect(servers.map(({ name }) => name)).toEqual(["LM Studio"]);
    expect(isGivenUp).toBe(true);
  });

  test.each<[string, unknown, readonly string[]]>([
    ["embeds", { name: "nomic-embed-text" }, []],
    ["is of a family that embeds", { name: "mini", details: { family: "nomic-bert" } }, []],
    ["says it knows no tools", { name: "old", capabilities: ["completion"] }, []],
    ["says it knows tools", { name: "new", capabilities: ["completion", "tools"] }, ["new"]],
    ["has a name for terminals", { name: "a\u001b[31mb" }, []],
    ["has no name", { size: 1 }, []],
  ])("a model that %s is taken or left accordingly", (_, entry, expected) => {
    const [ollama] = localPlaces({});
    expect(ollama?.read({ models: [entry] })).toEqual(expected);
  });

  test("a server without models that can talk is passed over", () => {
    const server = (provider: LocalServer["provider"], models: readonly string[]): LocalServer => ({
      provider,
      name: provider,
      address: "",
      models,
    });
    expect(chooseLocalModel([server("ollama", []), server("lmstudio", ["b"])])).toMatchObject({ id: "b" });
    expect(chooseLocalModel([])).toBeUndefined();
  });
});
