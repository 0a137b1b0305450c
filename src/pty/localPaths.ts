/** Which paths can be looked at in the event loop, since what they lie on answers at once. */
import { readFileSync } from 'node:fs';

/** File systems of this host's own disks and memory. Whatever else there is may stand still: FUSE, NFS, autofs. */
const LOCAL_TYPES = new Set(
  'btrfs cgroup cgroup2 devpts devtmpfs erofs exfat ext2 ext3 ext4 f2fs iso9660 jfs mqueue overlay proc ramfs securityfs squashfs sysfs tmpfs tracefs vfat xfs zfs'.split(
    ' ',
  ),
);

/** Of the present turn of the event loop: who mounts something is seen in the next one. */
let known: ((path: string) => boolean) | undefined;

/** For absolute paths without links, `.` and `..` in them. Nothing is local where the mounts cannot be read. */
export function localPaths(): (path: string) => boolean {
  if (known === undefined) {
    known = read();
    setImmediate(() => {
      known = undefined;
    });
  }
  return known;
}

function read(): (path: string) => boolean {
  try {
    return localBy(readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    return () => false;
  }
}

/** By the text of /proc/PID/mountinfo (proc(5)). What is mounted below something that is not local, is not. */
export function localBy(mountinfo: string): (path: string) => boolean {
  const others = mountinfo.split('\n').flatMap((line) => {
    const [before = '', after] = line.split(' - ');
    const place = before.split(' ')[4];
    const [type = ''] = after?.split(' ') ?? [];
    return place === undefined || LOCAL_TYPES.has(type) ? [] : [unescaped(place)];
  });
  return (path) =>
    others.every((place) => path !== place && !path.startsWith(place === '/' ? '/' : `${place}/`));
}

/** Space, tab, newline and backslash are written in octal. */
function unescaped(place: string): string {
  return place.replace(/\\([0-7]{3})/g, (_, octal) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
