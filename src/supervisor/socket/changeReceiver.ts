/** Puts the parts of followed changes together for one follower. */
import type { AsyncQueue } from '../../core/asyncQueue.js';
import type { GranttyError } from '../../core/errors.js';
import type { TerminalChange, TerminalSnapshot } from '../api.js';
import type { Result, Sink } from './controlClient.js';
import { unavailable, unsound } from './protocol.js';
import { decodeSnapshot, decodeTuple } from './recordCodec.js';

export class ChangeReceiver implements Sink {
  readonly #queue: AsyncQueue<TerminalChange>;
  readonly #cancel: () => void;
  #listed: TerminalSnapshot[] = [];

  /** `cancel` ends the call when the follower is too far behind. */
  constructor(queue: AsyncQueue<TerminalChange>, cancel: () => void) {
    this.#queue = queue;
    this.#cancel = cancel;
  }

  result(result: Result): boolean {
    if (result.case === 'done') {
      this.#queue.end();
      return false;
    }
    if (result.case !== 'change') throw unsound('an unexpected answer');
    const { part, cursor } = result.value;
    switch (part.case) {
      case 'listed':
        this.#listed.push(decodeSnapshot(part.value));
        break;
      case 'complete':
        this.#push({ kind: 'snapshot', terminals: this.#listed, cursor });
        this.#listed = [];
        break;
      case 'changed':
        this.#push({ kind: 'changed', terminal: decodeSnapshot(part.value), cursor });
        break;
      case 'removed': {
        const { tuple, uid } = part.value;
        this.#push({ kind: 'removed', tuple: decodeTuple(tuple), uid, cursor });
        break;
      }
      case undefined:
        throw unsound('an empty change');
    }
    return true;
  }

  failed(error: GranttyError): void {
    this.#queue.fail(error);
  }

  #push(change: TerminalChange): void {
    if (this.#queue.push(change)) return;
    this.#queue.fail(unavailable('too far behind the changes; resume by cursor'));
    this.#cancel();
  }
}
