/** What commands of a person's configuration are started with, for hosts that start some. */
export { commandEnvironment } from "@retinue/gate/command-environment.ts";
