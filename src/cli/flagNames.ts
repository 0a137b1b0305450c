/** How the command line calls what messages and tokens have another name for. */

/** Fields of requests; one that is not here has the name of its flag or argument. */
const FLAGS: Readonly<Record<string, string>> = {
  after_seq: '--after-seq',
  certificate_thumbprint: '--cnf',
  data: 'the input',
  labels: '--label',
  lifetime: '--ttl',
  max_depth: '--max-depth',
  request_id: '--request-id',
  tail_bytes: '--tail-bytes',
  'token.jti': 'the id of the token',
};

/** What a person typed that became this field of a request. */
export function flagOfField(field: string): string {
  const [, part = '', rest = ''] =
    /^grants\[\d+\]\.(actions|resource|constraints)\.?(.*)$/.exec(field) ?? [];
  switch (part) {
    case 'actions':
      return '--actions';
    case 'resource':
      return `--resource (${rest})`;
    case 'constraints':
      return `--constraint ${rest}`;
    default:
      return FLAGS[field] ?? field;
  }
}

/** What a person typed that became this claim of a token: `ctx grant mint` has a flag for each. */
export function flagOfClaim(claim: string): string {
  const [, part = '', rest = ''] =
    /^authorization_details\[0\]\.(actions|resource|constraints)\.?(.*)$/.exec(claim) ?? [];
  switch (part) {
    case 'actions':
      return '--actions';
    case 'resource':
      return `--${rest}`;
    case 'constraints':
      return `--constraint ${rest}`;
    default:
      return claim.includes('[') ? claim : `--${claim}`;
  }
}

interface Violating {
  readonly message: string;
  readonly violations: readonly { readonly field: string; readonly description: string }[];
}

/** The message with the flag in the place of the field that it begins with. */
export function inFlags(
  { message, violations }: Violating,
  flagOf: (field: string) => string,
): string {
  const [violation] = violations;
  if (violation === undefined || !message.startsWith(`${violation.field}:`)) return message;
  return `${flagOf(violation.field)}${message.slice(violation.field.length)}`;
}
