/** What Linux has and a platform has not, each as one sentence; empty on Linux. docs/platforms.md says more. */
export function platformNotes(platform: NodeJS.Platform): readonly string[] {
  if (platform === "linux") return [];
  const name = names.get(platform) ?? platform;
  return [
    `Read-only commands are not isolated on ${name}: in folders that are not trusted, more is asked.`,
    "After a crash, processes that left their group are not found and keep running.",
    ...(platform === "win32" ? windowsNotes : []),
    ...(names.has(platform) ? [] : [`${name} is unknown; it is treated like other Unix systems.`]),
  ];
}

const names: ReadonlyMap<string, string> = new Map([
  ["darwin", "macOS"],
  ["win32", "Windows"],
]);

const windowsNotes = [
  "Commands need the bash of Git for Windows (CLAUDE_CODE_GIT_BASH_PATH names another).",
  "Commands survive a process that is killed: nothing watches over them.",
  "Files have the rights of their folder, and the owner of managed settings is not looked at.",
  "The permission rules have not been tried there: keep to the default mode.",
];
