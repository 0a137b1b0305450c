/** The files that policies are read from, bounded, as bytes found them. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Policies that come with the program, with the schema that it asks with. */
export const PACKAGED_POLICY_DIR = fileURLToPath(new URL('../../policy/', import.meta.url));

const SCHEMA_FILE = 'schema.cedarschema';

/** Bytes of all policy files of a directory. */
const MAX_POLICY_BYTES = 1024 * 1024;

/** Policy files of a directory. */
const MAX_POLICY_FILES = 256;

export interface PolicyFile {
  /** Without its directory. */
  readonly name: string;
  readonly text: string;
}

export interface PolicySources {
  readonly schema: string;
  /** Sorted by name. */
  readonly files: readonly PolicyFile[];
}

/**
 * Reads the `*.cedar` files of a directory, links followed, subdirectories left alone. The schema is
 * always the packaged one: it says what this version of the server asks, which no operator can
 * change. @throws Error that names what could not be read
 */
export async function readPolicySources(dir: string): Promise<PolicySources> {
  const [schema, names] = await Promise.all([
    readFile(join(PACKAGED_POLICY_DIR, SCHEMA_FILE), 'utf8'),
    readdir(dir),
  ]);
  const policyNames = names.filter((name) => name.endsWith('.cedar')).sort();
  if (policyNames.length > MAX_POLICY_FILES) {
    throw new Error(`${dir} holds over ${MAX_POLICY_FILES} policy files`);
  }
  const files: PolicyFile[] = [];
  let bytes = 0;
  for (const name of policyNames) {
    const path = join(dir, name);
    const found = await stat(path);
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    bytes += found.size;
    if (bytes > MAX_POLICY_BYTES) {
      throw new Error(`the policies of ${dir} hold over ${MAX_POLICY_BYTES} bytes`);
    }
    files.push({ name, text: await readFile(path, 'utf8') });
  }
  return { schema, files };
}
