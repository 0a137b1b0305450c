/** Reads whole streams of a client, for tests. */
import type { Client } from '../../src/client/connect.js';
import type { WatchEvent, WatchRequestInit } from '../../src/client/watch.js';
import type { AttachResponse } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';

type StreamEvent = AttachResponse['event'];

export interface Transcript {
  readonly events: readonly StreamEvent[];
  readonly output: Buffer;
  readonly seqs: readonly bigint[];
  /** Of the last `exited`. */
  readonly exitCode: number | undefined;
  readonly kinds: readonly string[];
}

export function transcriptOf(events: readonly StreamEvent[]): Transcript {
  const output: Uint8Array[] = [];
  const seqs: bigint[] = [];
  let exitCode: number | undefined;
  for (const { case: kind, value } of events) {
    if (kind === 'output') output.push(value.data);
    if (kind === 'exited') exitCode = value.status?.exitCode;
    if (kind === 'output' || kind === 'exited') seqs.push(value.seq);
  }
  return {
    events,
    output: Buffer.concat(output),
    seqs,
    exitCode,
    kinds: events.map(({ case: kind }) => String(kind)),
  };
}

/** Watches to the end of the stream. */
export async function watchAll(
  client: Client,
  request: WatchRequestInit,
  signal: AbortSignal = AbortSignal.timeout(25_000),
): Promise<Transcript> {
  const events: WatchEvent[] = [];
  for await (const event of client.watch(request, { signal })) events.push(event);
  return transcriptOf(events);
}

/** 1, 2, … n, as seqs of a log from its start are. */
export function seqsTo(n: number): bigint[] {
  return Array.from({ length: n }, (_, index) => BigInt(index + 1));
}
