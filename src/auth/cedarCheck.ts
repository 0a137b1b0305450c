/** Reads and validates a candidate set. Runs where a crash of the parser hurts nobody. */
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import type { PolicyFile, PolicySources } from './cedarFiles.js';
import type { PolicyText } from './cedarSet.js';

/** What is wrong with a set, and where. */
export interface PolicyProblem {
  readonly message: string;
  /** What was probably meant. */
  readonly hint?: string;
  readonly file?: string;
  /** Both from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly policyId?: string;
}

export type CheckResult =
  | {
      readonly ok: true;
      readonly policies: readonly PolicyText[];
      readonly warnings: readonly PolicyProblem[];
    }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/** Ids go to audit records and to people's terminals. */
const POLICY_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A policy and where it was found. */
interface Placed extends PolicyText {
  readonly file: PolicyFile;
  /** Bytes of the file before it. */
  readonly start: number;
}

/** A set is taken whole or not at all: every policy named, none a template, all valid. */
export function checkSources(cedar: typeof Cedar, { schema, files }: PolicySources): CheckResult {
  const problems: PolicyProblem[] = [];
  const policies: Placed[] = [];
  for (const file of files) {
    try {
      policies.push(...readFile(cedar, file, problems));
    } catch (error) {
      // Nothing more can be asked of this instance: its memory is no longer sound.
      problems.push({ file: file.name, message: `cannot be parsed: ${crash(error)}` });
      return { ok: false, problems };
    }
  }
  for (const twin of policies.filter(({ id }, at) => at > firstOf(policies, id))) {
    problems.push(at(twin.file, twin.start, 'another policy has the same @id', twin.id));
  }
  if (problems.length > 0) return { ok: false, problems };
  if (policies.length === 0) {
    return { ok: false, problems: [{ message: 'there is no policy: nothing would be permitted' }] };
  }
  try {
    return validate(cedar, schema, policies);
  } catch (error) {
    return { ok: false, problems: [{ message: `cannot be validated: ${crash(error)}` }] };
  }
}

function readFile(cedar: typeof Cedar, file: PolicyFile, problems: PolicyProblem[]): Placed[] {
  const parts = cedar.policySetTextToParts(file.text);
  if (parts.type === 'failure') {
    problems.push(...parts.errors.map((error) => inFile(file, 0, error)));
    return [];
  }
  const placed: Placed[] = [];
  for (const { text, start } of locate(file, [...parts.policies, ...parts.policy_templates])) {
    if (parts.policy_templates.includes(text)) {
      problems.push(at(file, start, 'templates are not supported: write a policy'));
      continue;
    }
    const parsed = cedar.policyToJson(text);
    if (parsed.type === 'failure') {
      problems.push(...parsed.errors.map((error) => inFile(file, start, error)));
      continue;
    }
    const id = parsed.json.annotations?.id;
    if (id === undefined) {
      problems.push(at(file, start, 'the policy needs a name: put @id("...") before it'));
    } else if (!POLICY_ID.test(id)) {
      problems.push(
        at(file, start, 'an @id is 1-64 letters, digits, ".", "_" or "-", the first no sign'),
      );
    } else {
      placed.push({ id, effect: parsed.json.effect, text, file, start });
    }
  }
  return placed;
}

function validate(cedar: typeof Cedar, schema: string, policies: readonly Placed[]): CheckResult {
  const answer = cedar.validate({
    schema,
    policies: { staticPolicies: Object.fromEntries(policies.map(({ id, text }) => [id, text])) },
    validationSettings: { mode: 'strict' },
  });
  if (answer.type === 'failure') {
    return { ok: false, problems: answer.errors.map(({ message }) => ({ message })) };
  }
  const place = ({ policyId, error }: Cedar.ValidationError): PolicyProblem => {
    const policy = policies.find(({ id }) => id === policyId);
    if (policy === undefined) return { policyId, message: error.message };
    return { ...inFile(policy.file, policy.start, error), policyId };
  };
  if (answer.validationErrors.length > 0) {
    return { ok: false, problems: answer.validationErrors.map(place) };
  }
  return {
    ok: true,
    policies: policies.map(({ id, effect, text }) => ({ id, effect, text })),
    warnings: answer.validationWarnings.map(place),
  };
}

function inFile(file: PolicyFile, start: number, error: Cedar.DetailedError): PolicyProblem {
  const [place] = error.sourceLocations ?? [];
  const hint = error.help ?? place?.label ?? undefined;
  return {
    ...at(file, start + (place?.start ?? 0), error.message.replace(/^for policy `[^`]*`, /, '')),
    ...(hint !== undefined && { hint }),
  };
}

function at(file: PolicyFile, offset: number, message: string, policyId?: string): PolicyProblem {
  const before = Buffer.from(file.text).subarray(0, offset).toString().split('\n');
  const column = (before.at(-1)?.length ?? 0) + 1;
  return { message, file: file.name, line: before.length, column, ...(policyId && { policyId }) };
}

/**
 * Cedar gives the parts of a file without their places and in another order. The longest are looked
 * for first, so that none is found inside another. Cedar counts bytes of UTF-8, and so do places.
 */
function locate(file: PolicyFile, parts: readonly string[]): { text: string; start: number }[] {
  let left = file.text;
  const byLength = [...parts].sort((a, b) => b.length - a.length);
  const located = byLength.map((text) => {
    const from = Math.max(0, left.indexOf(text));
    const to = from + text.length;
    left = left.slice(0, from) + '\0'.repeat(text.length) + left.slice(to);
    return { text, start: Buffer.byteLength(file.text.slice(0, from)) };
  });
  return located.sort((a, b) => a.start - b.start);
}

function firstOf(policies: readonly Placed[], wanted: string): number {
  return policies.findIndex(({ id }) => id === wanted);
}

function crash(error: unknown): string {
  const what = error instanceof Error ? error.message : String(error);
  return `${what} (is something nested too deeply?)`;
}

/** One line for logs and people. */
export function describeProblem(problem: PolicyProblem): string {
  const { file, line, column, policyId, message, hint } = problem;
  const place = [file, line, column].filter((part) => part !== undefined).join(':');
  const what = policyId === undefined ? message : `${policyId}: ${message}`;
  return `${place && `${place}: `}${what}${hint === undefined ? '' : ` (${hint})`}`;
}
