/** Addresses to listen on. */
import { BlockList, isIP } from 'node:net';

export interface ListenAddress {
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
}

export const DEFAULT_LISTEN: ListenAddress = { host: '127.0.0.1', port: 7443 };

/** `HOST:PORT` or `[IPV6]:PORT`; undefined for anything else. */
export function parseListen(text: string): ListenAddress | undefined {
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
  return { host, port };
}

export function formatAddress({ host, port }: ListenAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this host can connect. A name is not looked up; `localhost` is loopback (RFC 6761). */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === 'localhost';
  return loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
}
