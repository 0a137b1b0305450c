/** Descriptors that whoever started this process has left open in it. */
import { closeSync, fstatSync, readdirSync, readFileSync } from 'node:fs';

/** FD_CLOEXEC as fdinfo shows it (proc(5)): O_CLOEXEC, octal. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes pipes, sockets and devices above 2 that came by inheritance: a process that outlives whoever
 * started it must not keep a reader of theirs waiting, and a high number makes each fork of a PTY
 * dearer (see nativePty.ts). They are told by not being close-on-exec, as all is that Node.js opens;
 * what V8 may open otherwise, logs for profilers, is an ordinary file, and those stay. What comes
 * right after 2 stays too: Node.js marks it close-on-exec when it begins.
 */
export function closeInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const descriptor = Number(name);
    if (descriptor > 2 && isInherited(descriptor)) closeSync(descriptor);
  }
}

function isInherited(descriptor: number): boolean {
  try {
    if (fstatSync(descriptor).isFile()) return false;
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1');
    const flags = /^flags:\s*([0-7]+)$/m.exec(info)?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The listing's own, closed by now.
    return false;
  }
}
