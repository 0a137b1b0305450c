/** What tests of Watch and Attach look at in the messages that came. */
import type { MessageShape } from '@bufbuild/protobuf';
import type {
  AttachResponseSchema,
  WatchResponseSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';

export type StreamMessage =
  | MessageShape<typeof AttachResponseSchema>
  | MessageShape<typeof WatchResponseSchema>;

type StreamEvent = Extract<MessageShape<typeof AttachResponseSchema>['event'], { case: string }>;
type EventCase = StreamEvent['case'];
type EventValue<C extends EventCase> = Extract<StreamEvent, { case: C }>['value'];

/** The events of one kind. */
export function eventsOf<C extends EventCase>(
  messages: readonly StreamMessage[],
  kind: C,
): EventValue<C>[] {
  return messages.flatMap(({ event }) =>
    event.case === kind ? [event.value as EventValue<C>] : [],
  );
}

export function kindsOf(messages: readonly StreamMessage[]): (EventCase | undefined)[] {
  return messages.map(({ event }) => event.case);
}

/** Seqs of outputs and exits, in the order in which they came. */
export function seqsOf(messages: readonly StreamMessage[]): number[] {
  return messages.flatMap(({ event }) =>
    event.case === 'output' || event.case === 'exited' ? [Number(event.value.seq)] : [],
  );
}

export function textOf(messages: readonly StreamMessage[]): string {
  return Buffer.concat(eventsOf(messages, 'output').map(({ data }) => data)).toString('latin1');
}

/** first, first + 1 … last */
export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
