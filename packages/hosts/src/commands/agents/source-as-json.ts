import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { AgentDefinition } from "@retinue/core/kernel/project/project-agents.ts";

/** Name and source of a definition as the JSON of every command has them. */
export function sourceAsJson({ name, source }: AgentDefinition) {
  return {
    name,
    scope: source.scope,
    plugin: source.plugin,
    file: source.file,
    ...(source.format === undefined ? {} : { format: source.format, line: source.line }),
  };
}

/** A problem without its file, which is shown above it. */
export function diagnosticAsJson({ file: _file, ...diagnostic }: Diagnostic) {
  return diagnostic;
}
