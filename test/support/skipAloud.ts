/** Skipping a test where the machine lacks what it needs, so that it can be seen. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Prints why a test proves nothing on this machine. */
export function skipAloud(reason: string): void {
  process.stderr.write(`skipped: ${expect.getState().currentTestName}: ${reason}\n`);
}

/** Whether a program of that name can be run. */
export function onPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
