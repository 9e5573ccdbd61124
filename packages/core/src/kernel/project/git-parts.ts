import { askRepository } from "@retinue/gate/git/ask-repository.ts";
import { type GitSetting, isPlainSetting, partsOf } from "@retinue/gate/git/git-settings.ts";
import type { WaitingPart } from "./waiting-parts.ts";

interface GitQuestion {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pathText: (file: string) => string;
}

/** What every repository has; nothing of it says more than where it is and whom it exchanges commits with. */
const usual =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)|remote\.(?:url|fetch|pushurl)|branch\.(?:remote|merge)|user\.(?:name|email)|submodule\.(?:url|active))$/;
/** Plain for a git that only reads, which switches them off; another git starts what they name. */
const programs =
  /^(?:core\.(?:hookspath|fsmonitor|pager|editor|sshcommand|askpass)|credential\.helper|gpg\.(?:program|defaultkeycommand)|alias\..*|pager\..*)$/;

/** The settings of git that a folder brings, as git itself reads them, with what they include. */
export async function gitParts({
  directory,
  environment,
  pathText,
}: GitQuestion): Promise<readonly WaitingPart[]> {
  const repository = await askRepository(directory, { environment, folders: [directory] });
  if (repository.type === "unclear")
    return [{ kind: "runs", name: "git", value: repository.reason, from: pathText(directory) }];
  if (repository.type === "none") return [];
  const shortName = ({ key }: GitSetting): string => {
    const { section, name } = partsOf(key);
    return `${section}.${name}`;
  };
  return repository.own
    .filter((setting) => !usual.test(shortName(setting)))
    .map((setting): WaitingPart => {
      const isRunning = !isPlainSetting(setting, new Set()) || programs.test(shortName(setting));
      return {
        kind: isRunning ? "runs" : "setting",
        name: `git ${setting.key}`,
        value: setting.value,
        from: pathText(setting.file ?? repository.gitDirectory),
      };
    });
}
