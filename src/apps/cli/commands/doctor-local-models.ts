import { findLocalServers } from "../../../model/find-local-servers.ts";
import { createPackageLoader } from "../../../model/load-provider-package.ts";
import { chooseLocalModel, localPlaces } from "../../../model/local-models.ts";
import { chooseAdapter } from "../../../model/model-choice.ts";
import { findProvider } from "../../../model/provider-table.ts";
import { readEnvironment } from "../../../settings/environment.ts";
import type { CliHost } from "../cli-host.ts";
import type { GatheredSession } from "../gather-session.ts";
import type { Checkup } from "./doctor.ts";

/** Which model would answer where no provider is configured; nothing is said where one is. */
export async function checkLocalModels(
  { discovered, trust }: GatheredSession,
  host: CliHost,
): Promise<readonly Checkup[]> {
  const { env, plain } = discovered.settings.settings;
  const environment = { ...host.environment, ...Object.fromEntries(env) };
  const choice = chooseAdapter({ id: "default" }, environment, plain.apiKeyHelper !== undefined);
  if (choice.adapter !== "offline") return [];
  const say = (state: Checkup["state"], text: string, advice?: string): readonly Checkup[] => [
    { name: "local models", state, text, ...(advice === undefined ? {} : { advice }) },
  ];
  if (readEnvironment(environment).options.localModels === false)
    return say("note", "Not looked for, because RETINUE_LOCAL_MODELS is off. The offline model answers.");
  const places = localPlaces(environment);
  const local = chooseLocalModel(await findLocalServers(places));
  if (local === undefined) {
    const looked = places.map(({ name, address }) => `${name} at ${address}`).join(" or ");
    return say("note", `No ${looked}. The offline model answers.`);
  }
  const { provider, id, server } = local;
  const found = `${server.name} at ${server.address}`;
  const packageName = findProvider(provider, environment)?.package ?? "";
  const load = createPackageLoader(trust.trusted ? [discovered.paths.cwd] : []);
  const isThere = await load(packageName).then(
    () => true,
    () => false,
  );
  if (isThere) return say("ok", `${found}: ${provider}/${id} answers where no model is named.`);
  return say(
    "warning",
    `${found} has ${id}, but the package ${packageName} is not installed. The offline model answers.`,
    `Run: npm install ${packageName}`,
  );
}
