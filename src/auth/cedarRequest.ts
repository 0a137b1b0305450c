/** From a request to the questions that Cedar is asked. The schema in `policy/` says the same. */
import { isIP } from 'node:net';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import type { AccessRequest, Launch } from '../core/access.js';
import type { Capability } from '../core/capability.js';
import { requiredActions } from '../core/grant.js';
import { type TerminalPart, terminalParts } from './cedarReach.js';
import type { PolicyPeer, PolicyPrincipal, PolicyRequest } from './policy.js';

export type Question = Omit<Cedar.StatefulAuthorizationCall, 'preparsedPolicySetId'>;

type Value = Cedar.CedarValueJson;

const allParts: ReadonlySet<TerminalPart> = new Set(terminalParts);

/** One for each action that the grant must hold: all of them must be permitted. */
export function questionsOf(request: PolicyRequest): readonly Question[] {
  const principal = clientOf(request.principal);
  const resource = terminalOf(request.access);
  const call = {
    peer: peerOf(request.peer),
    proves_possession: request.peer.provesPossession,
  };
  return requiredActions(request.access).map((action) => ({
    principal: principal.uid,
    action: { type: 'Grantty::Action', id: action },
    resource: resource.uid,
    context: { ...call, ...argumentsOf(action, request.access) },
    entities: [principal, resource],
  }));
}

/**
 * The same for questions with the same answer only: all that they are made of, of the terminal what
 * policies read, and nothing else. That the token is not in it lets an answer outlive the token's
 * renewal; that its id seldom is lets one answer do for the next terminal too.
 */
export function keyOf(
  { principal, access, peer }: PolicyRequest,
  reads: ReadonlySet<TerminalPart> = allParts,
): string {
  const { target, also, signal, signalBytes, launch } = access;
  const hasMore = also || signal || signalBytes || launch;
  const more = hasMore
    ? JSON.stringify([
        also,
        signal,
        signalBytes,
        launch && [launch.command, launch.cwd, launch.envNames],
      ])
    : '';
  const owner = reads.has('owner') && target.owner;
  const agent = reads.has('agent') && target.agent;
  const session = reads.has('session') && target.session;
  const terminal = reads.has('terminal') && target.id;
  const names = `${owner}\n${agent}\n${session}\n${terminal}`;
  const call = `${access.action}\n${peer.provesPossession}`;
  // Nothing has a newline in it, but perhaps the last one.
  return `${principalText(principal)}\n${call}\n${names}\n${more}\n${peer.address}`;
}

const principalTexts = new WeakMap<PolicyPrincipal, string>();

function principalText(principal: PolicyPrincipal): string {
  let text = principalTexts.get(principal);
  if (text === undefined) {
    const { issuer, subject, clientId, actors } = principal;
    text = JSON.stringify([issuer, subject, clientId, actors]);
    principalTexts.set(principal, text);
  }
  return text;
}

interface Entity {
  readonly uid: Cedar.TypeAndId;
  readonly attrs: Record<string, Value>;
  readonly parents: [];
}

function clientOf({ issuer, subject, clientId, actors }: PolicyPrincipal): Entity {
  const [actor] = actors;
  return {
    uid: { type: 'Grantty::Client', id: JSON.stringify([issuer, subject]) },
    attrs: {
      issuer,
      subject,
      client_id: clientId,
      actors: [...actors],
      ...(actor !== undefined && { actor }),
      delegation_depth: actors.length,
      delegated: actor !== undefined,
    },
    parents: [],
  };
}

function terminalOf({ target }: AccessRequest): Entity {
  const { owner, agent, session, id } = target;
  return {
    // Names hold no slash.
    uid: { type: 'Grantty::Terminal', id: `${owner}/${agent}/${session}/${id}` },
    attrs: { owner, agent, session, terminal: id },
    parents: [],
  };
}

/** Of an IPv4 address on a socket that takes both families (RFC 4291, 2.5.5.2). */
const MAPPED_IPV4 = /^::ffff:(?=\d+\.)/i;

/**
 * What is no address is not taken for this host, not even `unix`: the address of a connection that
 * is gone cannot be told from it.
 */
function peerOf({ address }: PolicyPeer): Value {
  const ip = address
    .replace(/^\[|\]$/g, '')
    .replace(/%.*$/, '')
    .replace(MAPPED_IPV4, '');
  if (isIP(ip) === 0) return { address, loopback: false };
  return {
    address: ip,
    ip: { __extn: { fn: 'ip', arg: ip } },
    loopback: ip === '::1' || (isIP(ip) === 4 && ip.startsWith('127.')),
  };
}

function argumentsOf(action: Capability, access: AccessRequest): Record<string, Value> {
  switch (action) {
    case 'terminal.create':
      return access.launch === undefined ? {} : { launch: launchOf(access.launch) };
    case 'terminal.write':
      return { raises: [...(access.signalBytes ?? [])] };
    case 'terminal.signal':
      return access.signal === undefined ? {} : { signal: access.signal };
    case 'terminal.read':
    case 'terminal.resize':
    case 'terminal.stop':
    case 'terminal.kill':
      return {};
  }
}

function launchOf({ command, cwd, envNames }: Launch): Value {
  const [program = '', ...rest] = command;
  return {
    program,
    arguments: rest,
    command_line: command.join(' '),
    cwd,
    env_names: [...envNames],
  };
}
