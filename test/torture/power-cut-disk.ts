import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An ext4 file system in a file whose power can be cut: what was not synced is lost, as on a real disk. */
export interface PowerCutDisk extends Disposable {
  /** Where the file system is mounted. */
  readonly mount: string;
  /** A folder on another disk, whose contents survive the cut. */
  readonly outside: string;
  /** Brings everything there is to the disk. */
  sync(): void;
  /** From here on nothing reaches the disk any more, and what has not reached it is lost. */
  cut(): void;
  /** The machine starts again: the journal is replayed and the disk mounted. No process may still be at work on it. */
  restart(): void;
}

/** Why power cuts cannot be tried here; undefined where they can. */
export function powerCutObstacle(): string | undefined {
  if (process.platform !== "linux") return "it needs Linux";
  if (process.getuid?.() !== 0) return "it needs root, to mount a loop device";
  const missing = ["mkfs.ext4", "mount", "umount", "perl"].find((name) => !isInstalled(name));
  if (missing !== undefined) return `${missing} is missing`;
  if (!existsSync("/dev/loop-control")) return "there are no loop devices";
  return undefined;
}

const imageBytes = 96 * 2 ** 20;

export function createPowerCutDisk(): PowerCutDisk {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-power-")));
  const [image, mount, outside] = ["disk.img", "mount", "outside"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(image, "");
  truncateSync(image, imageBytes);
  mkdirSync(mount);
  mkdirSync(outside);
  run("mkfs.ext4", "-q", "-F", image);
  const attach = (): void => run("mount", "-o", "loop", image, mount);
  attach();
  return {
    mount,
    outside,
    sync: () => run("sync", "--file-system", mount),
    cut() {
      run("perl", "-e", shutDown, mount);
    },
    restart() {
      unmount(mount);
      attach();
    },
    [Symbol.dispose]() {
      unmount(mount);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH, as the tests of file systems use it. */
const shutDown = `
sysopen(my $folder, $ARGV[0], 0) or die "open: $!";
my $flags = pack("I", 2);
ioctl($folder, 0x8004587D, $flags) or die "shutdown: $!";
`;

/** A process that was just killed may hold the mount for a moment longer. */
function unmount(mount: string): void {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    try {
      run("umount", mount);
      return;
    } catch {
      execFileSync("sleep", ["0.1"]);
    }
  }
  throw new Error(`Somebody still uses ${mount}.`);
}

function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
}

function isInstalled(program: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
