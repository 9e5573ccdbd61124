import { describe, expect, it } from "vitest";
import { isExcluded, readSandboxSettings } from "./sandbox-settings.ts";

describe("reading the sandbox settings", () => {
  it("is off, and lets nothing through, where nothing is written", () => {
    expect(readSandboxSettings(undefined)).toMatchObject({
      enabled: false,
      mayRunUnprotected: false,
      network: { allowedDomains: [], allowAllUnixSockets: false, allowLocalBinding: false },
    });
  });

  it.each([
    [{}, false],
    [{ failIfUnavailable: true }, false],
    [{ failIfUnavailable: false }, true],
    [{ allowUnsandboxedCommands: true }, true],
    [{ allowUnsandboxedCommands: false }, false],
    [{ allowUnsandboxedCommands: true, failIfUnavailable: true }, false],
    [{ failIfUnavailable: "no" }, false],
  ])("%j lets commands run without a sandbox: %s", (written, expected) => {
    expect(readSandboxSettings({ enabled: true, ...written }).mayRunUnprotected).toBe(expected);
  });

  it("has what is written for files, hosts and sockets", () => {
    const filesystem = { allowRead: ["a"], allowWrite: ["b"], denyRead: ["c"], denyWrite: ["d"] };
    const network = {
      allowedDomains: ["a.test"],
      deniedDomains: ["b.test"],
      allowUnixSockets: ["/run/x"],
      allowAllUnixSockets: true,
      allowLocalBinding: true,
    };
    const read = readSandboxSettings({ enabled: true, enableWeakerNestedSandbox: true, filesystem, network });
    expect(read).toMatchObject({ enabled: true, weakerNestedSandbox: true, filesystem, network });
  });

  it("takes values of another kind as not written", () => {
    const read = readSandboxSettings({
      enabled: "yes",
      excludedCommands: "docker",
      filesystem: [],
      network: { allowedDomains: ["a.test", 3, ""], allowLocalBinding: 1 },
    });
    expect(read).toMatchObject({ enabled: false, excludedCommands: [] });
    expect(read.network).toMatchObject({ allowedDomains: ["a.test"], allowLocalBinding: false });
  });
});

describe("commands that settings take out of the sandbox", () => {
  it.each([
    ["docker ps", ["docker *"], true],
    ["docker ps", ["docker:*"], true],
    ["docker", ["docker *"], true],
    ["docker ps", ["docker"], false],
    ["dockerd", ["docker *"], false],
    ["docker ps; rm -rf x", ["docker *"], false],
    ["docker ps $(id)", ["docker *"], false],
    ["docker ps > out", ["docker *"], false],
    ["docker ps\nid", ["docker *"], false],
    ["X=1 docker ps", ["docker *"], false],
    ["rm x", ["*"], false],
    ["rm x", [""], false],
  ])("%j by %j: %s", (command, entries, expected) => {
    expect(isExcluded(command, entries)).toBe(expected);
  });
});
