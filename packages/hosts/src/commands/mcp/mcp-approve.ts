import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { openProject } from "../../shared/open-project.ts";

/** `retinue mcp approve NAME`: this definition of a project's server may be started; a changed one is asked about again. */
export async function mcpApprove(
  context: CommandContext,
  name: string | undefined,
  { all = false }: { readonly all?: boolean },
): Promise<number> {
  const { mcp } = openProject(context, { toleratesBrokenFiles: true });
  if ((name === undefined) !== all)
    throw misuse("`retinue mcp approve` needs the name of one server, or --all.");
  const { names, trusted } = await mcp.approve(name);
  context.host.stdout.write(`Approved as they are written now: ${names.join(", ")}.\n`);
  if (!trusted)
    context.host.stdout.write(
      "The folder is not trusted yet, so none of its servers start: see `retinue trust`.\n",
    );
  return 0;
}

/** `retinue mcp reject NAME`: a project's server is not started here, no matter who else approves it. */
export async function mcpReject(context: CommandContext, name: string): Promise<number> {
  await openProject(context, { toleratesBrokenFiles: true }).mcp.reject(name);
  context.host.stdout.write(
    `\`${name}\` is not started in this project. \`retinue mcp approve ${name}\` undoes this.\n`,
  );
  return 0;
}

/** `retinue mcp reset-project-choices`: servers of the project are asked about again. */
export async function mcpResetChoices(context: CommandContext): Promise<number> {
  await openProject(context, { toleratesBrokenFiles: true }).mcp.resetChoices();
  context.host.stdout.write("Servers of this project are no longer approved or rejected.\n");
  return 0;
}
