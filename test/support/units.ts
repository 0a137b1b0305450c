/** The unit files for systemd as data. */
import { readFile } from 'node:fs/promises';

const DIR = new URL('../../packaging/systemd/', import.meta.url).pathname;

export type UnitName = 'grantty-server.service' | 'grantty-supervisor.service';

export function unitPath(name: UnitName): string {
  return `${DIR}${name}`;
}

/** All values of a setting, in order. */
export async function unitSetting(name: UnitName, setting: string): Promise<readonly string[]> {
  const text = await readFile(unitPath(name), 'utf8');
  return [...text.matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

/** The program and its arguments. */
export async function unitCommand(name: UnitName): Promise<readonly string[]> {
  const [command = ''] = await unitSetting(name, 'ExecStart');
  return command.split(' ');
}

/** How setpriv(1) bounds the capabilities of a process as the unit does. */
export async function boundingSet(name: UnitName): Promise<string> {
  const [set = ''] = await unitSetting(name, 'CapabilityBoundingSet');
  const named = set.split(' ').filter((one) => one !== '');
  const kept = named.map((one) => `,+${one.toLowerCase().replace('cap_', '')}`);
  return `--bounding-set=-all${kept.join('')}`;
}
