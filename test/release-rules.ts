/** What has to agree before a version is published. Pure: files are handed in. */

/** Every problem as a sentence; none when the release can go out. */
export function checkRelease(tag: string, read: (path: string) => string): readonly string[] {
  const version = tag.replace(/^v/, "");
  if (!/^v\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(tag)) return [`The tag ${tag} is not of the form v1.2.3.`];
  const json = (path: string) => JSON.parse(read(path)) as Record<string, unknown>;
  const server = json("server.json") as { version: string; packages: readonly { version: string }[] };
  const agent = json("agent.json") as { version: string; distribution: { npx: { package: string } } };
  const stated: readonly (readonly [string, unknown])[] = [
    ...["base", "gate", "config", "core", "cluster", "testing", "hosts"].map(
      (name) => [`packages/${name}/package.json`, json(`packages/${name}/package.json`)["version"]] as const,
    ),
    ["package.json", json("package.json")["version"]],
    ["server.json", server.version],
    ["server.json, the package", server.packages[0]?.version],
    ["agent.json", agent.version],
    ["agent.json, the package", agent.distribution.npx.package.split("@").at(-1)],
  ];
  const problems = stated
    .filter(([, found]) => found !== version)
    .map(([place, found]) => `${place} has the version ${String(found)}, the tag has ${version}.`);
  if (json("package.json")["mcpName"] !== json("server.json")["name"])
    problems.push("package.json: `mcpName` is not the name in server.json.");
  if (releaseNotes(tag, read("CHANGELOG.md")).trim() === "")
    problems.push(`CHANGELOG.md has no section "## [${version}]" with text.`);
  return problems;
}

/** The section of the changelog for a version, without its heading. */
export function releaseNotes(tag: string, changelog: string): string {
  const sections = changelog.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`[${tag.replace(/^v/, "")}]`));
  return section === undefined ? "" : `${section.split("\n").slice(1).join("\n").trim()}\n`;
}
