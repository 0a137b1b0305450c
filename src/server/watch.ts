/** Watch: a terminal's output to one reader. */
import { fieldInvalid } from '../core/errors.js';
import type { TerminalService } from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { ServerContext } from './context.js';
import { onRecord, serveEvents } from './eventStream.js';
import { known } from './fields.js';
import type { Handlers } from './grpc.js';
import { callerOf, stored } from './perform.js';
import { storedTarget } from './refs.js';
import { Standing } from './standing.js';
import { attachmentKindOf } from './wire.js';

type WatchHandler = NonNullable<Handlers<typeof TerminalService>['watch']>;

export function watch(context: ServerContext): WatchHandler {
  const { gate, streams, watchers, clock } = context;
  return async (request, call, out) => {
    const standing = await Standing.open(gate, callerOf(call, 'open'), {
      action: 'terminal.read',
      target: storedTarget(request.terminal),
    });
    await onRecord(context, standing.permit, out, async () => {
      const { permit } = standing;
      const { start, follow = true, until } = request;
      const kind =
        request.kind === undefined ? 'service' : known('kind', attachmentKindOf(request.kind));
      if (!follow && start.case === 'live') throw fieldInvalid('follow', 'must be true with live');
      using stream = streams.open(permit.token, call);
      using _listed = watchers.add(stored(permit), permit.token, kind, clock.now());
      await serveEvents(context, { call, out, standing, stream, start, follow, until });
    });
  };
}
