/** The checks of a configuration: its keys, the files that they name, and how long certificates hold. */
import { type Configuration, readConfiguration } from '../config.js';
import {
  ConfigurationError,
  type ConfigurationProblem,
  ProblemList,
} from '../configurationError.js';
import { DEFAULT_LISTEN, isLoopback } from '../listen.js';
import { chooseProof } from '../proofChoice.js';
import { checkFiles } from '../startChecks.js';
import { certificateFinding } from './certificateFinding.js';
import { type Finding, fail, ok } from './finding.js';

const CHECK = 'configuration';

export interface ConfigurationFindings {
  /** Absent when the file is not valid: nothing that it says is relied upon then. */
  readonly config?: Configuration;
  readonly findings: readonly Finding[];
}

export async function configurationFindings(
  file: string,
  { stateDir, now }: { readonly stateDir?: string; readonly now: number },
): Promise<ConfigurationFindings> {
  let config: Configuration;
  try {
    config = await readConfiguration(file);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { findings: error.problems.map((problem) => findingOf(file, problem)) };
  }
  const problems = new ProblemList();
  if (stateDir === undefined && config.state_dir === undefined) {
    problems.add(
      new ConfigurationError('', [
        {
          key: 'state_dir',
          text: 'state_dir is required',
          remedy: 'give it there, or --state-dir',
        },
      ]),
    );
  }
  const { host } = config.listen ?? DEFAULT_LISTEN;
  await problems.of(() => chooseProof(config, isLoopback(host)));
  const { tls } = await checkFiles(config, silent, problems);
  const findings = problems.all.map((problem) => findingOf(file, problem));
  if (findings.length === 0) findings.push(ok(CHECK, file));
  if (tls) findings.push(...(await validityFindings(config, now)));
  return { config, findings };
}

async function validityFindings({ tls }: Configuration, now: number): Promise<Finding[]> {
  const { cert, key, client_ca: clientCa } = tls;
  const findings = [await certificateFinding('server certificate', cert, key, now)];
  if (clientCa) findings.push(await certificateFinding('client CA', clientCa, undefined, now));
  return findings;
}

function findingOf(file: string, { key, text, remedy }: ConfigurationProblem): Finding {
  const [top] = key?.split(/[.[]/) ?? [];
  const place = top === undefined ? '' : `${top} under `;
  const advice = remedy ?? `see ${place}"Configuration" in docs/operations.md`;
  return fail(CHECK, `${file}: ${text}`, advice);
}

const silent = { info() {}, warn() {}, error() {} };
