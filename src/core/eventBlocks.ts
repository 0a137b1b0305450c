/** Blocks of memory for the bytes of large events, used again and again: a flood asks for no new ones. */
import { MAX_EVENT_DATA_BYTES } from './limits.js';
import { Loan } from './loan.js';

/** Bytes that stand in front of an event's data in any message that carries it, at most. */
export const HEAD_BYTES = 64;

/**
 * Room for the largest event, the head of the message that brings it and the head of one that takes
 * it on. What fills less than half of a block is better off with memory of its own.
 */
export const BLOCK_BYTES = 2 * HEAD_BYTES + MAX_EVENT_DATA_BYTES;

/**
 * Blocks that are kept while nobody uses them, 4 MiB in all: what four clients that are as far behind
 * as live output lets them be have waiting. More are made when more are needed, and are not kept.
 */
const MAX_IDLE_BLOCKS = 64;

/** The one that was used last is used next: it is the likeliest to be in the processor's cache. */
const idle: Buffer[] = [];

/** Belongs to whoever borrowed it until the loan was given back. */
export interface EventBlock {
  readonly bytes: Buffer;
  readonly loan: Loan;
}

export function borrowBlock(): EventBlock {
  const bytes = idle.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  const loan = new Loan(() => {
    if (idle.length < MAX_IDLE_BLOCKS) idle.push(bytes);
  });
  return { bytes, loan };
}
