// @io

import { userInfo } from "node:os";
import { isAbsolute } from "node:path";
import { RetinueError } from "./retinue-error.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The folder of the person who runs this. A variable that is empty or relative would make the working folder, which
 * may come from a stranger, the person's own: then the system's list of users decides.
 */
export function findHome(environment: Environment, readUser: () => string = homeOfUser): string {
  const given = environment[homeVariable];
  if (given !== undefined && isAbsolute(given)) return given;
  const home = readUser();
  if (isAbsolute(home)) return home;
  const what = given === undefined ? "is not set" : `is ${JSON.stringify(given)}`;
  throw new RetinueError(
    "no-home",
    `${homeVariable} ${what}, and the system names no home folder for this user.`,
    {
      advice: `Set ${homeVariable} to the absolute path of your home folder.`,
    },
  );
}

/** What commands, hooks and servers are given: the same home that is used here. */
export function withHome(environment: Environment, home: string): Environment {
  const given = environment[homeVariable];
  return given !== undefined && isAbsolute(given) ? environment : { ...environment, [homeVariable]: home };
}

const homeVariable = process.platform === "win32" ? "USERPROFILE" : "HOME";

function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "";
  }
}
