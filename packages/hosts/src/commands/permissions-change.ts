import type { RuleScope, WrittenRule } from "@retinue/core/kernel/project/project-permissions.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse } from "../shared/misuse.ts";
import { openProject } from "../shared/open-project.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

interface ChangeOptions {
  readonly list?: string;
  readonly scope?: string;
  readonly json?: boolean;
}

/** `retinue permissions add` and `remove`: one rule in the settings of a scope. */
export async function permissionsChange(
  context: CommandContext,
  action: "add" | "remove",
  rule: string | undefined,
  options: ChangeOptions,
): Promise<number> {
  if (rule === undefined) throw misuse(`\`permissions ${action}\` needs a rule, such as 'Bash(npm test *)'.`);
  const { permissions, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const written: WrittenRule = {
    rule,
    // The words were checked when the command line was read.
    list: (options.list ?? "allow") as NonNullable<WrittenRule["list"]>,
    scope: (options.scope ?? "local") as RuleScope,
  };
  const { file, isNew } =
    action === "add"
      ? await permissions.add(written)
      : { ...(await permissions.remove(written)), isNew: true };
  const { stdout } = context.host;
  if (options.json === true)
    stdout.write(`${JSON.stringify({ version: 1, ...written, file, changed: isNew })}\n`);
  else stdout.write(`${stripControlCharacters(sentence(action, written, { file: nameOf(file), isNew }))}\n`);
  return 0;
}

function sentence(
  action: "add" | "remove",
  { list = "allow", rule }: WrittenRule,
  { file, isNew }: { readonly file: string; readonly isNew: boolean },
): string {
  if (action === "remove") return `Took ${rule} out of "${list}" in ${file}.`;
  return isNew ? `Added ${rule} to "${list}" in ${file}.` : `${file} has ${rule} in "${list}" already.`;
}
