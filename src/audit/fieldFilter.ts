/** Which fields an operator may keep out of the record, for the sake of the people in it. */
import type { Written } from './record.js';

/** By their names in the record. Without the others, nobody could be held to account. */
export const omittableFields = [
  'peer.address',
  'peer.certificate',
  'principal.client_id',
  'actors',
  'considered',
  'input_bytes',
  'output_bytes',
  'grant.constraints.commands',
  'grant.constraints.cwd_under',
] as const;

export type OmittableField = (typeof omittableFields)[number];

/** Makes a function that leaves the fields out wherever a record has them. */
export function fieldFilter(omit: readonly OmittableField[]): (record: Written) => Written {
  const paths = omit.map((field) => field.split('.'));
  if (paths.length === 0) return (record) => record;
  return (record) => paths.reduce(without, record as Readonly<Record<string, unknown>>) as Written;
}

function without(
  value: Readonly<Record<string, unknown>>,
  [key = '', ...rest]: readonly string[],
): Readonly<Record<string, unknown>> {
  const inner = value[key];
  if (inner === undefined) return value;
  const { [key]: _, ...others } = value;
  if (rest.length === 0) return others;
  if (typeof inner !== 'object' || inner === null) return value;
  return { ...value, [key]: without(inner as Readonly<Record<string, unknown>>, rest) };
}
