/** Whom terminals run as: from the configuration to an isolation mode, with what is refused. */
import { type Name, parseName } from '../core/names.js';
import type { Isolation } from '../supervisor/isolation.js';
import type { Configuration } from './config.js';
import { problemOf } from './configurationError.js';

export interface IsolationFacts {
  readonly runAs: Configuration['run_as'];
  /** Only this host can connect. */
  readonly isLocal: boolean;
  /** Of this process. */
  readonly uid: number;
  /** Another process runs the terminals, and may be root where this one is not. */
  readonly isElsewhere?: boolean;
  readonly allowSharedUid: boolean;
}

/** @throws ConfigurationError */
export function chooseIsolation(facts: IsolationFacts): Isolation {
  const { uid } = facts;
  const runAs = facts.runAs ?? defaultFor(uid);
  if (runAs.mode !== 'shared-uid' && uid !== 0 && !facts.isElsewhere) {
    const what = `${runAs.mode} needs a server that runs as root, and this one has uid ${uid}`;
    throw problemOf('run_as.mode', what, 'start it as root, or with --supervisor external');
  }
  switch (runAs.mode) {
    case 'by-uid':
      return { mode: 'by-uid', minUid: runAs.min_uid };
    case 'fixed-user':
      return { mode: 'fixed-user', uid: runAs.uid };
    case 'shared-uid':
      if (facts.allowSharedUid) return { mode: 'shared-uid', owners: 'any' };
      if (facts.isLocal) return { mode: 'shared-uid', owners: ownerOf(uid) };
      throw problemOf(
        'run_as',
        'terminals would run as the server itself and could reach its files and keys',
        'listen on loopback, run as root with run_as.mode by-uid or fixed-user, or accept it with --allow-shared-uid',
      );
  }
}

function defaultFor(uid: number): NonNullable<Configuration['run_as']> {
  return uid === 0 ? { mode: 'by-uid', min_uid: 1000 } : { mode: 'shared-uid' };
}

/** The owner that stands for a user of this host. */
export function ownerOf(uid: number): Name {
  return parseName('owner', String(uid));
}
