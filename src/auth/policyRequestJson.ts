/** Requests as people write them down for tables and questions to policies: JSON, checked whole. */
import { z } from 'zod';
import { capabilities } from '../core/capability.js';
import { isName, type Name } from '../core/names.js';
import { isSignalName, type SignalName } from '../core/signals.js';
import type { PolicyRequest } from './policy.js';

const name = z.custom<Name>((text) => typeof text === 'string' && isName(text), 'is not a name');

const signal = z.custom<SignalName>(
  (text) => typeof text === 'string' && isSignalName(text),
  'is not a signal, like SIGINT',
);

export const policyRequestSchema = z
  .strictObject({
    principal: z.strictObject({
      issuer: z.string().min(1),
      subject: z.string().min(1),
      /** Absent: the subject itself. */
      client_id: z.string().min(1).optional(),
      /** The latest first. */
      actors: z.array(z.string().min(1)).default([]),
    }),
    action: z.enum(capabilities),
    /** Further actions that the same request needs: `terminal.kill` of a delete. */
    also: z.array(z.enum(capabilities)).optional(),
    resource: z.strictObject({ owner: name, agent: name, session: name, terminal: name }),
    /** IP address without port. */
    peer: z.string().min(1).default('127.0.0.1'),
    proves_possession: z.boolean().default(false),
    /** Of a `terminal.signal`. */
    signal: signal.optional(),
    /** Of a `terminal.write`: what the input would raise. */
    raises: z.array(signal).optional(),
    /** Of a `terminal.create`. */
    launch: z
      .strictObject({
        command: z.array(z.string()).min(1),
        cwd: z.string(),
        env_names: z.array(z.string()).default([]),
      })
      .optional(),
  })
  .transform(({ principal, action, also, resource, peer, signal, raises, launch, ...rest }) => {
    const { owner, agent, session, terminal } = resource;
    const request: PolicyRequest = {
      principal: {
        issuer: principal.issuer,
        subject: principal.subject,
        clientId: principal.client_id ?? principal.subject,
        actors: principal.actors,
      },
      access: {
        action,
        target: { owner, agent, session, id: terminal },
        ...(also && { also }),
        ...(signal && { signal }),
        ...(raises && { signalBytes: raises }),
        ...(launch && {
          launch: { command: launch.command, cwd: launch.cwd, envNames: launch.env_names },
        }),
      },
      peer: { address: peer, provesPossession: rest.proves_possession },
    };
    return request;
  });

/** @throws Error that names every member that is wrong */
export function parsePolicyRequest(value: unknown): PolicyRequest {
  return parseWith(policyRequestSchema, value);
}

/** @throws Error that names every member that is wrong */
export function parseWith<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the document'}: ${message}`,
  );
  throw new Error(problems.join('; '));
}
