import { EventEmitter } from 'node:events';
import type { Http2Session } from 'node:http2';
import { Peers } from '../../src/server/peer.js';

const NAME = '192.0.2.1:40000';

function session(socket: object = { remotePort: 40_000 }): Http2Session {
  return Object.assign(new EventEmitter(), {
    socket: { remoteAddress: '192.0.2.1', ...socket },
  }) as unknown as Http2Session;
}

/** A call of a peer with the certificate `raw`, and how often that has been read. */
function callWith(raw: string, name = NAME) {
  let reads = 0;
  const call = {
    getPeer: () => name,
    getAuthContext() {
      reads += 1;
      const certificate = { raw: Buffer.from(raw), valid_to: 'Jan 1 00:00:00 2030 GMT' };
      return { sslPeerCertificate: certificate };
    },
  } as unknown as Parameters<Peers['of']>[0];
  return { call, reads: () => reads };
}

const thumbprint = (peers: Peers, raw: string) =>
  peers.of(callWith(raw).call).certificate?.thumbprint;
const thumbprintOf = (raw: string) => thumbprint(new Peers(), raw);

describe('who is at the other end', () => {
  it('is read once for each connection', () => {
    const peers = new Peers();
    peers.connected(session());
    const { call, reads } = callWith('one');
    const first = peers.of(call);
    expect(first).toEqual({
      address: '192.0.2.1',
      connection: NAME,
      certificate: { thumbprint: thumbprintOf('one'), notAfter: Date.UTC(2030, 0, 1) },
    });
    expect(peers.of(call)).toBe(first);
    expect(reads()).toBe(1);
  });

  it('is read anew where the name is another connection by now', () => {
    const peers = new Peers();
    const gone = session();
    peers.connected(gone);
    expect(thumbprint(peers, 'one')).toBe(thumbprintOf('one'));
    gone.emit('close');
    peers.connected(session());
    expect(thumbprint(peers, 'two')).toBe(thumbprintOf('two'));
  });

  it('is the newer one where that one begins before the end of the older is told', () => {
    const peers = new Peers();
    const older = session();
    peers.connected(older);
    expect(thumbprint(peers, 'one')).toBe(thumbprintOf('one'));
    peers.connected(session());
    expect(thumbprint(peers, 'two')).toBe(thumbprintOf('two'));
    older.emit('close');
    const { call, reads } = callWith('two');
    expect(peers.of(call).certificate?.thumbprint).toBe(thumbprintOf('two'));
    expect(reads()).toBe(0);
  });

  it('is not kept for a call that outlives its connection, or one without a name', () => {
    const peers = new Peers();
    const gone = session();
    peers.connected(gone);
    gone.emit('close');
    peers.connected(session({}));
    for (const name of [NAME, 'unknown']) {
      const { call, reads } = callWith('one', name);
      peers.of(call);
      peers.of(call);
      expect(reads()).toBe(2);
    }
  });
});
