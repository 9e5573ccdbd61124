import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { type Environment, factorySettings, findProvider } from "./provider-entry.ts";

/** A program on this machine that serves models. */
export interface LocalServer {
  /** The name before the slash in `provider/model`. */
  readonly provider: LocalProvider;
  readonly name: string;
  /** Where it was found, without the path of its interface. */
  readonly address: string;
  /** Models that can talk, in the order the server gives; Ollama's begins with the one changed last. */
  readonly models: readonly string[];
}

type LocalProvider = "ollama" | "lmstudio";

/** Where a server may be, what it is asked, and how its answer is read. */
export interface LocalPlace {
  readonly provider: LocalProvider;
  readonly name: string;
  readonly address: string;
  readonly list: string;
  readonly read: (answer: unknown) => readonly string[];
}

/** The places where people run models, as the variables of these programs move them. */
export function localPlaces(environment: Environment): readonly LocalPlace[] {
  const ollama = addressOf("ollama", environment);
  const studio = addressOf("lmstudio", environment);
  return [
    { provider: "ollama", name: "Ollama", address: ollama, list: "/api/tags", read: readOllamaModels },
    { provider: "lmstudio", name: "LM Studio", address: studio, list: "/v1/models", read: readModelList },
  ];
}

export interface LocalModel {
  readonly provider: LocalProvider;
  readonly id: string;
  readonly server: LocalServer;
}

/** The model that serves where none is named: the first of the first server that has any. */
export function chooseLocalModel(servers: readonly LocalServer[]): LocalModel | undefined {
  const server = servers.find(({ models }) => models.length > 0);
  const id = server?.models[0];
  return server === undefined || id === undefined ? undefined : { provider: server.provider, id, server };
}

/** Ollama's list, without models that turn text into vectors and, where it says so, those that know no tools. */
function readOllamaModels(answer: unknown): readonly string[] {
  const entries = isRecord(answer) && Array.isArray(answer["models"]) ? answer["models"] : [];
  return entries.filter(isRecord).flatMap(({ name, details, capabilities }) => {
    const family = isRecord(details) ? details["family"] : undefined;
    if (typeof family === "string" && family.endsWith("bert")) return [];
    if (Array.isArray(capabilities) && !capabilities.includes("tools")) return [];
    return talking(name);
  });
}

/** The list of an OpenAI-compatible server. */
function readModelList(answer: unknown): readonly string[] {
  const entries = isRecord(answer) && Array.isArray(answer["data"]) ? answer["data"] : [];
  return entries.filter(isRecord).flatMap(({ id }) => talking(id));
}

/** A name is written to terminals and requests, so one with anything unusual in it is left out. */
function talking(name: unknown): readonly string[] {
  if (typeof name !== "string" || !/^[\w.:@/+-]{1,200}$/.test(name)) return [];
  return /embed|rerank/i.test(name) ? [] : [name];
}

function addressOf(provider: LocalProvider, environment: Environment): string {
  const entry = findProvider(provider, environment);
  const baseUrl = entry === undefined ? undefined : factorySettings(entry, environment).settings["baseURL"];
  return typeof baseUrl === "string" ? baseUrl.replace(/\/v1\/?$/, "") : "";
}
