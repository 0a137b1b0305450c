/** GetServerInfo: what this server is, and what it allows. */
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  DEFAULT_STOP_GRACE_MS,
  MAX_ARGV_BYTES,
  MAX_ARGV_COUNT,
  MAX_ATTACHMENTS_PER_PRINCIPAL,
  MAX_ATTACHMENTS_PER_TERMINAL,
  MAX_ENV_BYTES,
  MAX_ENV_COUNT,
  MAX_INPUT_FRAME_BYTES,
  MAX_LABEL_BYTES,
  MAX_LABELS,
  MAX_MESSAGE_BYTES,
  MAX_METADATA_BYTES,
  MAX_STOP_GRACE_MS,
  SIZE_RANGE,
} from '../core/limits.js';
import { IsolationMode, type ServerService } from '../gen/public/grantty/v1/server_service_pb.js';
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS } from '../session/readiness.js';
import type { IsolationMode as Isolation } from '../supervisor/api.js';
import { admit } from './authorize.js';
import type { ServerContext } from './context.js';
import type { Handlers } from './grpc.js';
import { callerOf } from './perform.js';

/** Behaviour that a client cannot tell from the services alone. */
const FEATURES = ['session-adoption'];

const isolationToWire: Readonly<Record<Isolation, IsolationMode>> = {
  'by-uid': IsolationMode.BY_UID,
  'fixed-user': IsolationMode.FIXED_USER,
  'shared-uid': IsolationMode.SHARED_UID,
};

export function serverInfo(
  { gate, supervisor, clock, version, limits }: ServerContext,
  services: readonly string[],
): Handlers<typeof ServerService> {
  return {
    async getServerInfo(_request, call) {
      await admit(gate, callerOf(call));
      const info = await supervisor.info();
      const { idleMs, lifetimeMs } = info.life;
      return {
        version,
        isolationMode: isolationToWire[info.isolation],
        limits: {
          terminalsPerOwner: info.maxLiveTerminalsPerOwner,
          terminalsPerHost: info.maxLiveTerminals,
          attachmentsPerTerminal: MAX_ATTACHMENTS_PER_TERMINAL,
          attachmentsPerTerminalAndPrincipal: MAX_ATTACHMENTS_PER_PRINCIPAL,
          streamsPerPrincipal: limits.maxStreamsPerPrincipal,
          columns: SIZE_RANGE.max,
          rows: SIZE_RANGE.max,
          inputFrameBytes: MAX_INPUT_FRAME_BYTES,
          messageBytes: MAX_MESSAGE_BYTES,
          argvCount: MAX_ARGV_COUNT,
          argvBytes: MAX_ARGV_BYTES,
          envCount: MAX_ENV_COUNT,
          envBytes: MAX_ENV_BYTES,
          labelCount: MAX_LABELS,
          labelBytes: MAX_LABEL_BYTES,
          stopGraceDefault: durationFromMs(DEFAULT_STOP_GRACE_MS),
          stopGraceMax: durationFromMs(MAX_STOP_GRACE_MS),
          sendTimeoutDefault: durationFromMs(DEFAULT_TIMEOUT_MS),
          sendTimeoutMax: durationFromMs(MAX_TIMEOUT_MS),
          metadataBytes: MAX_METADATA_BYTES,
          connections: limits.maxConnections,
          firstCallTimeout: durationFromMs(limits.firstCallMs),
          connectionIdle: durationFromMs(limits.idleMs),
          connectionAge: durationFromMs(limits.connectionAgeMs),
          ...(idleMs !== undefined && { terminalIdle: durationFromMs(idleMs) }),
          ...(lifetimeMs !== undefined && { terminalLifetime: durationFromMs(lifetimeMs) }),
        },
        features: [...FEATURES].sort(),
        services: [...services].sort(),
        stateId: info.stateDirId,
        time: timestampFromMs(clock.now()),
      };
    },
  };
}
