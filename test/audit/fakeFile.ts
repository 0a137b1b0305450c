/** Files of a trail that tell in which order things are done to them, and that can be made to fail. */
import { type AuditFile, type OpenAuditFile, openAuditFile } from '../../src/audit/auditFile.js';

export interface Seam {
  readonly open: OpenAuditFile;
  /** `append` and `sync` as they finish, and whatever a test adds. */
  readonly order: string[];
  /** Thrown by appends while it is set. */
  full: Error | undefined;
  /** Thrown by syncs while it is set. */
  broken: Error | undefined;
  /** Syncs wait for it while it is set. */
  gate: Promise<void> | undefined;
  appends: number;
  syncs: number;
}

export function noSpace(): Error {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

export function seam(): Seam {
  const state: Seam = {
    open: async (path) => watched(await openAuditFile(path), state),
    order: [],
    full: undefined,
    broken: undefined,
    gate: undefined,
    appends: 0,
    syncs: 0,
  };
  return state;
}

function watched(file: AuditFile, state: Seam): AuditFile {
  return {
    get size() {
      return file.size;
    },
    async append(bytes) {
      if (state.full) throw state.full;
      await file.append(bytes);
      state.appends += 1;
      state.order.push('append');
    },
    async sync() {
      if (state.broken) throw state.broken;
      await state.gate;
      await file.sync();
      state.syncs += 1;
      state.order.push('sync');
    },
    read: (...args) => file.read(...args),
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  };
}
