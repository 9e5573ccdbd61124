import { execFile } from "node:child_process";
import type { CliHost } from "./cli-host.ts";

type Place = Pick<CliHost, "environment" | "platform">;

interface ClipboardProgram {
  readonly command: string;
  readonly words: readonly string[];
  /** The bytes of the image in what it has written. */
  readonly read: (output: Buffer) => Buffer;
}

const timeoutMs = 5_000;
const maxBytes = 64 * 1024 * 1024;

/** The image in the clipboard; undefined where there is none, or no program to read it with. */
export async function readClipboardImage(place: Place): Promise<Buffer | undefined> {
  for (const program of programsFor(place)) {
    const output = await run(program, place);
    const image = output === undefined ? undefined : program.read(output);
    if (image !== undefined && image.length > 0) return image;
  }
  return undefined;
}

function programsFor({ environment, platform }: Place): readonly ClipboardProgram[] {
  const whole = (output: Buffer): Buffer => output;
  if (platform === "darwin")
    return [
      // It writes `«data PNGf89504E47…»`.
      {
        command: "osascript",
        words: ["-e", "get the clipboard as «class PNGf»"],
        read: (output) => Buffer.from(/[0-9A-F]{16,}/.exec(output.toString("latin1"))?.[0] ?? "", "hex"),
      },
    ];
  if (platform === "win32" || isSet(environment["WSL_DISTRO_NAME"]))
    return [
      {
        command: "powershell.exe",
        words: ["-NoProfile", "-NonInteractive", "-Command", windowsScript],
        read: (output) => Buffer.from(output.toString("latin1").trim(), "base64"),
      },
    ];
  return [
    ...(isSet(environment["WAYLAND_DISPLAY"])
      ? [{ command: "wl-paste", words: ["--type", "image/png"], read: whole }]
      : []),
    ...(isSet(environment["DISPLAY"])
      ? [
          {
            command: "xclip",
            words: ["-selection", "clipboard", "-target", "image/png", "-out"],
            read: whole,
          },
        ]
      : []),
  ];
}

const windowsScript =
  "$i = Get-Clipboard -Format Image; if ($i) { $m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray()) }";

/** What it writes; undefined where it is not there, fails or takes too long. */
function run({ command, words }: ClipboardProgram, { environment }: Place): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const options = { encoding: "buffer", env: { ...environment }, timeout: timeoutMs, maxBuffer: maxBytes };
    execFile(command, words, options as { encoding: "buffer" }, (error, output) =>
      resolve(error === null ? output : undefined),
    );
  });
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}
